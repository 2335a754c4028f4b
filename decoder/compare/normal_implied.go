package compare

import (
	"slices"
	"strings"
)

// onlyImplied are instructions all of whose operands are fixed registers, which some
// write.
var onlyImplied = map[string]bool{
	"nop": true, "xlat": true, "monitor": true, "monitorx": true, "mwait": true, "mwaitx": true, "vmload": true, "vmrun": true, "vmsave": true,
	"skinit": true, "invlpga": true, "clzero": true, "rmpupdate": true, "rmpread": true, "rmpquery": true, "pvalidate": true, "rmpadjust": true,
	"invlpgb": true, "psmash": true, "xstore": true,
}

// maskInXMM0 are instructions whose first operand is always xmm0.
var maskInXMM0 = map[string]bool{"pblendvb": true, "blendvps": true, "blendvpd": true, "sha256rnds2": true}

// topImplied are x87's instructions that have the stack's top for their second operand,
// and without an operand st(1).
var topImplied = map[string]bool{"fcom": true, "fcomp": true, "fucom": true, "fucomp": true, "fxch": true}

// popsImplied are the x87 instructions with st(0) and st(1) as default operands.
var popsImplied = map[string]bool{"faddp": true, "fmulp": true, "fsubp": true, "fsubrp": true, "fdivp": true, "fdivrp": true}

// addressOnly are instructions that take an address and read nothing there, so that a
// segment counts for nothing.
var addressOnly = map[string]bool{"lea": true, "bndcl": true, "bndcu": true, "bndcn": true, "bndmk": true}

// normalImplied leaves out operands that some decoders write and others imply: a shift by one,
// fixed registers, the accumulator and ports of string instructions, the segment of an address that
// is not read.
func normalImplied(name string, list []string) (string, []string) {
	memory := func(o string) bool {
		return strings.HasSuffix(o, "(rsi)") || strings.HasSuffix(o, "(rdi)") || strings.HasSuffix(o, "(esi)") || strings.HasSuffix(o, "(edi)")
	}
	for n, o := range list {
		if o == "(dx)" && (name == "in" || name == "out" || name == "ins" || name == "outs") {
			list[n] = "dx"
		}
	}
	switch {
	case onlyImplied[name]:
		return name, nil
	case name == "xchg" && len(list) == 2 && list[0] == list[1] && (list[0] == "ax" || list[0] == "rax"):
		return "nop", nil // of eax it would clear the high half
	case name == "xchg" || name == "test":
		slices.Sort(list)
	case shifts[name] && len(list) >= 2 && list[0] == "1":
		return name, list[1:]
	case stringNames[strings.TrimRight(name, "bwdq")] && len(list) == 2 && (memory(list[0]) || memory(list[1])):
		return name, nil
	case name == "imul" && len(list) == 3 && list[1] == list[2], topImplied[name] && len(list) == 2:
		return name, list[:len(list)-1]
	case topImplied[name] && len(list) == 0:
		return name, []string{"st(1)"}
	case popsImplied[name] && len(list) == 0:
		return name, []string{"st(0)", "st(1)"}
	case maskInXMM0[name] && len(list) == 3 && list[0] == "xmm0":
		return name, list[1:]
	case addressOnly[name]:
		for n, o := range list {
			list[n] = strings.TrimPrefix(strings.TrimPrefix(o, "fs:"), "gs:")
		}
	}
	return name, list
}

var shifts = map[string]bool{"shl": true, "shr": true, "sar": true, "rol": true, "ror": true, "rcl": true, "rcr": true}

var stringNames = map[string]bool{"movs": true, "cmps": true, "stos": true, "lods": true, "scas": true, "ins": true, "outs": true}

// exchangedNames are x87's instructions whose names GNU's syntax exchanges.
var exchangedNames = map[string]string{
	"fsub": "fsubr", "fsubr": "fsub", "fdiv": "fdivr", "fdivr": "fdiv",
	"fsubp": "fsubrp", "fsubrp": "fsubp", "fdivp": "fdivrp", "fdivrp": "fdivp",
}

// exchangedName is Intel's name of an instruction in GNU's syntax.
func exchangedName(name string, list []string) string {
	other, ok := exchangedNames[name]
	switch {
	case !ok:
	case strings.HasSuffix(name, "p"):
		return other
	case len(list) == 2 && strings.HasPrefix(list[1], "%st("):
		return other
	}
	return name
}
