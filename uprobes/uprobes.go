package uprobes

import (
	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/profile"
	"kprobelab/x86"
)

// InsnSize is the number of bytes that a uprobe copies of the program (MAX_UINSN_BYTES).
const InsnSize = 16

// Way is the way in which a hit executes the instruction.
type Way uint8

// The ways.
const (
	// Stepped: a copy in the XOL area is executed, and the trap after it returns
	// (default_xol_ops).
	Stepped Way = iota
	// Branch: the kernel emulates a jump, a call or a nop (branch_xol_ops).
	Branch
	// Push: the kernel pushes the register (push_xol_ops).
	Push
)

// String is the word that reports print.
func (w Way) String() string {
	return [...]string{"stepped", "emulated as a branch", "emulated as a push"}[w]
}

// Fixups is the set of corrections after a step.
type Fixups uint8

// The fixups, with the kernel's numbers.
const (
	// FixIP: ip, which is past the copy, is moved past the original.
	FixIP Fixups = 1 << iota
	// FixCall: so is the return address that a call pushed.
	FixCall
	// FixFlags: the instruction changes the trap flag, which is left as it is.
	FixFlags
	// FixSI, FixDI and FixBX: the copy finds its rip-relative operand through this
	// register, which has another value meanwhile.
	FixSI
	FixDI
	FixBX
)

// Analysis is the kernel's decision about an instruction.
type Analysis struct {
	// Errno is ENOTSUPP or ENOEXEC if the instruction is refused, else 0. The other fields are set
	// for accepted instructions.
	Errno  errno.Errno
	Length int
	Way    Way
	// Fixups are set for Stepped.
	Fixups Fixups
	// Target is the distance in bytes from the instruction's end to the destination of a Branch
	// that is taken; 0 for a nop. Opcode is the opcode that the kernel emulates: a jump (eb, e9), a
	// call (e8), a condition (70 to 7f), a nop (others).
	Target int64
	Opcode byte
	// Register is the number of the register that a Push pushes, 0 to 15.
	Register int
	// Copy are the bytes in the XOL area.
	Copy [InsnSize]byte
	// Optimizable: the nop can become a call of the uprobe's trampoline.
	Optimizable bool
	// Hazard is the hazard of an accepted instruction, "" for none.
	Hazard Hazard
}

// Analyze decides about the instruction at the start of code, at an address of the program.
// code must include the bytes after the instruction, up to InsnSize bytes in all.
func Analyze(code []byte, at x86.Addr, c *profile.Config) Analysis {
	var a Analysis
	copy(a.Copy[:], code)
	if !c.Uprobes.Exists {
		a.Errno = errno.ENOSYS
		return a
	}
	k, err := decoder.DecodeKernel(a.Copy[:], &c.Decoder)
	if err != nil {
		a.Errno = errno.ENOEXEC
		return a
	}
	a.Length = k.Length
	optimizable := canOptimize(a.Copy[:], &k, at, &c.Uprobes)
	if badPrefix(&k) && !(optimizable && c.Uprobes.OptimizesNop10) || c.Uprobes.RefusesMasking && k.MasksExceptions() || !oneByte.has(k.Opcode[0]) {
		a.Errno = errno.ENOTSUPP
		return a
	}
	a.Optimizable = optimizable
	if a.branch(&k, &c.Uprobes) || c.Uprobes.EmulatesPush && a.push(&k) {
		a.Hazard = hazardOf(&k, &a, c)
		return a
	}
	a.step(&k)
	a.Hazard = hazardOf(&k, &a, c)
	return a
}

// badPrefix reports a prefix that is refused: cs, ds, es, ss and lock (is_prefix_bad).
func badPrefix(k *decoder.Kernel) bool {
	for _, p := range [...]byte{0x26, 0x2e, 0x36, 0x3e, 0xf0} {
		if k.HasPrefix(p) {
			return true
		}
	}
	return false
}

// branch sets up the emulation of a jump, a call or a nop (branch_setup_xol_ops).
func (a *Analysis) branch(k *decoder.Kernel, u *profile.Uprobes) bool {
	op := k.Opcode[0]
	nop := isNop(a.Copy[:], k, u)
	switch {
	case nop:
	case op == 0xeb, op == 0xe9, op&0xf0 == 0x70:
	case op == 0xe8:
		// The copy is never executed; its displacement is taken out, so that all
		// probes of one kind of call are alike.
		clear(a.Copy[k.ImmOff : k.ImmOff+k.ImmLen])
	case op == 0x0f && k.OpcodeLen == 2 && k.Opcode[1]&0xf0 == 0x80:
		op = k.Opcode[1] - 0x10
	default:
		return false
	}
	if !nop && k.HasPrefix(0x66) {
		a.Errno = errno.ENOTSUPP
		return true
	}
	a.Way, a.Opcode, a.Target = Branch, op, int64(int32(k.Imm))
	return true
}

// push sets up the emulation of a push of a register (push_setup_xol_ops): without a
// prefix, or with the one for r8 to r15.
func (a *Analysis) push(k *decoder.Kernel) bool {
	op := k.Opcode[0]
	if op&0xf8 != 0x50 || k.Length > 2 || k.Length == 2 && k.REX != 0x41 {
		return false
	}
	a.Way, a.Register = Push, int(op&7)|int(k.REX&1)<<3
	return true
}

// step sets up a step out of line.
func (a *Analysis) step(k *decoder.Kernel) {
	a.Fixups = FixIP
	switch k.Opcode[0] {
	case 0x9d: // popf
		a.Fixups = FixIP | FixFlags
		return
	case 0xc2, 0xc3, 0xca, 0xcb, 0xea: // returns, a far jump
		a.Fixups = 0
		return
	case 0x9a: // a far call
		a.Fixups = FixCall
		return
	case 0xff:
		switch k.Reg() {
		case 2, 3:
			a.Fixups = FixCall
		case 4, 5:
			a.Fixups = 0
		}
	}
	a.ripRelative(k)
}

// rex2 begins a REX2 prefix, of two bytes.
const rex2 = 0xd5

// ripRelative makes the copy use a register in place of rip (riprel_analyze): a register that the
// instruction does not name.
func (a *Analysis) ripRelative(k *decoder.Kernel) {
	if !k.RIPRelative() {
		return
	}
	switch before := k.OpcodeOff - k.VexLen; k.REX {
	case 0:
	case rex2:
		a.Copy[before-2] &^= 1 // not REX2's bits: its first byte
	default:
		a.Copy[before-1] &^= 1 // REX.B
	}
	other := byte(0xff)
	switch k.VexLen {
	case 2:
		other = k.Vex[1]>>3&7 ^ 7
	case 3, 4:
		a.Copy[k.OpcodeOff-k.VexLen+1] |= 0x60 // X and B, inverted
		other = k.Vex[2]>>3&7 ^ 7
	}
	reg := k.Reg()
	for _, r := range [...]struct {
		number byte
		fixup  Fixups
	}{{6, FixSI}, {7, FixDI}, {3, FixBX}} {
		if r.number == 3 || reg != r.number && other != r.number {
			a.Copy[k.ModRMOff] = 0x80 | reg<<3 | r.number
			a.Fixups |= r.fixup
			return
		}
	}
}
