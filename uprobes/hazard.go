package uprobes

import (
	"kprobelab/decoder"
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
	// left behind the copy.
	LostIP Hazard = "LOST_IP"
	// SkippedExchange: 90 with REX.B, xchg of r8 and rax, is taken for a nop.
	SkippedExchange Hazard = "SKIPPED_XCHG"
	// SpoiledREX2: of an instruction with REX2 and a rip-relative operand the copy has d4 in
	// place of d5, and is no instruction.
	SpoiledREX2 Hazard = "SPOILED_REX2"
)

var hazardTexts = map[Hazard]string{
	SkippedVector:   "the kernel takes this AVX instruction for the jump or nop that has its opcode byte, emulates that, and does not execute it",
	PushedByVector:  "the kernel takes this AVX instruction for the call that has its opcode byte: it is not executed, and a return address is pushed",
	LostIP:          "the kernel takes this AVX instruction for the return that has its opcode byte, and leaves ip in the XOL area, behind the copy",
	SpoiledREX2:     "the kernel clears a bit of the REX2 prefix itself in the copy, which is then no instruction",
	SkippedExchange: "the kernel takes this exchange with rax for a nop, and does not execute it",
}

// Means is the hazard in a sentence.
func (h Hazard) Means() string { return hazardTexts[h] }

func hazardOf(k *decoder.Kernel, a *Analysis) Hazard {
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
	case a.Way == Branch && a.Opcode == 0x90 && k.REX != rex2 && k.REX&1 != 0:
		return SkippedExchange
	}
	return ""
}
