package compare

import (
	"errors"
	"slices"
	"strings"

	"kprobelab/decoder"
)

// A cause is a known difference between decoders, with the decoder that is right and the reason.
// docs/decoder.md shows the list.
type cause struct {
	name string
	// decoders names the decoders whose known versions have the cause (see Known). nil
	// means every decoder, a user's own too: processors differ there.
	decoders []string
	applies  func(q []byte, ours, theirs Answer) bool
	// why names the decoder that is right, and the reason.
	why string
}

// causes are tried in order. Differences between texts have textCauses.
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
		"an extension that Zydis 4.1 does not know, or not in this form: AVX10.2, CMPccXADD, MOVRS, AMX's of 2025, LKGS, FRED, USER_MSR, MSR_IMM, UDB and two of SEV-SNP (opcodes/ has the rows)"},
	{"apx", []string{"zydis", "iced", "capstone", "x86asm", "objdump"}, apx,
		"APX (REX2, EVEX map 4, X4 and B4), which these versions do not know; they read other instructions, or none"},
	{"prefix-of-no-row", []string{"llvm", "objdump", "capstone", "x86asm"}, prefixOfNoRow,
		"the opcode has a row without 66, F3 or F2, none with it: reserved, #UD (SDM Vol. 2, 2.1.1 and Table A-3); these versions pass over the prefix"},
	{"no-such-register", []string{"llvm", "objdump", "capstone", "x86asm"}, noSuchRegister,
		"mov to cs, or with a segment, control or debug register that does not exist: #UD (SDM Vol. 2, MOV); these versions do not look"},
	{"evex-length", []string{"llvm", "capstone"}, evexLength,
		"L'L of 3 is reserved where it is no rounding (SDM Vol. 2, 2.7.4); these versions read it as 0 or 2"},
	{"rex2-opcode", []string{"llvm"}, rex2Opcode,
		"REX2 may not stand before prefixes, escapes and some rows of opcodes, nor after REX (APX Architecture Specification, 3.1.2; Intel's XED and Bitdefender's disassembler refuse REX before it, too); LLVM takes it before all"},
	{"apx-no-base", []string{"llvm"}, apxNoBase,
		"base 5 with mod 0 is a displacement whatever B3 and B4 say (SDM Vol. 2, Table 2-3); LLVM 22 takes r21 and r29 for a base"},
	{"apx-fields", []string{"llvm"}, apxFields,
		"an instruction of APX by EVEX with a pp, W, L'L, z, vvvv or aaa that it has not (APX Architecture Specification, 3.1.4); LLVM 22 does not look at all of them"},
	{"cut-off", []string{"llvm"}, cutOff,
		"an instruction by EVEX of whose displacement the string has not all bytes is none; LLVM 22 reads some as if they had no displacement"},
	{"padlock-without-rep", []string{"llvm"}, padlock,
		"VIA's PadLock needs F3 but for xstore; LLVM does not look"},
	{"f8-with-67", []string{"llvm"}, f8With67,
		"0F 38 F8 is movdir64b with 66 alone, and urdmsr and uwrmsr may have 67; LLVM has it the other way round"},
	{"w-of-no-row", []string{"llvm"}, wOfNoRow,
		"vcvtps2dq and vcvtph2dq by EVEX and tcmmrlfp16ps have W 0 (SDM Vol. 2); LLVM takes 1, too"},
	{"extrq-vmread", []string{"llvm"}, extrqVmread,
		"66 makes extrq of 0F 78, also before another prefix or REX2 (APM Vol. 4, EXTRQ); LLVM reads vmread then"},
	{"zhaoxin", []string{"iced", "objdump"}, padlock,
		"instructions of Zhaoxin's processors (sm2, xsha512 and their kin), which these tables leave out"},
	{"skinit", []string{"iced"}, skinit,
		"skinit goes on in the secure loader (APM Vol. 3, SKINIT), to iced as a return; it has no class here"},
	{"mandatory-not-last", []string{"llvm"}, mandatoryNotLast,
		"66, F3 or F2 counts wherever it stands among the prefixes (SDM Vol. 2, 2.1.1); LLVM does not find some opcodes where another prefix, or REX2 with W, stands after it"},
	{"mask-register-b", []string{"llvm", "objdump"}, maskRegisterB,
		"a mask register in ModRM.rm has three bits, VEX.B and EVEX.B count for nothing (as in Zydis and iced; SDM Vol. 2, 2.7.2 forbids it for reg and vvvv alone); these versions refuse it"},
	{"extrq-reg", []string{"llvm", "objdump", "capstone"}, extrqReg,
		"extrq with two immediates has 0 in ModRM.reg (APM Vol. 4, EXTRQ); these versions do not look"},
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

// Cause names the known cause of a difference between our answer and a decoder's, "" if there is
// none. k is the decoder's version, nil if it is unknown.
func Cause(k *Known, q []byte, ours, theirs Answer) string {
	list := causes
	switch whatDiffers(ours, theirs) {
	case "mnemonic", "operands":
		list = textCauses
	}
	for _, c := range list {
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
var newerExtensions = []string{"AVX10_2", "CMPCCXADD", "MOVRS", "SM4", "AMX_AVX512", "AMX_TF32", "AMX_COMPLEX", "AMX_FP8", "AMX_MOVRS", "LKGS", "FRED", "USER_MSR", "MSR_IMM", "SNP"}

func newerThanZydis(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && theirs.Length == 0 && ours.Length != 0 &&
		(slices.Contains(newerExtensions, i.Extension()) || i.Mnemonic() == "udb")
}

func nearBranch66(q []byte, ours, theirs Answer) bool {
	_, size16 := skipPrefixes(q)
	if _, err := decoder.Decode(q); (err == decoder.ErrTooLong || err == decoder.ErrTruncated) && theirs.Class != nil {
		ours = theirs // two bytes less are enough for them
	}
	if !size16 || ours.Length == 0 || theirs.Length == 0 || ours.Class == nil {
		return false
	}
	switch *ours.Class {
	case decoder.ClassCall, decoder.ClassJmp, decoder.ClassJcc, decoder.ClassLoop:
		return true
	}
	return false
}

// usesAPX: REX2, EVEX map 4, or the bits of EVEX that name more registers.
func usesAPX(i *decoder.Inst) bool { return i.Extension() == "APX_F" }

func apx(q []byte, ours, _ Answer) bool {
	i, err := decoder.Decode(q)
	return ours.Length != 0 && err == nil && usesAPX(&i)
}

// prefixOfNoRow: without all or some of 66, F3 and F2, it is an instruction of an escaped opcode.
func prefixOfNoRow(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	if !theyAccept(q, ours, theirs) || len(b) == 0 || b[0] != 0x0F {
		return false
	}
	for _, left := range [][]byte{{0xF2, 0xF3}, {0xF2}, {0x66}, {0x66, 0xF2, 0xF3}, {0xF0, 0xF2, 0xF3}, {0xF0, 0x66, 0xF2, 0xF3}} {
		kept := slices.DeleteFunc(slices.Clone(q[:len(q)-len(b)]), func(c byte) bool { return slices.Contains(left, c) })
		fewer := len(q) - len(kept) - len(b)
		i, err := decoder.Decode(append(kept, b...))
		if err == nil && fewer > 0 && i.Length == theirs.Length-fewer {
			return true
		}
	}
	return false
}

func padlock(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return theyAccept(q, ours, theirs) && len(b) > 2 && b[0] == 0x0F && b[1]&^1 == 0xA6 && b[2] >= 0xC0
}

func f8With67(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	switch {
	case !slices.Contains(q[:len(q)-len(b)], 0x67) || len(b) < 5 || ours.Length != 0 && theirs.Length != 0:
		return false
	case b[0] == evex:
		return b[1]&7 == 4 && b[4] == 0xF8
	}
	return b[0] == 0x0F && b[1] == 0x38 && b[2] == 0xF8
}

func wOfNoRow(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	if !theyAccept(q, ours, theirs) || len(b) < 5 || b[2]&0x80 == 0 {
		return false
	}
	return b[0] == evex && b[1]&3 == 1 && b[2]&3 == 1 && b[4] == 0x5B || b[0] == 0xC4 && b[1]&0x1F == 2 && b[3] == 0x6C
}

func skinit(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && i.Mnemonic() == "skinit" && ours.Length == theirs.Length
}

// mandatoryNotLast: of an escaped opcode with 66, F3 or F2 the last prefix is another one,
// REX2 with W among them.
func mandatoryNotLast(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil || theirs.Length != 0 || i.Encoding == decoder.EncPrimary || i.VexLen != 0 {
		return false
	}
	mandatory := 0
	for _, c := range q[:i.PrefixLen] {
		switch {
		case c == 0x66 || c == 0xF2 || c == 0xF3:
			mandatory++
		case decoder.IsLegacyPrefix(c) && mandatory > 0:
			return true
		}
	}
	return mandatory > 1 || mandatory > 0 && i.REX == rex2 && i.REX2&8 != 0
}

func maskRegisterB(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil || theirs.Length != 0 || i.VexLen < 3 || i.ModRM < 0xC0 || q[i.PrefixLen+1]&0x20 != 0 && q[i.PrefixLen+1]&0x40 != 0 {
		return false
	}
	return i.Mnemonic()[0] == 'k' || strings.HasPrefix(i.Mnemonic(), "vpmovm2") || strings.HasPrefix(i.Mnemonic(), "vpbroadcastm")
}

func extrqVmread(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && i.Encoding == decoder.Enc0F && i.Mnemonic() == "extrq" && theirs.Length == ours.Length-2
}

func extrqReg(q []byte, ours, theirs Answer) bool {
	b, size16 := skipPrefixes(q)
	return theyAccept(q, ours, theirs) && size16 && len(b) > 2 && b[0] == 0x0F && b[1] == 0x78 && b[2] >= 0xC8
}

// noSuchRegister: moves with segment, control and debug registers.
func noSuchRegister(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return theyAccept(q, ours, theirs) && len(b) > 1 &&
		(b[0] == 0x8C || b[0] == 0x8E || b[0] == 0x0F && b[1]&^3 == 0x20)
}

// evexLength: with another L'L it is an instruction.
func evexLength(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	at := len(q) - len(b)
	if !theyAccept(q, ours, theirs) || len(b) < 6 || b[0] != evex || b[3]&0x60 != 0x60 {
		return false
	}
	other := slices.Clone(q)
	other[at+1] |= 0x90 // R3 and R4, of mask registers
	other[at+2] |= 4    // X4
	for _, length := range []byte{0, 0x20, 0x40} {
		for _, keep := range []byte{0x9F, 0x1F} { // with and without z
			other[at+3] = q[at+3]&keep | length
			if _, err := decoder.Decode(other); err == nil || errors.Is(err, decoder.ErrOperands) {
				return true
			}
		}
	}
	return false
}

const (
	rex2 = 0xD5
	evex = 0x62
)

func rex2Opcode(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return theyAccept(q, ours, theirs) && len(b) > 0 && b[0] == rex2
}

func apxNoBase(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && usesAPX(&i) && i.HasSIB && i.SIB&7 == 5 && i.ModRM < 0x40 && theirs.Length == ours.Length-int(i.DispLen)
}

// apxFields: with other values of the fields that LLVM does not look at it is an
// instruction of APX.
func apxFields(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	at := len(q) - len(b)
	if !theyAccept(q, ours, theirs) || len(b) < 6 || b[0] != evex {
		return false
	}
	for _, clear := range []byte{0, 0x01, 0x83} { // pp, W
		for _, vvvv := range []byte{b[2] & 0x78, 0x78} {
			other := append([]byte{evex, b[1], b[2]&^0x78&^clear | vvvv | 4, b[3]&0x1C | 8*(vvvv>>6)}, b[4:]...)
			i, err := decoder.Decode(other)
			map4 := b[1]&7 == 4 && errors.Is(err, decoder.ErrOperands)
			if err == nil && usesAPX(&i) && i.Length == theirs.Length-at || map4 {
				return true
			}
		}
	}
	return false
}

func cutOff(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return theyAccept(q, ours, theirs) && len(b) >= 6 && len(b) < 10 && b[0] == evex &&
		theirs.Length == len(q)-len(b)+6 && (b[5]>>6 == 1 && len(b) == 6 || b[5]>>6 == 2)
}

func udModRM(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return len(b) > 1 && b[0] == 0x0F && (b[1] == 0xB9 || b[1] == 0xFF) && ours.Length > theirs.Length && theirs.Length > 0
}

func ret66(q []byte, ours, theirs Answer) bool {
	b, size16 := skipPrefixes(q)
	return size16 && len(b) > 0 && (b[0] == 0xC2 || b[0] == 0xCA) && theirs.Length == ours.Length+2
}

// x86asmOverride: the row is one of x86asm's faults, and the fault's kind explains the difference.
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
