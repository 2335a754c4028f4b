package compare

import (
	"slices"
	"strconv"
	"strings"

	"kprobelab/decoder"
)

// textCauses are the known causes of differences between texts, where length, class and
// target are the same. They are tried in order.
var textCauses = []cause{
	{"rex2-vector", []string{"llvm"}, rex2Vector,
		"R4, X4 and B4 of REX2 name general registers alone: legacy SSE and MMX have none above 15 (APX Architecture Specification, 3.1.2); LLVM 22 gives vector registers the bit, too"},
	{"evex-b4-vector", []string{"llvm"}, evexB4Vector,
		"the fifth bit of a vector register in ModRM.rm is EVEX.X3, and B4 counts for nothing (SDM Vol. 2, Table 2-32; APX Architecture Specification, 3.1.4); LLVM 22 takes B4 for it, and names a register of another class where both are set"},
	{"last-segment", []string{"llvm"}, lastSegment,
		"CS, DS, ES and SS prefixes count for nothing in 64-bit mode, also after FS or GS (SDM Vol. 1, 3.3.7.1); LLVM takes the last segment prefix"},
	{"near-branch-66-text", []string{"llvm", "iced", "zydis"}, indirectBranch66,
		"66 before an indirect near branch: GNU's text names the register of 16 bits, which assembles to the same bytes; the others name the 64 bits that Intel's processors take (SDM Vol. 2, JMP and CALL)"},
	{"register-size", []string{"llvm", "iced", "zydis"}, registerSize,
		"GNU's text names a register by the operand size, REX.W or 66, where the instruction reads or writes a part of fixed size of it: selectors (lsl, lar, verr, mov to a segment), masks (pmovmskb), elements (pextrw, pinsrb), ud0 and ud1 and their like; these versions name another size of the same register"},
	{"movsxd-66", []string{"iced", "zydis"}, movsxd66,
		"movsxd with 66 reads 16 bits (SDM Vol. 2, MOVSXD), which these versions show; GNU's text has the register of 32"},
	{"newer-row", []string{"llvm", "iced", "zydis"}, newerRow,
		"an instruction that these versions do not know (SEV-SNP, MCOMMIT, MOVRS); they read the one that the opcode is without the prefix, or the hint no-operation that it was"},
	{"wbnoinvd", []string{"zydis"}, wbnoinvd,
		"F3 0F 09 is wbnoinvd, wbinvd where the processor has it not (SDM Vol. 2, WBNOINVD); Zydis reads it so only with a mode of its own"},
	{"prefix-passed-over", []string{"llvm"}, prefixPassedOver,
		"66 and F3 make another instruction of the opcode wherever they stand among the prefixes (SDM Vol. 2, 2.1.1), also with REX.W; LLVM passes over them where another prefix or REX.W follows, and for 0F 1C"},
	{"prefetchit-rip", []string{"llvm", "iced", "zydis"}, prefetchit,
		"prefetchit0 and prefetchit1 have an operand relative to rip; with another it is a no-operation (SDM Vol. 2, PREFETCHh), which GNU's text says and these versions do not"},
	{"prefetch-3", []string{"iced"}, prefetch3,
		"0F 0D /3 prefetches for writing on AMD's processors (APM Vol. 3, Table A-7); GNU's text and Zydis say prefetch, iced prefetchw"},
	{"number-cut", []string{"iced"}, numberCut,
		"iced for JavaScript cuts a number of 64 bits to 32 where it decides whether that is 0 to 9: an immediate or an address of 0x100000003 is written 3 (SDM Vol. 2, MOV: eight bytes)"},
	{"bound-scale", []string{"iced", "zydis"}, boundScale,
		"bndldx and bndstx take base and index apart, and the scale counts for nothing (SDM Vol. 2, BNDLDX); these versions leave it out"},
	{"misspelled", []string{"zydis"}, misspelled,
		"Zydis 4.1.1 names PFRSQRT pfsqrt and PFRCPIT1 pfcpit1 (APM Vol. 5)"},
	{"no-base-67", []string{"zydis"}, noBase67,
		"base 5 with mod 0 is a displacement alone whatever REX.B says (SDM Vol. 2, Table 2-5); with 67 Zydis writes r13d"},
	{"pcommit", []string{"zydis"}, named("pcommit", "pcommit"),
		"PCOMMIT was withdrawn (Intel, 2016), and processors execute sfence; Zydis has the older name"},
	{"pause-rex", []string{"llvm"}, pauseREX,
		"F3 90 is pause also with REX (SDM Vol. 2, PAUSE; Zydis, iced and objdump read it so); LLVM reads xchg with REX.W or REX.B"},
	{"xchg-rex2", []string{"llvm"}, named("nop", "nop"),
		"REX2.B4 makes 90 an exchange with r16 (APX Architecture Specification, 3.1.2); LLVM 22 reads nop"},
	{"67-for-66", []string{"llvm"}, addressForSize,
		"67 changes the address alone, and only 66 makes clflush clflushopt, mfence tpause (SDM Vol. 2, CLFLUSHOPT and TPAUSE); LLVM takes 67 with REX.W for it"},
	{"mvex", []string{"zydis"}, mvex,
		"EVEX with a clear bit 2 of its second byte is APX's X4 (APX Architecture Specification, 3.1.4); Zydis 4.1 reads Knights Corner's MVEX, which has registers of 64 bytes alone"},
	{"mask-pair", []string{"llvm"}, maskPair,
		"vp2intersect writes the pair of mask registers that has the one of ModRM.reg (SDM Vol. 2, VP2INTERSECTD); LLVM names the pair's first, the others the field"},
	{"short-displacement", []string{"llvm"}, shortDisplacement,
		"instructions of EVEX map 4 do not scale a displacement of one byte (APX Architecture Specification, 3.1.4); LLVM 22 scales it by 16 for setcc"},
	{"turned-round", []string{"llvm"}, turnedRound,
		"urdmsr and the vmovd and vmovw of AVX10.2 that store have their destination in ModRM.rm (SDM Vol. 2, URDMSR; AVX10.2 Architecture Specification, VMOVD and VMOVW); LLVM 22 turns the operands round"},
	{"push-66-rex2", []string{"llvm"}, push66,
		"push and pop with 66 have 16 bits, with REX2, too (SDM Vol. 2, PUSH); LLVM 22 names 64"},
}

// whichText returns the operands of both in the normal form, if the mnemonics are the same.
func whichText(ours, theirs Answer) (o, t []string, same bool) {
	m, p := Normal(ours.Text)
	n, r := Normal(theirs.Text)
	return splitOperands(p), splitOperands(r), m == n
}

// operandsDiffer: the mnemonics are the same, and so are the operands except for pairs
// that differ, of each of which may is true.
func operandsDiffer(ours, theirs Answer, may func(o, t string) bool) bool {
	o, t, same := whichText(ours, theirs)
	if !same || len(o) != len(t) {
		return false
	}
	for n := range o {
		if o[n] != t[n] && !may(o[n], t[n]) {
			return false
		}
	}
	return true
}

// vectorRegister: xmm, ymm, zmm.
func vectorRegister(o string) bool {
	return len(o) > 3 && strings.IndexByte("xyz", o[0]) >= 0 && o[1:3] == "mm"
}

func vectorsOnly(o, t string) bool { return vectorRegister(o) || sameRegister(o, t) }

func rex2Vector(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && i.REX == rex2 && operandsDiffer(ours, theirs, vectorsOnly)
}

func evexB4Vector(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil || i.VexLen != 4 || i.ModRM < 0xC0 || q[i.PrefixLen+1]&8 == 0 {
		return false
	}
	return operandsDiffer(ours, theirs, vectorsOnly)
}

func lastSegment(q []byte, ours, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	var segments []byte
	for _, c := range q[:len(q)-len(b)] {
		switch c {
		case 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65:
			segments = append(segments, c)
		}
	}
	n := len(segments)
	if n < 2 || segments[n-1] >= 0x64 {
		return false
	}
	o, t, same := whichText(ours, theirs)
	for n := range o {
		o[n] = withoutSegment(o[n])
	}
	slices.Sort(o) // test's and xchg's are sorted
	slices.Sort(t)
	return same && slices.Equal(o, t)
}

func withoutSegment(o string) string {
	return strings.TrimPrefix(strings.TrimPrefix(o, "fs:"), "gs:")
}

func indirectBranch66(q []byte, ours, theirs Answer) bool {
	_, size16 := skipPrefixes(q)
	i, err := decoder.Decode(q)
	return err == nil && size16 && (i.Class == decoder.ClassIndirectCall || i.Class == decoder.ClassIndirectJmp) &&
		operandsDiffer(ours, theirs, sameRegister)
}

// sizeless are the mnemonics of register-size.
var sizeless = []string{
	"lsl", "lar", "verr", "verw", "lkgs", "ud0", "ud1", "pmovmskb", "movmskps", "movmskpd", "vpmovmskb", "vmovmskps", "vmovmskpd", "pinsrw", "pextrw",
	"pinsrb", "pextrb", "extractps", "vpinsrw", "vpextrw", "vpinsrb", "vpextrb", "vextractps", "vmovw", "umwait", "tpause", "senduipi",
	"enqcmd", "enqcmds", "movdir64b",
}

func registerSize(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil {
		return false
	}
	segment := i.Encoding == decoder.EncPrimary && i.Opcode&^2 == 0x8C
	return (segment || slices.Contains(sizeless, i.Mnemonic())) && operandsDiffer(ours, theirs, sameRegister)
}

// sameRegister: the names of one general register.
func sameRegister(o, t string) bool { return widest(o) != "" && widest(o) == widest(t) }

// widest returns the 64-bit name of a general register, "" for another operand.
func widest(o string) string {
	for n, name := range []string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"} {
		if o == name || o == "r"+name || o == "e"+name || n >= 4 && o == name+"l" || n < 4 && o == name[:1]+"l" {
			return "r" + name
		}
	}
	if n, ok := strings.CutPrefix(o, "r"); ok && n != "" && n[0] <= '9' {
		return strings.TrimRight(o, "bwd")
	}
	return ""
}

func movsxd66(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && i.Mnemonic() == "movsxd" && operandsDiffer(ours, theirs, sameRegister)
}

// without: theirs is the text of the bytes without these prefixes.
func without(q []byte, theirs Answer, prefixes string) bool {
	return nearly(withoutPrefixes(q, prefixes), theirs)
}

// withoutPrefixes leaves out REX, too, where REX2 follows: it would stand before that.
func withoutPrefixes(q []byte, prefixes string) []byte {
	b, _ := skipPrefixes(q)
	kept := slices.DeleteFunc(slices.Clone(q[:len(q)-len(b)]), func(c byte) bool {
		return strings.IndexByte(prefixes, c) >= 0 || c&0xF0 == 0x40 && len(b) > 0 && b[0] == rex2
	})
	return append(kept, b...)
}

func newerRow(q []byte, _, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil {
		return false
	}
	switch i.Extension() {
	case "SNP", "SEV_ES", "MCOMMIT":
		return without(q, theirs, "\x66\xF3\xF2")
	case "MOVRS":
		m, _ := Normal(theirs.Text)
		return m == "nop"
	}
	return false
}

func pauseREX(q []byte, ours, theirs Answer) bool {
	return named("pause", "xchg")(q, ours, theirs) || named("pause", "nop")(q, ours, theirs)
}

// addressForSize: with 66 in front theirs is the text of 0F AE.
func addressForSize(q []byte, _, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	if len(b) < 2 || b[0] != 0x0F || b[1] != 0xAE || !slices.Contains(q[:len(q)-len(b)], 0x67) {
		return false
	}
	return nearly(append([]byte{0x66}, q...), theirs)
}

// nearly: theirs is the text of the bytes, except for the segment, the size of general
// registers and the numbers of vectors, which other causes explain.
func nearly(q []byte, theirs Answer) bool {
	return operandsDiffer(Answer{Text: decoder.Text(q, 0)}, theirs, func(o, t string) bool {
		return withoutSegment(o) == withoutSegment(t) || sameRegister(o, t) || vectorRegister(o) && vectorRegister(t)
	})
}

func mvex(q []byte, _, theirs Answer) bool {
	b, _ := skipPrefixes(q)
	return len(b) > 2 && b[0] == evex && b[2]&4 == 0 && strings.Contains(theirs.Text, "zmm")
}

func wbnoinvd(q []byte, ours, theirs Answer) bool {
	return named("wbnoinvd", "wbinvd")(q, ours, theirs)
}

// named: the row has that mnemonic, their text the other one.
func named(row, text string) func(q []byte, ours, theirs Answer) bool {
	return func(q []byte, _, theirs Answer) bool {
		i, err := decoder.Decode(q)
		m, _ := Normal(theirs.Text)
		return err == nil && i.Mnemonic() == row && m == text
	}
}

func prefixPassedOver(q []byte, _, theirs Answer) bool {
	i, err := decoder.Decode(q)
	if err != nil || i.VexLen != 0 || i.Encoding == decoder.EncPrimary {
		return false
	}
	if i.REX == rex2 && i.Encoding == decoder.Enc0F && i.Opcode == 0xAE && strings.Contains(theirs.Text, "xsaveopt64") {
		return true // which has no REX2 here
	}
	return slices.ContainsFunc([]string{"\x66", "\xF3", "\xF2", "\x66\xF3", "\x66\xF2", "\xF2\xF3", "\x66\xF3\xF2"}, func(prefixes string) bool {
		kept := withoutPrefixes(q, prefixes)
		return nearly(kept, theirs) || rex2Vector(kept, Answer{Text: decoder.Text(kept, 0)}, theirs)
	})
}

func prefetchit(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && strings.HasPrefix(i.Mnemonic(), "prefetchit") && !i.RIPRelative && named(i.Mnemonic(), i.Mnemonic())(q, ours, theirs)
}

func prefetch3(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && i.ModRM>>3&7 == 3 && named("prefetch", "prefetchw")(q, ours, theirs)
}

func numberCut(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	low := uint64(uint32(i.Imm()))
	return err == nil && i.ImmLen == 8 && low <= 9 && operandsDiffer(ours, theirs, func(_, t string) bool {
		return strings.TrimPrefix(t, "$") == strconv.FormatUint(low, 10)
	})
}

func boundScale(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && (i.Mnemonic() == "bndldx" || i.Mnemonic() == "bndstx") && operandsDiffer(ours, theirs, func(o, t string) bool {
		// an index alone is like a base
		alone := func(s string) string { return strings.Replace(s, "(,", "(", 1) }
		if at := len(o) - 3; at > 0 && o[at] == ',' { // the scale
			o = o[:at] + ")"
		}
		return alone(o) == alone(t)
	})
}

func misspelled(q []byte, ours, theirs Answer) bool {
	return named("pfrsqrt", "pfsqrt")(q, ours, theirs) || named("pfrcpit1", "pfcpit1")(q, ours, theirs)
}

func noBase67(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && i.HasSIB && i.SIB&7 == 5 && i.ModRM < 0x40 && operandsDiffer(ours, theirs, func(_, t string) bool {
		return strings.Contains(t, "(r13d")
	})
}

func maskPair(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && strings.HasPrefix(i.Mnemonic(), "vp2intersect") && operandsDiffer(ours, theirs, func(o, t string) bool {
		return len(o) == 2 && len(t) == 2 && o[0] == 'k' && o[1]&^1 == t[1]
	})
}

func shortDisplacement(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	return err == nil && i.Encoding == decoder.EncEvex4 && i.DispLen == 1 && strings.HasPrefix(i.Mnemonic(), "set") &&
		operandsDiffer(ours, theirs, func(_, _ string) bool { return true })
}

func turnedRound(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	store := i.Encoding == decoder.EncEvex0F && i.Opcode == 0xD6 || i.Encoding == decoder.EncEvex5 && i.Opcode == 0x7E
	if err != nil || i.Mnemonic() != "urdmsr" && !store {
		return false
	}
	o, t, same := whichText(ours, theirs)
	slices.Reverse(t)
	return same && slices.Equal(o, t)
}

func push66(q []byte, ours, theirs Answer) bool {
	i, err := decoder.Decode(q)
	_, size16 := skipPrefixes(q)
	return err == nil && i.REX == rex2 && size16 && (i.Mnemonic() == "push" || i.Mnemonic() == "pop") && operandsDiffer(ours, theirs, sameRegister)
}
