package libcheck

import (
	"kprobelab"
	"kprobelab/x86"
)

// counts holds the number of runs of each instruction, by address. The trap flag stops a repeated
// string instruction after every round, an int3 on it once.
type counts struct{ insns, rounds map[x86.Addr]int }

// stepper is a receiver of traps that runs a call one instruction at a time. It counts how often
// each instruction begins, which is the number of hits that a probe must count.
type stepper struct {
	l     *kprobelab.Lab
	entry x86.Addr
	first [1]byte
	counts
	// last is the instruction stepped before, and inRep whether it repeats.
	last  x86.Addr
	inRep bool
}

const int3 = 0xcc

// stepped makes a call under the stepper.
func stepped(l *kprobelab.Lab, addr x86.Addr, args []uint64) (counts, uint64, error) {
	s := &stepper{l: l, entry: addr, counts: counts{map[x86.Addr]int{}, map[x86.Addr]int{}}}
	if err := l.Machine.ReadMem(addr, s.first[:]); err != nil {
		return counts{}, 0, err
	}
	l.Machine.SetTraps(s)
	defer l.Machine.SetTraps(l.Kprobes.Traps())
	if err := l.Machine.PokeText(addr, []byte{int3}); err != nil {
		return counts{}, 0, err
	}
	ret, err := l.Machine.CallAddr(addr, args...)
	return s.counts, ret, err
}

// Int3 is the trap at the function's entry, which starts the stepping.
func (s *stepper) Int3(regs *x86.PtRegs) bool {
	if regs.IP-1 != uint64(s.entry) {
		return false
	}
	if err := s.l.Machine.PokeText(s.entry, s.first[:]); err != nil {
		return false
	}
	regs.IP--
	regs.Flags |= x86.FlagTF
	s.begin(s.entry)
	return true
}

// Debug is the trap after each instruction.
func (s *stepper) Debug(regs *x86.PtRegs) bool {
	at := x86.Addr(regs.IP)
	if at == s.last && s.inRep {
		s.rounds[at]++
		return true
	}
	if !s.l.Image.InText(at) {
		regs.Flags &^= x86.FlagTF // back in the host's return stub
		return true
	}
	s.begin(at)
	return true
}

func (s *stepper) begin(at x86.Addr) {
	s.insns[at]++
	s.rounds[at]++
	var b [4]byte
	n := s.l.Image.CodeAt(at, b[:])
	s.last, s.inRep = at, repeats(b[:n])
}

// repeats reports whether the code begins with a repeated string instruction.
func repeats(b []byte) bool {
	rep := false
	for len(b) > 0 {
		switch c := b[0]; {
		case c == 0xf2 || c == 0xf3:
			rep = true
		case c == 0x66 || c&0xf0 == 0x40:
		default:
			return rep && (c >= 0xa4 && c <= 0xa7 || c >= 0xaa && c <= 0xaf)
		}
		b = b[1:]
	}
	return false
}

// Fault and TaskExit implement emu.Traps.
func (s *stepper) Fault(*x86.PtRegs, int) bool { return false }
func (s *stepper) TaskExit(int)                {}
