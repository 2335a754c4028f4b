package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kprobelab/decoder"
)

// The normal form of an instruction's text lets two decoders be compared that write
// differently. It is the mnemonic, a blank, and the operands in GNU's order with
// commas between them:
//
//   - Intel's syntax is read, too: its operands are turned round. A text with a percent
//     sign, or with a dollar sign, is GNU's.
//   - prefixes that stand before the mnemonic are left out, and so are a branch's hint
//     and a branch's target, which is compared by itself;
//   - the mnemonic is Intel's name in opcodes/: a size suffix goes where the rest is
//     such a name, and the aliases of normalNames are one;
//   - the flags of ccmp and ctest belong to the mnemonic, {nf} is a prefix; what xchg and
//     test have on either side is in the order of the alphabet;
//   - registers have no percent sign; numbers are decimal, and stand for the sign
//     extension of the shortest of 1, 2, 4 and 8 bytes that holds them: $0xff, $-1 and
//     $0xffffffff are the same;
//   - a memory operand is seg:disp(base,index,scale), without a size; a displacement of 0
//     and a scale of 1 are left out; the displacement is a number of 64 bits.
//
// Normal returns both parts; the mnemonic is "" for a text without one.
func Normal(text string) (mnemonic string, operands string) {
	text = strings.ToLower(strings.TrimSpace(text))
	if _, after, ok := strings.Cut(text, "{rex2 0x"); ok {
		_, text, _ = strings.Cut(after, "}")
		text = strings.TrimSpace(text)
	}
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, " <")
	text, flags := cutFlags(text)
	gnu := strings.ContainsAny(text, "%$")
	name, rest := splitMnemonic(text)
	list := splitOperands(rest)
	if !gnu {
		slices.Reverse(list)
	}
	name = normalName(name)
	if name == "movq" && !strings.Contains(rest, "mm") { // a size, not MMX's and SSE's
		name = "mov"
	}
	if branches[name] || strings.HasPrefix(name, "j") {
		if len(list) == 1 && !strings.ContainsAny(list[0], "%*[(") && !isRegister(list[0]) {
			list = nil
		}
	}
	for n, o := range list {
		list[n] = normalOperand(o)
	}
	return name + flags, strings.Join(normalImplied(name, list), ",")
}

// cutFlags takes {dfv=of, cf} out of a text; the flags belong to the mnemonic.
func cutFlags(text string) (rest, flags string) {
	before, after, ok := strings.Cut(text, "{dfv=")
	if !ok {
		return text, ""
	}
	flags, after, _ = strings.Cut(after, "}")
	return before + after, "{" + strings.ReplaceAll(flags, " ", "") + "}"
}

// whatTextDiffers is "mnemonic", "operands" or "".
func whatTextDiffers(ours, theirs string) string {
	if ours == theirs {
		return ""
	}
	m, o := Normal(ours)
	n, p := Normal(theirs)
	switch {
	case m != n:
		return "mnemonic"
	case o != p:
		return "operands"
	}
	return ""
}

// textPrefixes stand before a mnemonic.
var textPrefixes = map[string]bool{
	"lock": true, "rep": true, "repn": true, "repe": true, "repne": true, "repz": true, "repnz": true, "bnd": true, "notrack": true,
	"data16": true, "data32": true, "addr32": true, "addr16": true, "addr": true, "xacquire": true, "xrelease": true, "cs": true, "ds": true, "es": true, "fs": true,
	"gs": true, "ss": true, "{vex}": true, "{vex3}": true, "{vex2}": true, "{evex}": true, "{load}": true, "{store}": true, "{disp8}": true, "{disp32}": true,
	"{nf}": true, "{rex2}": true,
}

// splitMnemonic skips prefixes.
func splitMnemonic(text string) (name, rest string) {
	for {
		name, rest, _ = strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
		rest = strings.TrimSpace(rest)
		if rest == "" || !textPrefixes[name] && !strings.HasPrefix(name, "rex") {
			break
		}
		text = rest
	}
	name, _, _ = strings.Cut(name, ",") // jne,pn
	return name, rest
}

// splitOperands splits at commas that are in no brackets.
func splitOperands(s string) (list []string) {
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if s = strings.TrimSpace(s[start:]); s != "" {
		list = append(list, s)
	}
	return list
}

// normalNames are other names of Intel's mnemonics, in GNU's syntax or older ones.
var normalNames = map[string]string{
	"jz": "je", "jnz": "jne", "jc": "jb", "jnae": "jb", "jnc": "jae", "jnb": "jae", "jna": "jbe", "jnbe": "ja", "jnge": "jl", "jnl": "jge",
	"jng": "jle", "jnle": "jg", "jpe": "jp", "jpo": "jnp", "cltq": "cdqe", "cwtl": "cwde", "cbtw": "cbw", "cltd": "cdq", "cqto": "cqo",
	"cwtd": "cwd", "movabs": "mov", "sal": "shl", "lret": "retf", "lcall": "callf", "ljmp": "jmpf", "movslq": "movsxd",
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

// isSourceCondition: one of ccmp's and ctest's.
func isSourceCondition(name string) bool {
	return isCondition(name) && name != "p" && name != "np" || name == "t" || name == "f"
}

func normalName(name string) string {
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
	if n := len(name); n > 2 && strings.IndexByte("bwlqst", name[n-1]) >= 0 && !names[name] {
		short = name[:n-1]
	}
	if other, ok := normalNames[short]; ok && short != name {
		return other
	}
	if string := strings.TrimRight(name, "bwdlq"); stringNames[string] && len(name)-len(string) <= 1 {
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

// normalImplied leaves out what some write and others imply: a shift by one, and the
// accumulator and ports of string instructions.
func normalImplied(name string, list []string) []string {
	memory := func(o string) bool {
		return strings.HasSuffix(o, "(rsi)") || strings.HasSuffix(o, "(rdi)") || strings.HasSuffix(o, "(esi)") || strings.HasSuffix(o, "(edi)")
	}
	for n, o := range list {
		if o == "(dx)" && (name == "in" || name == "out" || name == "ins" || name == "outs") {
			list[n] = "dx"
		}
	}
	switch {
	case name == "xlat", name == "nop":
		return nil
	case name == "xchg" || name == "test":
		slices.Sort(list)
	case shifts[name] && len(list) >= 2 && list[0] == "1":
		return list[1:]
	case stringNames[strings.TrimRight(name, "bwdq")] && len(list) == 2 && (memory(list[0]) || memory(list[1])):
		return nil
	}
	return list
}

var shifts = map[string]bool{"shl": true, "shr": true, "sar": true, "rol": true, "ror": true, "rcl": true, "rcr": true}

var stringNames = map[string]bool{"movs": true, "cmps": true, "stos": true, "lods": true, "scas": true, "ins": true, "outs": true}

func isRegister(s string) bool {
	s = strings.TrimPrefix(s, "%")
	switch {
	case len(s) < 2 || len(s) > 6:
		return false
	case s[0] == 'r' || s[0] == 'e':
		return true
	}
	return len(s) == 2 && strings.IndexByte("xlhpis", s[1]) >= 0
}

// normalOperand is a register, a number or memory.
func normalOperand(o string) string {
	o = strings.TrimPrefix(strings.TrimSpace(o), "*")
	o, decorators := cutDecorators(o)
	switch {
	case strings.ContainsAny(o, "("):
		return gnuMemory(o) + decorators
	case strings.Contains(o, "["):
		return intelMemory(o) + decorators
	}
	if n, ok := number(strings.TrimPrefix(o, "$")); ok {
		return n + decorators
	}
	o = strings.ReplaceAll(o, "%", "")
	if n, ok := strings.CutPrefix(o, "db"); ok { // debug registers
		o = "dr" + n
	}
	if o == "st" {
		o = "st(0)"
	}
	if seg, at, ok := strings.Cut(o, ":"); ok && len(seg) == 2 { // an absolute address
		if n, ok := number(at); ok {
			return segment(seg) + n + decorators
		}
	}
	return o + decorators
}

// cutDecorators splits off {%k1}{z} and {1to8}.
func cutDecorators(o string) (operand, decorators string) {
	if i := strings.IndexByte(o, '{'); i > 0 {
		return strings.TrimSpace(o[:i]), strings.NewReplacer(" ", "", "%", "").Replace(o[i:])
	}
	return o, ""
}

// number is a number of any base and sign in the normal form; false for another text.
func number(s string) (string, bool) {
	s = strings.TrimPrefix(s, "+")
	t, negative := strings.CutPrefix(s, "-")
	v, ok := unsigned(t)
	if !ok {
		return "", false
	}
	if negative {
		v = -v
	}
	for _, bits := range []int{8, 16, 32} {
		if v>>bits == 0 && v>>(bits-1) == 1 {
			return strconv.FormatInt(int64(v<<(64-bits))>>(64-bits), 10), true
		}
	}
	return strconv.FormatInt(int64(v), 10), true
}

func unsigned(s string) (uint64, bool) {
	v, err := strconv.ParseUint(s, 0, 64)
	if h, ok := strings.CutSuffix(s, "h"); err != nil && ok {
		v, err = strconv.ParseUint(h, 16, 64)
	}
	return v, err == nil
}

// displacement is a number of 64 bits: its sign decides the address.
func displacement(s string) (string, bool) {
	t, negative := strings.CutPrefix(strings.TrimPrefix(s, "+"), "-")
	v, ok := unsigned(t)
	if negative {
		v = -v
	}
	return strconv.FormatInt(int64(v), 10), ok
}

// segment keeps the two that have an address of their own.
func segment(name string) string {
	if name == "fs" || name == "gs" {
		return name + ":"
	}
	return ""
}

// memoryText is seg:disp(base,index,scale).
func memoryText(seg, disp, base, index, scale string) string {
	if narrow(base) || narrow(index) { // addresses of 32 bits wrap round
		if v, err := strconv.ParseInt(disp, 10, 64); err == nil {
			disp = strconv.FormatInt(int64(int32(v)), 10)
		}
	}
	if disp == "0" {
		disp = ""
	}
	if index == "riz" || index == "eiz" {
		index, scale = "", ""
	}
	if scale == "1" {
		scale = ""
	}
	text := base
	if index != "" {
		text += "," + index
		if scale != "" {
			text += "," + scale
		}
	}
	if text == "" {
		return segment(seg) + disp
	}
	return fmt.Sprintf("%s%s(%s)", segment(seg), disp, text)
}

// narrow: a register of 32 bits that an address has.
func narrow(name string) bool {
	return strings.HasPrefix(name, "e") || strings.HasPrefix(name, "r") && strings.HasSuffix(name, "d")
}

func gnuMemory(o string) string {
	o = strings.ReplaceAll(o, "%", "")
	if strings.HasPrefix(o, "st(") {
		return o
	}
	seg, rest, ok := strings.Cut(o, ":")
	if !ok {
		seg, rest = "", o
	}
	head, inside, _ := strings.Cut(rest, "(")
	disp := head
	if n, ok := displacement(head); ok {
		disp = n
	}
	parts := append(strings.Split(strings.TrimSuffix(strings.TrimSpace(inside), ")"), ","), "", "")
	return memoryText(seg, disp, strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2]))
}

func intelMemory(o string) string {
	head, rest, _ := strings.Cut(o, "[")
	inside, _, _ := strings.Cut(rest, "]")
	seg := ""
	for _, f := range strings.Fields(head) {
		if s, ok := strings.CutSuffix(f, ":"); ok {
			seg = s
		}
	}
	if s, more, ok := strings.Cut(inside, ":"); ok {
		seg, inside = s, more
	}
	var disp, base, index, scale string
	inside = strings.ReplaceAll(strings.ReplaceAll(inside, " ", ""), "-", "+-")
	for _, part := range strings.Split(inside, "+") {
		name, times, scaled := strings.Cut(part, "*")
		if n, ok := displacement(part); ok {
			disp = n
		} else if scaled {
			if _, err := strconv.Atoi(name); err == nil {
				name, times = times, name
			}
			index, scale = name, times
		} else if base == "" {
			base = part
		} else {
			index = part
		}
	}
	return memoryText(seg, disp, base, index, scale)
}
