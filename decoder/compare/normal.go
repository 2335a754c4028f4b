package compare

import (
	"slices"
	"strings"
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
//   - the flags of ccmp and ctest and the rounding belong to the mnemonic, {nf} is a prefix;
//     what xchg and test have on either side is in the order of the alphabet;
//   - a predicate in a mnemonic is the immediate that it names: vcmpeqps is vcmpps with 0;
//   - x87's fsub, fsubr, fdiv and fdivr, which GNU's syntax exchanges where the destination
//     is not the stack's top, have Intel's names;
//   - operands that an instruction cannot do without are left out, see normalImplied;
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
	text, _, _ = strings.Cut(text, "(8087 only)")
	text, _, _ = strings.Cut(text, "(287 only)")
	text, flags := cutFlags(text)
	gnu := strings.ContainsAny(text, "%$")
	name, rest := splitMnemonic(text)
	name, rest = farName(name, rest)
	list, rounding := cutRounding(splitOperands(rest))
	if !gnu && name != "enter" { // whose operands have the same order in both
		slices.Reverse(list)
	}
	name = normalName(name, strings.Contains(rest, "mm"))
	if gnu || len(list) == 0 {
		name = exchangedName(name, list)
	}
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
	name, list = unnamedPredicate(name, list)
	name, list = normalImplied(name, list)
	return name + flags + rounding, strings.Join(list, ",")
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

// cutRounding takes {rn-sae} or {sae} out of the operands: in some texts it is an operand, in some
// it follows one.
func cutRounding(list []string) (rest []string, rounding string) {
	for _, o := range list {
		for _, r := range []string{"{rn-sae}", "{rd-sae}", "{ru-sae}", "{rz-sae}", "{sae}"} {
			if before, ok := strings.CutSuffix(o, r); ok {
				o, rounding = strings.TrimSpace(before), r
			}
		}
		if o != "" {
			rest = append(rest, o)
		}
	}
	return rest, rounding
}

// farName is the name of Intel's "ret far", "call far" and "jmp far".
func farName(name, rest string) (string, string) {
	if after, ok := strings.CutPrefix(rest+" ", "far "); ok && (name == "ret" || name == "call" || name == "jmp") {
		return name + "f", strings.TrimSpace(after)
	}
	return name, rest
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
