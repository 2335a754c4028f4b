package uprobes

import (
	"kprobelab/decoder"
	"kprobelab/profile"
)

// Hazard is a way in which a probe that the kernel accepts changes the program.
type Hazard string

// The hazards.
const (
	// SkippedVector: an AVX instruction whose opcode is a jump's or a nop's without the prefix
	// (vpor is eb, vpcmpeqb 74, vzeroupper 77) is taken for that, and not executed.
	SkippedVector Hazard = "SKIPPED_VECTOR"
	// PushedByVector: the same with a call's opcode (vpsubsb is e8): it also pushes an
	// address.
	PushedByVector Hazard = "VECTOR_AS_CALL"
	// LostIP: an AVX instruction with a return's opcode (vcmpps is c2) is stepped, and ip is
	// left past the copy, in the XOL area.
	LostIP Hazard = "LOST_IP"
	// SkippedExchange: 90 with REX.B, xchg of r8 and rax, is taken for a nop.
	SkippedExchange Hazard = "SKIPPED_XCHG"
	// SteppedOn: a system call returns by iret with the trap flag set, so that the trap comes
	// after one instruction more, which is executed in the XOL area, too: a return, an indirect
	// jump, a call or an operand that is found by rip does the wrong thing there.
	SteppedOn Hazard = "SYSCALL_STEPS_ON"
	// SpoiledREX2: of an instruction with REX2 and a rip-relative operand the copy has d4 in
	// place of d5, and is no instruction.
	SpoiledREX2 Hazard = "SPOILED_REX2"
	// NopAsCall: a nop of five bytes that becomes a call (6.18 to 7.1) pushes to the red zone from then on, and a
	// process that fork makes has the call without the trampoline that it leads to.
	NopAsCall Hazard = "NOP5_AS_CALL"
	// InsideInstruction: no instruction begins there. The kernel does not look: the int3 changes the
	// instruction that it is in the middle of. Analyze does not know it; Inside tells.
	InsideInstruction Hazard = "INSIDE_INSTRUCTION"
)

var hazardTexts = map[Hazard]string{
	InsideInstruction: "no instruction begins there, and the kernel does not look: the int3 changes the instruction that it is in the middle of, and the program executes that",
	SkippedVector:     "the kernel takes this AVX instruction for the jump or nop that has its opcode byte, emulates that, and does not execute it",
	PushedByVector:    "the kernel takes this AVX instruction for the call that has its opcode byte: it is not executed, and a return address is pushed",
	LostIP:            "the kernel takes this AVX instruction for the return that has its opcode byte, and leaves ip in the XOL area, past the copy",
	SpoiledREX2:       "the kernel clears a bit of the REX2 prefix itself in the copy, which is then no instruction",
	SteppedOn:         "the trap after a system call comes after the next instruction, too, which is executed in the XOL area and does the wrong thing there",
	NopAsCall:         "the nop becomes a call, which writes below the stack pointer; a process that fork makes then has the call without what it leads to, and dies",
	SkippedExchange:   "the kernel takes this exchange with rax for a nop, and does not execute it",
}

// Means is the hazard in a sentence.
func (h Hazard) Means() string { return hazardTexts[h] }

func hazardOf(k *decoder.Kernel, a *Analysis, c *profile.Config) Hazard {
	switch {
	case a.Errno != 0:
	case k.VexLen > 0 && a.Way == Branch && a.Opcode == 0xe8:
		return PushedByVector
	case k.VexLen > 0 && a.Way == Branch:
		return SkippedVector
	case k.VexLen > 0 && a.Fixups&FixIP == 0:
		return LostIP
	case a.Fixups&(FixSI|FixDI|FixBX) != 0 && k.REX == rex2:
		return SpoiledREX2
	case a.Optimizable && !c.Uprobes.OptimizesNop10:
		return NopAsCall
	case a.Way == Branch && a.Opcode == 0x90 && k.REX != rex2 && k.REX&1 != 0:
		return SkippedExchange
	case a.Errno == 0 && k.VexLen == 0 && k.OpcodeLen == 2 && k.Opcode[0] == 0x0f && k.Opcode[1] == 0x05 && !movable(a.Copy[k.Length:], c):
		return SteppedOn
	}
	return ""
}

// movable reports whether an instruction whose ip is moved by a constant afterwards does the same
// elsewhere, and is whole.
func movable(code []byte, c *profile.Config) bool {
	k, err := decoder.DecodeKernel(code, &c.Decoder)
	if err != nil || k.Length > len(code) || k.RIPRelative() {
		return false
	}
	if k.VexLen > 0 {
		return true
	}
	switch op := k.Opcode[0]; op {
	case 0xc2, 0xc3, 0xca, 0xcb, 0xe8:
		return false
	case 0xff:
		return k.Reg() < 2 || k.Reg() > 5
	}
	return true
}
