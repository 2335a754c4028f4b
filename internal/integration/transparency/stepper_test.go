package transparency

import (
	"encoding/binary"
	"slices"

	"kprobelab/decoder"
	"kprobelab/machine"
	"kprobelab/x86"
)

// trace records a call instruction by instruction, with the registers that every probe must see.
type trace struct {
	// steps has every instruction with the registers before it, and at the
	// end where the call returned to. A repeated string instruction has a
	// step for every round.
	steps []step
	// at are the places in steps by address.
	at map[x86.Addr][]int32
}

// stack returns the memory below the stack pointer at the start of the call.
func (t *trace) stack() x86.Range {
	const size = 16 << 10
	sp := x86.Addr(t.steps[0].regs.SP)
	return x86.Range{Start: sp - size, End: sp}
}

type step struct {
	regs x86.PtRegs
	// again is a further round of a repeated string instruction, faulted an
	// instruction that did not end.
	again, faulted bool
	vector         int
	// top is the word on the stack before a popf.
	top uint64
}

// stepper is a receiver of traps that makes the trace.
type stepper struct {
	*bench
	trace
	entry  x86.Addr
	first  [1]byte
	last   x86.Addr
	inRep  bool
	pushes bool // the last instruction pushed flags, with TF in them
}

const int3 = 0xcc

// stepped makes a call under the stepper. The run's own outcome is compared
// with the one at full speed by the caller.
func (b *bench) stepped(f *function, args []any) (*trace, *outcome, error) {
	s := &stepper{bench: b, entry: f.addr, trace: trace{at: map[x86.Addr][]int32{}}}
	m := b.Machine
	if err := m.ReadMem(f.addr, s.first[:]); err != nil {
		return nil, nil, err
	}
	m.SetTraps(s)
	defer m.SetTraps(b.Kprobes.Traps())
	if err := m.PokeText(f.addr, []byte{int3}); err != nil {
		return nil, nil, err
	}
	o := &outcome{}
	if err := b.run(f, args, o); err != nil {
		return nil, nil, err
	}
	o.regs.Flags &^= x86.FlagTF // an int3 without a handler ended the run with TF set
	o.regs.Flags &^= x86.FlagTF
	o.pages = slices.DeleteFunc(o.pages, func(p page) bool { return s.Image.InText(p.at) }) // that int3
	return &s.trace, o, m.PokeText(f.addr, s.first[:])
}

// Int3 is the trap at the function's entry, which starts the stepping. The
// machine's Restore puts the int3 back.
func (s *stepper) Int3(regs *x86.PtRegs) bool {
	if regs.IP-1 != uint64(s.entry) || len(s.steps) > 0 {
		if n := len(s.steps); n > 0 {
			s.steps[n-1].faulted, s.steps[n-1].vector = true, 3
		}
		regs.Flags &^= x86.FlagTF
		return false
	}
	if err := s.Machine.PokeText(s.entry, s.first[:]); err != nil {
		return false
	}
	regs.IP--
	s.begin(regs)
	regs.Flags |= x86.FlagTF
	return true
}

// Debug is the trap after each instruction.
func (s *stepper) Debug(regs *x86.PtRegs) bool {
	s.skippedWarning()
	if s.pushes {
		s.cleanPushed(x86.Addr(regs.SP))
	}
	again := x86.Addr(regs.IP) == s.last && s.inRep
	if !s.Image.InText(x86.Addr(regs.IP)) {
		regs.Flags &^= x86.FlagTF // back in the host's return stub
		s.steps = append(s.steps, step{regs: *regs})
		return true
	}
	regs.Flags &^= x86.FlagTF
	s.begin(regs)
	s.steps[len(s.steps)-1].again = again
	regs.Flags |= x86.FlagTF // an instruction may have cleared it
	return true
}

// skippedWarning notes the instruction after the ud2 of a warning: the machine
// goes on there by itself, and it has run when the next trap comes.
func (s *stepper) skippedWarning() {
	var b [2]byte
	last := &s.steps[len(s.steps)-1]
	if s.Kprobes.View().CodeAt(s.last, b[:]) != 2 || b != [2]byte{0x0f, 0x0b} || last.faulted {
		return
	}
	last.vector = machine.VectorInvalid
	regs := last.regs
	regs.IP += 2
	s.begin(&regs)
}

// cleanPushed takes the stepping's own trap flag out of pushed flags.
func (s *stepper) cleanPushed(sp x86.Addr) {
	var w [2]byte
	if s.Machine.ReadMem(sp, w[:]) == nil {
		binary.LittleEndian.PutUint16(w[:], binary.LittleEndian.Uint16(w[:])&^x86.FlagTF)
		_ = s.Machine.WriteMem(sp, w[:])
	}
}

func (s *stepper) begin(regs *x86.PtRegs) {
	at := x86.Addr(regs.IP)
	s.at[at] = append(s.at[at], int32(len(s.steps)))
	s.steps = append(s.steps, step{regs: *regs})
	var b [15]byte
	n := s.Kprobes.View().CodeAt(at, b[:])
	op := opcode(b[:n])
	s.pushes, s.last = op == 0x9c, at
	if op == 0x9d {
		var w [8]byte
		_ = s.Machine.ReadMem(x86.Addr(regs.SP), w[:])
		s.steps[len(s.steps)-1].top = binary.LittleEndian.Uint64(w[:])
	}
	s.inRep = repeats(b[:n]) && (op >= 0xa4 && op <= 0xa7 || op >= 0xaa && op <= 0xaf)
}

// opcode is the first byte after the prefixes.
func opcode(b []byte) byte {
	for _, c := range b {
		if c&0xf0 != 0x40 && !decoder.IsLegacyPrefix(c) {
			return c
		}
	}
	return 0
}

func repeats(b []byte) bool {
	for _, c := range b {
		switch {
		case c == 0xf2 || c == 0xf3:
			return true
		case c&0xf0 != 0x40 && !decoder.IsLegacyPrefix(c):
			return false
		}
	}
	return false
}

// Fault keeps the trace going where the exception table does: the trap flag
// is still set after it, so the first instruction there has to be noted now.
func (s *stepper) Fault(regs *x86.PtRegs, vector int) bool {
	last := &s.steps[len(s.steps)-1]
	last.faulted, last.vector = true, vector
	fixup, ok := s.Image.ExceptionEntry(x86.Addr(regs.IP))
	if !ok {
		regs.Flags &^= x86.FlagTF
		return false
	}
	regs.IP = uint64(fixup)
	regs.Flags &^= x86.FlagTF
	s.begin(regs)
	regs.Flags |= x86.FlagTF
	return true
}

// TaskExit implements machine.Traps.
func (s *stepper) TaskExit(int) {}
