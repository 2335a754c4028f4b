package compare

import (
	"errors"
	"slices"

	"kprobelab/decoder"
)

// A cause is a known difference between decoders, with who is right and why.
// docs/decoder.md shows the list.
type cause struct {
	name string
	// decoders names the decoders whose known versions have the cause (see Known). nil
	// means every decoder, a user's own too: processors differ there.
	decoders []string
	applies  func(q []byte, ours, theirs Answer) bool
	// Why says who is right.
	why string
}

// causes are tried in order.
var causes = []cause{
	{"near-branch-66", nil, nearBranch66,
		"Intel's processors ignore 66 on near branches (SDM Vol. 1, 3.6.1 and Vol. 2, CALL: forced to 64 bits), and so do Zydis and the kernel's decoder; AMD's take a 16-bit displacement (APM Vol. 3, JMP), and these follow"},
	{"kernel-lengths", []string{"kernel"}, theyAccept,
		"the kernel's decoder finds lengths, and does not tell which opcodes exist"},
	{"kernel-classes", []string{"kernel"}, kernelClasses,
		"kprobes' rules do not tell system calls, far branches and returns from plain instructions, nor a far jump through memory from a near one"},
	{"knights-corner", []string{"zydis"}, knightsCorner,
		"Zydis decodes the vector and mask instructions of Knights Corner (MVEX, and VEX in maps 0 to 3), which no other processor has"},
	{"tdpfp16ps-distinct", []string{"zydis"}, fp16Tiles,
		"TDPFP16PS is of exception class AMX-E4 as the other dot products: its tiles have to be distinct (SDM Vol. 2, TDPFP16PS)"},
	{"newer-than-zydis", []string{"zydis"}, newerThanZydis,
		"an extension that Zydis 4.1 does not know, or not in this form: AVX10.2, CMPccXADD, MOVRS, AMX's of 2025, LKGS, FRED, USER_MSR, UDB and two of SEV-SNP (opcodes/ has the rows)"},
	{"prefix-alone", []string{"objdump", "llvm", "capstone"}, prefixAlone,
		"a prefix that has no effect, or is repeated, is listed as an instruction of its own; the processor takes it with what follows"},
	{"fwait", []string{"objdump"}, fwait,
		"objdump lists fwait and the x87 instruction after it as one, the assembler's mnemonic without n; they are two"},
	{"ud-modrm", []string{"capstone"}, udModRM,
		"ud0 and ud1 have a ModRM byte (SDM Vol. 2, UD); Capstone takes two bytes"},
	{"ret-66-rexw", []string{"capstone"}, ret66,
		"ret's immediate has two bytes whatever the operand size (SDM Vol. 2, RET); Capstone takes four with 66 and REX.W"},
	{"x86asm-override", []string{"x86asm"}, x86asmOverride,
		"a row that decoder.Overrides lists: x86asm does not know it, or has another length, or another instruction, for it or a part of it"},
	{"prefix-before-vex", []string{"x86asm"}, prefixBeforeVEX,
		"a segment or address-size prefix may stand before VEX and EVEX (SDM Vol. 2, 2.3.2 and 2.7); x86asm refuses it"},
	{"unused-rex", []string{"x86asm", "capstone"}, unusedREX,
		"a REX that does not stand directly before the opcode counts for nothing (SDM Vol. 2, 2.2.1); these refuse it"},
	{"undefined-prefix", checkLess, undefinedPrefix,
		"we refuse a row of opcodes/ for a prefix that the processor answers with #UD: LOCK before what cannot be locked, prefixes before VEX, EVEX and XOP; these versions check less"},
	{"undefined-operands", checkLess, undefinedOperands,
		"we refuse a row of opcodes/ for its operands, which the processor answers with #UD: registers that do not exist or have to be distinct, fields that are reserved; these versions check less"},
	{"row", nil, nil,
		"a row of decoder/compare/known/VERSION.txt: this version refuses a row of opcodes/, which has its manual, or accepts what has none"},
}

// checkLess are the decoders of which the known versions check less than the
// processor does.
var checkLess = []string{"objdump", "llvm", "capstone", "x86asm", "iced", "zydis"}

// Cause names the known cause of a difference between our answer and that of a
// decoder, "" where there is none. k is the version that the decoder is, nil for
// one that is not known.
func Cause(k *Known, q []byte, ours, theirs Answer) string {
	for _, c := range causes {
		switch {
		case c.applies == nil:
			if k.hasRow(q, ours, theirs) {
				return c.name
			}
		case c.decoders != nil && (k == nil || !slices.Contains(c.decoders, k.Name)):
		case c.applies(q, ours, theirs):
			return c.name
		}
	}
	return ""
}

// skipPrefixes returns the bytes after legacy prefixes and REX.
func skipPrefixes(q []byte) (rest []byte, size16 bool) {
	for len(q) > 0 && (decoder.IsLegacyPrefix(q[0]) || q[0]&0xF0 == 0x40) {
		size16 = size16 || q[0] == 0x66
		q = q[1:]
	}
	return q, size16
}

func knightsCorner(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	if ours.Length != 0 || theirs.Length == 0 || len(b) < 5 {
		return false
	}
	switch {
	case b[0] == 0x62:
		return b[2]&4 == 0 // MVEX has a 0 where EVEX has a 1
	case b[0] == 0xC5:
		return kncOpcode(b[2])
	case b[0] == 0xC4:
		m := b[1] & 0x1F
		return m <= 2 && kncOpcode(b[3]) || m == 3 && b[3] == 0x3E // kextract
	}
	return false
}

// kncOpcode: jkzd and jknzd, mask arithmetic, and the scalar bit counts and
// prefetches, whatever pp is.
func kncOpcode(op byte) bool {
	switch op {
	case 0x74, 0x75, 0x84, 0x85, 0x18, 0xB8, 0xBC, 0xBD, 0xAE:
		return true
	}
	return op >= 0x41 && op <= 0x49 || op >= 0x90 && op <= 0x98
}

func fp16Tiles(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return ours.Length == 0 && theirs.Length == 5 && len(b) > 4 &&
		b[0] == 0xC4 && b[1]&0x1F == 2 && b[2]&0x87 == 3 && b[3] == 0x5C && b[4] >= 0xC0
}

// newerExtensions are the extensions of rows that Zydis 4.1 has not.
var newerExtensions = []string{"AVX10_2", "CMPCCXADD", "MOVRS", "SM4", "AMX_AVX512", "AMX_TF32", "AMX_COMPLEX", "LKGS", "FRED", "USER_MSR", "SNP"}

func newerThanZydis(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && theirs.Length == 0 && ours.Length != 0 &&
		(slices.Contains(newerExtensions, i.Extension()) || i.Mnemonic() == "udb")
}

func nearBranch66(q []byte, ours, theirs Answer) bool {
	_, size16 := skipPrefixes(q)
	if !size16 || ours.Length == 0 || theirs.Length == 0 || ours.Class == nil {
		return false
	}
	switch *ours.Class {
	case decoder.ClassCall, decoder.ClassJmp, decoder.ClassJcc, decoder.ClassLoop:
		return true
	}
	return false
}

func udModRM(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return len(b) > 1 && b[0] == 0x0F && (b[1] == 0xB9 || b[1] == 0xFF) && ours.Length > theirs.Length && theirs.Length > 0
}

func ret66(q []byte, ours, theirs Answer) bool {
	b, size16 := skipPrefixes(q)
	return size16 && len(b) > 0 && (b[0] == 0xC2 || b[0] == 0xCA) && theirs.Length == ours.Length+2
}

// x86asmOverride: the row is one of x86asm's faults, and the difference is one that
// the fault's kind explains.
func x86asmOverride(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil {
		return false
	}
	o, ok := i.Override()
	switch o.Fault {
	case decoder.FaultSilent:
		return ok && theirs.Length == 0
	case decoder.FaultName:
		return ok && theirs.Length == ours.Length
	}
	return ok
}

func fwait(q []byte, _, _ Answer) bool {
	rest, _ := skipPrefixes(q)
	return len(rest) > 0 && rest[0] == 0x9B
}

// prefixAlone: they end where a prefix ends, or before one.
func prefixAlone(q []byte, _, theirs Answer) bool {
	rest, _ := skipPrefixes(q)
	prefixes := len(q) - len(rest)
	return prefixes > 0 && theirs.Length > 0 && theirs.Length <= prefixes
}

func theyAccept(_ []byte, ours, theirs Answer) bool { return ours.Length == 0 && theirs.Length != 0 }

func undefinedPrefix(q []byte, ours, theirs Answer) bool {
	_, err := decoder.Decode(q)
	return theyAccept(q, ours, theirs) && errors.Is(err, decoder.ErrPrefix)
}

func undefinedOperands(q []byte, ours, theirs Answer) bool {
	_, err := decoder.Decode(q)
	return theyAccept(q, ours, theirs) && errors.Is(err, decoder.ErrOperands)
}

func kernelClasses(_ []byte, ours, theirs Answer) bool {
	if ours.Length != theirs.Length || ours.Class == nil || theirs.Class == nil {
		return false
	}
	plain := *theirs.Class == decoder.ClassNone || *theirs.Class == decoder.ClassIndirectJmp
	return plain && (*ours.Class == decoder.ClassSyscall || *ours.Class == decoder.ClassFar)
}

func prefixBeforeVEX(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && theirs.Length == 0 && i.VexLen > 0 && i.PrefixLen > 0
}

func unusedREX(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil || theirs.Length != 0 {
		return false
	}
	for n := range int(i.PrefixLen) - 1 {
		if q[n]&0xF0 == 0x40 {
			return true
		}
	}
	return false
}
