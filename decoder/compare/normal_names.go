package compare

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"kprobelab/decoder"
)

// normalNames are other names of Intel's mnemonics, in GNU's syntax or older ones.
var normalNames = map[string]string{
	"jz": "je", "jnz": "jne", "jc": "jb", "jnae": "jb", "jnc": "jae", "jnb": "jae", "jna": "jbe", "jnbe": "ja", "jnge": "jl", "jnl": "jge",
	"jng": "jle", "jnle": "jg", "jpe": "jp", "jpo": "jnp", "cltq": "cdqe", "cwtl": "cwde", "cbtw": "cbw", "cltd": "cdq", "cqto": "cqo",
	"cwtd": "cwd", "movabs": "mov", "sal": "shl", "lret": "retf", "lcall": "callf", "ljmp": "jmpf", "movslq": "movsxd",
	"movsww": "movsx", "movzww": "movzx", "fcompi": "fcomip", "fucompi": "fucomip", "feni8087_nop": "fneni", "fdisi8087_nop": "fndisi",
	"fsetpm287_nop": "fnsetpm", "fstpnce": "fstp", "xstorerng": "xstore", "xstore-rng": "xstore",
	"movsbl": "movsx", "movsbw": "movsx", "movsbq": "movsx", "movswl": "movsx", "movswq": "movsx",
	"movzbl": "movzx", "movzbw": "movzx", "movzbq": "movzx", "movzwl": "movzx", "movzwq": "movzx", "movzb": "movzx", "movzw": "movzx",
	"ud2a": "ud2", "ud2b": "ud1", "icebp": "int1", "wait": "fwait", "iretd": "iret", "iretl": "iret", "xlatb": "xlat",
	"pushfq": "pushf", "popfq": "popf", "loopz": "loope", "loopnz": "loopne", "sysretq": "sysret", "sysretl": "sysret", "sysexitq": "sysexit", "sysexitl": "sysexit",
	"jecxz": "jrcxz", "retn": "ret", "enterq": "enter", "leaveq": "leave", "cmovz": "cmove", "cmovnz": "cmovne", "setz": "sete", "setnz": "setne",
}

var branches = map[string]bool{"call": true, "jmp": true, "loop": true, "loope": true, "loopne": true, "xbegin": true}

// rowNames are the mnemonics of all rows.
var rowNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, e := range decoder.Encodings() {
		for _, r := range decoder.Rows(e) {
			names[r.Mnemonic] = true
		}
	}
	return names
})

// conditions are the other names of conditions of cmov and set.
var conditions = map[string]string{
	"c": "b", "nae": "b", "nc": "ae", "nb": "ae", "z": "e", "nz": "ne", "na": "be", "nbe": "a", "pe": "p", "po": "np",
	"nge": "l", "nl": "ge", "ng": "le", "nle": "g",
}

// isCondition: a condition's own name, not another one.
func isCondition(name string) bool {
	return slices.Contains([]string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"}, name)
}

// isSourceCondition reports whether the name is a condition of ccmp and ctest.
func isSourceCondition(name string) bool {
	return isCondition(name) && name != "p" && name != "np" || name == "t" || name == "f"
}

// normalName is the normal form of a mnemonic. vector: it has vectors for operands, so that
// movsd is no string instruction.
func normalName(name string, vector bool) string {
	if strings.HasPrefix(name, "xcrypt") {
		return strings.NewReplacer("-", "", "_", "").Replace(name)
	}
	if c, ok := strings.CutPrefix(name, "cmp"); ok {
		if c, ok = strings.CutSuffix(c, "xadd"); ok && conditions[c] != "" {
			return "cmp" + conditions[c] + "xadd"
		}
	}
	if other, ok := normalNames[name]; ok {
		return other
	}
	for _, family := range []string{"ccmp", "ctest"} {
		c, ok := strings.CutPrefix(name, family)
		switch {
		case !ok || c == "":
		case isSourceCondition(c):
			return name
		case isSourceCondition(c[:len(c)-1]): // LLVM's size
			return name[:len(name)-1]
		}
	}
	names := rowNames()
	short := name
	if n := len(name); n > 2 && strings.IndexByte("bwlqstxyz", name[n-1]) >= 0 && !names[name] {
		short = name[:n-1]
		if long, ok := strings.CutSuffix(name, "ll"); ok && names[long] {
			short = long
		}
	}
	if other, ok := normalNames[short]; ok && short != name {
		return other
	}
	if string := strings.TrimRight(name, "bwdlq"); stringNames[string] && !vector && len(name)-len(string) <= 1 {
		return string
	}
	for _, family := range []string{"cfcmov", "cmov", "setzu", "set"} {
		if c, ok := strings.CutPrefix(short, family); ok && isCondition(c) {
			return short
		}
		if c, ok := strings.CutPrefix(short, family); ok && conditions[c] != "" {
			return family + conditions[c]
		}
		if c, ok := strings.CutPrefix(name, family); ok && conditions[c] != "" {
			return family + conditions[c]
		}
	}
	if names[short] {
		return short
	}
	return name
}

// predicateNames are the names of the immediates of cmpps and vcmpps, of vpcmpb and of vpcomb, in
// their order.
var (
	comparisonNames = []string{
		"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord", "eq_uq", "nge", "ngt", "false", "neq_oq", "ge", "gt", "true",
		"eq_os", "lt_oq", "le_oq", "unord_s", "neq_us", "nlt_uq", "nle_uq", "ord_s", "eq_us", "nge_uq", "ngt_uq", "false_os",
		"neq_os", "ge_oq", "gt_oq", "true_us",
	}
	maskNames = []string{"eq", "lt", "le", "false", "neq", "nlt", "nle", "true"}
	xopNames  = []string{"lt", "le", "gt", "ge", "eq", "neq", "false", "true"}
)

var (
	floatingSuffixes = []string{"ps", "pd", "ss", "sd", "ph", "sh", "bf16"}
	integerSuffixes  = []string{"ub", "uw", "ud", "uq", "b", "w", "d", "q"}
	// multiplicands are the halves that carry-less multiplications take.
	multiplicands = map[string]string{"lqlq": "0", "hqlq": "1", "lqhq": "16", "hqhq": "17"}
)

// unnamedPredicate puts the immediate that a predicate names in front of the operands.
func unnamedPredicate(name string, list []string) (string, []string) {
	for _, v := range []string{"", "v"} {
		middle, ok := strings.CutPrefix(name, v+"pclmul")
		middle, ok2 := strings.CutSuffix(middle, "dq")
		if n, ok3 := multiplicands[middle]; ok && ok2 && ok3 {
			return v + "pclmulqdq", slices.Insert(list, 0, n)
		}
	}
	for _, f := range []struct {
		stem     string
		names    []string
		suffixes []string
	}{
		{"vcmp", comparisonNames, floatingSuffixes}, {"cmp", comparisonNames[:8], floatingSuffixes},
		{"vpcmp", maskNames, integerSuffixes}, {"vpcom", xopNames, integerSuffixes},
	} {
		rest, ok := strings.CutPrefix(name, f.stem)
		if !ok {
			continue
		}
		for _, suffix := range f.suffixes {
			predicate, ok := strings.CutSuffix(rest, suffix)
			if n := slices.Index(f.names, predicate); ok && n >= 0 {
				// vpcmpeqb is an instruction of its own, which leads to the same mask.
				if f.stem == "vpcmp" && !(len(list) > 0 && strings.HasPrefix(list[len(list)-1], "k")) {
					continue
				}
				return f.stem + suffix, slices.Insert(list, 0, strconv.Itoa(n))
			}
		}
	}
	return name, list
}
