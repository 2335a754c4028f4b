package transparency

import (
	"encoding/binary"
	"math/bits"

	"kprobelab/x86"
)

// model receives the traps of a run in kprobes' place, and acts at one instruction as the real
// kernel does there (docs/spec 2.6 to 2.8, 14.5).
type model struct {
	p    *place
	hits int
	// enter is the int3 at the instruction, with ip on it; leave is the trap after the copy, nil if
	// no handler takes it.
	enter func(regs *x86.PtRegs)
	leave func(regs *x86.PtRegs)
	flags uint64
}

// Int3 implements emu.Traps.
func (m *model) Int3(regs *x86.PtRegs) bool {
	at := x86.Addr(regs.IP - 1)
	switch {
	case at == m.p.at:
		m.hits++
		m.flags = regs.Flags & x86.FlagIF
		regs.IP--
		m.enter(regs)
		return true
	case m.leave != nil && at == m.p.slot.Add(int64(len(m.p.insn))):
		regs.IP--
		m.leave(regs)
		regs.Flags |= m.flags
		return true
	}
	return false
}

// Debug implements emu.Traps.
func (m *model) Debug(regs *x86.PtRegs) bool {
	regs.Flags &^= x86.FlagTF
	m.leave(regs)
	regs.Flags |= m.flags
	return true
}

// Fault and TaskExit implement emu.Traps.
func (m *model) Fault(*x86.PtRegs, int) bool { return false }
func (m *model) TaskExit(int)                {}

// enterCopy goes to a boosted copy, enterSlot to a stepped one.
func (p *place) enterCopy(regs *x86.PtRegs) { regs.IP = uint64(p.slot) }

func (p *place) enterSlot(regs *x86.PtRegs) {
	regs.IP = uint64(p.slot)
	regs.Flags &^= x86.FlagIF
	if p.config().Step.TrapFlag {
		regs.Flags |= x86.FlagTF
	}
}

// leaveSlot moves ip back and nothing else.
func (p *place) leaveSlot(regs *x86.PtRegs) { regs.IP += uint64(p.at.Sub(p.slot)) }

// emulated models the kernel's emulation. It goes by the opcode that the kernel's
// decoder finds, even where a processor finds another.
func emulated(p *place) *model {
	return &model{p: p, enter: func(regs *x86.PtRegs) { p.emulate(regs) }}
}

func (p *place) emulate(regs *x86.PtRegs) {
	op, next := p.k.Opcode[0], regs.IP+uint64(len(p.insn))
	target := next + uint64(int64(int32(p.k.Imm)))
	switch {
	case op&0xf0 == 0x70:
		regs.IP = next
		if holds(op&15, regs.Flags) {
			regs.IP = target
		}
	case op >= 0xe0 && op <= 0xe2:
		regs.IP = next
		if p.loops(op, regs) {
			regs.IP = target
		}
	case op == 0xe3:
		regs.IP = next
		if p.counter(regs.CX) == 0 {
			regs.IP = target
		}
	case op == 0xc2 || op == 0xc3 || op == 0xca || op == 0xcb:
		regs.IP = p.pop(regs)
		if !p.config().Step.RetIgnoresImm { // of a far return, when that is all that is off
			regs.SP += uint64(p.k.Imm)
		}
	case op == 0xe8:
		p.push(regs, regs.IP+5)
		regs.IP = target
	case op == 0xe9 || op == 0xeb:
		regs.IP = target
	case op == 0xfa:
		regs.IP, regs.Flags = next, regs.Flags&^x86.FlagIF
	case op == 0xfb:
		regs.IP, regs.Flags = next, regs.Flags|x86.FlagIF
	case op == 0x9c:
		p.push(regs, regs.Flags)
		regs.IP = next
	case op == 0x9d:
		regs.IP, regs.Flags = next, p.pop(regs)
	case op == 0xff: // call *%rsp is the one that is listed
		p.push(regs, next)
		regs.IP = regs.SP
	}
}

func (p *place) counter(cx uint64) uint64 {
	if p.k.HasPrefix(0x67) {
		return cx & 0xffffffff
	}
	return cx
}

// loops counts, each of the two differences by itself where the other is off.
func (p *place) loops(op byte, regs *x86.PtRegs) bool {
	step := &p.config().Step
	count := p.counter(regs.CX)
	after := p.counter(count - 1)
	if p.k.HasPrefix(0x67) && step.Loop32KeepsUpper {
		after |= regs.CX >> 32 << 32
	}
	regs.CX = after
	if !step.LoopTestsBeforeDecrement {
		count = p.counter(after)
	}
	zero := regs.Flags&x86.FlagZF != 0
	return count != 0 && (op == 0xe2 || zero == (op == 0xe1))
}

// holds evaluates a condition code from the flags' letters.
func holds(cc byte, f uint64) bool {
	bit := func(mask uint64) bool { return f&mask != 0 }
	sign := bits.OnesCount64(f&(x86.FlagSF|x86.FlagOF)) == 1
	v := [8]bool{
		bit(x86.FlagOF), bit(x86.FlagCF), bit(x86.FlagZF), bit(x86.FlagCF | x86.FlagZF),
		bit(x86.FlagSF), bit(x86.FlagPF), sign, sign || bit(x86.FlagZF),
	}[cc>>1]
	return v == (cc&1 == 0)
}

func (p *place) push(regs *x86.PtRegs, v uint64) {
	regs.SP -= 8
	_ = p.b.Machine.WriteMem(x86.Addr(regs.SP), binary.LittleEndian.AppendUint64(nil, v))
}

func (p *place) pop(regs *x86.PtRegs) uint64 {
	var b [8]byte
	_ = p.b.Machine.ReadMem(x86.Addr(regs.SP), b[:])
	regs.SP += 8
	return binary.LittleEndian.Uint64(b[:])
}
