package slot

import (
	"encoding/binary"

	"kprobelab/profile"
	"kprobelab/x86"
)

// Memory is the guest memory that emulation and fix-up touch: the stack.
type Memory interface {
	// ReadMem fills all of b from memory at addr, or fails.
	ReadMem(addr x86.Addr, b []byte) error
	// WriteMem writes all of b at addr, or fails.
	WriteMem(addr x86.Addr, b []byte) error
}

// Run emulates the instruction on regs, whose IP is past the int3: one more than
// the original address (kprobe_emulate_*; docs/spec 2.7). Where the kernel
// differs from the processor, a field of c.Step chooses between them. If a
// handler changed regs.IP, the result moves with it, as in the kernel.
//
// The error is Memory's, where the guest's stack is not there; regs may have
// changed then. Run does not allocate.
func (e *Emulation) Run(regs *x86.PtRegs, m Memory, c *profile.Config) error {
	at := regs.IP - 1
	next := at + uint64(e.Len)
	target := next + uint64(int64(e.Rel32))
	switch e.Kind {
	case EmulateIfModifiers:
		regs.IP = next
		return e.ifModifier(regs, m, c)
	case EmulateRet:
		return e.ret(regs, m, c)
	case EmulateCall:
		regs.IP = target
		if c.Step.CallReturnsPast5 {
			next = at + x86.Rel32Size // whatever prefixes there are
		}
		return e.push(regs, m, next)
	case EmulateJmp:
		regs.IP = target
	case EmulateJcc:
		taken := Condition(e.Type, regs.Flags)
		if c.Step.JLENeedsBoth && e.Type >= 14 {
			both := Condition(12, regs.Flags) && regs.Flags&x86.FlagZF != 0
			taken = both != (e.Type&1 != 0)
		}
		regs.IP = choose(taken, target, next)
	case EmulateLoop:
		regs.IP = choose(e.loop(regs, c), target, next)
	case EmulateCallIndirect:
		if c.Step.CallIndirectReturnsPast5 {
			next = at + x86.Rel32Size // as if it were a CALL rel
		}
		return e.callIndirect(regs, m, next, c)
	case EmulateJmpIndirect:
		regs.IP = *regs.Reg(int(e.Type))
	}
	return nil
}

func choose(taken bool, target, next uint64) uint64 {
	if taken {
		return target
	}
	return next
}

// poppedFlags are the bits that popf takes from the stack in kernel mode: without the reserved
// ones, VM, RF, VIF and VIP.
const poppedFlags = 0x247FD5

func (e *Emulation) ifModifier(regs *x86.PtRegs, m Memory, c *profile.Config) (err error) {
	narrow := e.OpSize == 2 && !c.Step.FlagsMove8Bytes
	switch e.Type {
	case 0xFA:
		regs.Flags &^= x86.FlagIF
	case 0xFB:
		regs.Flags |= x86.FlagIF
	case 0x9C:
		if narrow {
			return e.pushFlags16(regs, m)
		}
		return e.push(regs, m, regs.Flags)
	case 0x9D:
		if narrow {
			var low uint64
			low, err = e.popBytes(regs, m, 2)
			regs.Flags = regs.Flags&^0xFFFF | low&poppedFlags | x86.FlagFixed
			return err
		}
		// All 64 bits come from the stack, unmasked.
		regs.Flags, err = e.pop(regs, m)
		if !c.Step.PopfTakesAll {
			regs.Flags = regs.Flags&poppedFlags | x86.FlagFixed
		}
	}
	return err
}

// callIndirect is call *%reg. A kernel that pushes first goes, for call *%rsp, to
// the new value.
func (e *Emulation) callIndirect(regs *x86.PtRegs, m Memory, next uint64, c *profile.Config) error {
	target := *regs.Reg(int(e.Type))
	err := e.push(regs, m, next)
	if c.Step.CallPushesFirst {
		target = *regs.Reg(int(e.Type))
	}
	regs.IP = target
	return err
}

// ret also stands for retf, whose code segment is left on the stack.
func (e *Emulation) ret(regs *x86.PtRegs, m Memory, c *profile.Config) (err error) {
	if e.Far && !c.Step.FarRetIsNear {
		return e.retFar(regs, m, c)
	}
	regs.IP, err = e.pop(regs, m)
	if !c.Step.RetIgnoresImm {
		regs.SP += uint64(e.RetImm)
	}
	return err
}

// Condition evaluates a condition code, the low four bits of a jcc's opcode,
// on flags: pairs of a test and its inverse (docs/spec 2.7).
func Condition(cc byte, flags uint64) bool {
	cf, zf := flags&x86.FlagCF != 0, flags&x86.FlagZF != 0
	less := (flags&x86.FlagSF != 0) != (flags&x86.FlagOF != 0)
	var v bool
	switch cc >> 1 & 7 {
	case 0:
		v = flags&x86.FlagOF != 0
	case 1:
		v = cf
	case 2:
		v = zf
	case 3:
		v = cf || zf
	case 4:
		v = flags&x86.FlagSF != 0
	case 5:
		v = flags&x86.FlagPF != 0
	case 6:
		v = less
	case 7:
		v = zf || less
	}
	return v != (cc&1 != 0)
}

// Kinds of loop, the low two bits of the opcode.
const (
	loopNE = iota
	loopE
	loopPlain
	jcxz
)

// loop counts and reports whether the branch is taken. The kernel tests the
// counter before it decrements it, the processor afterwards.
func (e *Emulation) loop(regs *x86.PtRegs, c *profile.Config) bool {
	before := e.counter(regs.CX)
	if e.Type == jcxz {
		return before == 0
	}
	after := e.counter(before - 1)
	regs.CX = e.setCounter(regs.CX, after, c)
	match := after != 0
	if c.Step.LoopTestsBeforeDecrement {
		match = before != 0
	}
	zf := regs.Flags&x86.FlagZF != 0
	switch e.Type {
	case loopNE:
		return match && !zf
	case loopE:
		return match && zf
	}
	return match
}

func (e *Emulation) counter(cx uint64) uint64 {
	if e.AddrSize == 32 {
		return cx & 0xFFFFFFFF
	}
	return cx
}

// setCounter writes ecx or rcx. A write to ecx clears the upper half on a
// processor; the kernel stores four bytes.
func (e *Emulation) setCounter(cx, v uint64, c *profile.Config) uint64 {
	if e.AddrSize == 32 && c.Step.Loop32KeepsUpper {
		return cx&^0xFFFFFFFF | v
	}
	return v
}

func (e *Emulation) push(regs *x86.PtRegs, m Memory, v uint64) error {
	regs.SP -= 8
	binary.LittleEndian.PutUint64(e.stack[:], v)
	return m.WriteMem(x86.Addr(regs.SP), e.stack[:])
}

// retFar pops the code segment, too.
func (e *Emulation) retFar(regs *x86.PtRegs, m Memory, c *profile.Config) (err error) {
	if regs.IP, err = e.popBytes(regs, m, int(e.OpSize)); err != nil {
		return err
	}
	if regs.CS, err = e.popBytes(regs, m, int(e.OpSize)); err != nil {
		return err
	}
	if !c.Step.RetIgnoresImm {
		regs.SP += uint64(e.RetImm)
	}
	return nil
}

func (e *Emulation) pop(regs *x86.PtRegs, m Memory) (uint64, error) { return e.popBytes(regs, m, 8) }

// popBytes pops a word of n bytes.
func (e *Emulation) popBytes(regs *x86.PtRegs, m Memory, n int) (uint64, error) {
	clear(e.stack[:])
	if err := m.ReadMem(x86.Addr(regs.SP), e.stack[:n]); err != nil {
		return 0, err
	}
	regs.SP += uint64(n)
	return binary.LittleEndian.Uint64(e.stack[:]), nil
}

func (e *Emulation) pushFlags16(regs *x86.PtRegs, m Memory) error {
	regs.SP -= 2
	binary.LittleEndian.PutUint16(e.stack[:], uint16(regs.Flags))
	return m.WriteMem(x86.Addr(regs.SP), e.stack[:2])
}
