package assemble

import (
	"fmt"
	"regexp"
	"strings"
)

// IntelError says that a text is in Intel's syntax, with its first such line.
type IntelError struct{ Line string }

func (e *IntelError) Error() string {
	return fmt.Sprintf("this is Intel syntax, by the line %q; GNU syntax is understood", e.Line)
}

// intelWord is a register without a percent sign, or the size of memory before brackets.
var intelWord = regexp.MustCompile(`(?i)(^|[\s,\[+*-])([re]?(ax|bx|cx|dx|si|di|bp|sp)|[abcd][lh]|[sd]il|[sb]pl|r\d+[dwb]?|rip|[bwdq]word ptr|byte ptr|word ptr)($|[\s,\]+*-])`)

// firstIntel returns the first line of a text that is in Intel's syntax, and none if a line is in GNU syntax.
func firstIntel(text string) (string, bool) {
	if strings.ContainsAny(text, "%") {
		return "", false
	}
	for s := range strings.Lines(text) {
		s, _, _ = strings.Cut(s, ";")
		if _, operands, ok := strings.Cut(strings.TrimSpace(s), " "); ok && intelWord.MatchString(operands) {
			return strings.TrimSpace(s), true
		}
	}
	return "", false
}

// FromIntel writes a text of Intel's syntax in GNU syntax.
func FromIntel(text string) string {
	var b strings.Builder
	for s := range strings.Lines(text) {
		s, _, _ = strings.Cut(strings.TrimRight(s, "\r\n"), ";")
		b.WriteString(strings.TrimRight(fromIntel(s), " \t") + "\n")
	}
	return b.String()
}

var (
	intelLabel  = regexp.MustCompile(`^\s*[\w.$]+:`)
	intelMemory = regexp.MustCompile(`(?i)^(?:(byte|word|dword|qword)\s+ptr\s+)?(?:([cdefgs]s):)?([\w.$@+-]*)\[([^\]]*)\]$`)
	intelBare   = regexp.MustCompile(`(?i)^(byte|word|dword|qword)\s+ptr\s+(?:([c-g]s|ss):)?([\w.$@+-]+)$`)
	intelScaled = regexp.MustCompile(`^(\w+)\*([1248])$`)
	intelOffset = regexp.MustCompile(`(?i)^offset\s+(?:flat:)?`)
	// sizeLetters are the letters of memory's sizes.
	sizeLetters = map[string]string{"byte": "b", "word": "w", "dword": "l", "qword": "q"}
	// intelNames are mnemonics with another name in GNU syntax.
	intelNames = map[string]string{"cdqe": "cltq", "cqo": "cqto", "cdq": "cltd", "cwde": "cwtl", "movsxd": "movslq"}
)

// fromIntel writes a line.
func fromIntel(s string) string {
	label := intelLabel.FindString(s)
	rest := strings.TrimSpace(s[len(label):])
	switch {
	case strings.HasPrefix(rest, ".intel_syntax"):
		return label
	case rest == "", strings.HasPrefix(rest, "."):
		return s
	}
	var words []string
	name, operands, _ := strings.Cut(strings.Join(strings.Fields(rest), " "), " ")
	for prefixes[strings.ToLower(name)] != 0 && operands != "" {
		words = append(words, strings.ToLower(name))
		name, operands, _ = strings.Cut(operands, " ")
	}
	name = strings.ToLower(name)
	if n := intelNames[name]; n != "" {
		name = n
	}
	branch := strings.HasPrefix(name, "j") || name == "call"
	letter, source := "", ""
	var list []string
	for _, one := range split(strings.ReplaceAll(strings.ReplaceAll(operands, "[", "[("), "]", ")]")) {
		one = strings.ReplaceAll(strings.ReplaceAll(one, "[(", "["), ")]", "]")
		gnu, size := intelOperand(one, branch)
		if size != "" {
			letter = size
		}
		if len(list) == 1 {
			if source = size; source == "" {
				source = string(sizeOf(strings.ToLower(one)))
			}
		}
		list = append(list, gnu)
	}
	switch {
	case name == "movzx" || name == "movsx" || name == "movslq":
		if len(list) == 2 && name != "movslq" {
			name = strings.TrimSuffix(name, "x") + strings.Trim(source, "\x00") + string(sizeOf(strings.TrimPrefix(list[0], "%")))
		}
	case letter != "" && !branch && !hasRegister(list):
		name += letter
	case letter != "" && (strings.HasPrefix(name, "sh") || strings.HasPrefix(name, "sa") || strings.HasPrefix(name, "ro") || strings.HasPrefix(name, "rc")):
		name += letter // cl says nothing of the size
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return label + "\t" + strings.TrimSpace(strings.Join(append(words, name), " ")+" "+strings.Join(list, ","))
}

func hasRegister(list []string) bool {
	for _, x := range list {
		if strings.HasPrefix(x, "%") && !strings.Contains(x, ":") {
			return true
		}
	}
	return false
}

// intelOperand writes an operand, with the letter of memory's size if that is written.
func intelOperand(s string, branch bool) (gnu, size string) {
	star := ""
	if branch {
		star = "*"
	}
	s = strings.TrimSpace(s)
	low := strings.ToLower(s)
	if _, is := numbers[low]; is {
		return star + "%" + low, ""
	}
	if m := intelMemory.FindStringSubmatch(s); m != nil {
		return star + intelAddress(m[2], m[3], m[4]), sizeLetters[strings.ToLower(m[1])]
	}
	if m := intelBare.FindStringSubmatch(s); m != nil {
		return star + intelAddress(m[2], m[3], ""), sizeLetters[strings.ToLower(m[1])]
	}
	if m := intelOffset.FindString(s); m != "" {
		return "$" + s[len(m):], ""
	}
	if branch {
		return s, ""
	}
	return "$" + s, ""
}

// intelAddress writes base + index * scale + number, with a symbol before it or in it.
func intelAddress(segment, symbol, inside string) string {
	base, index, scale := "", "", ""
	disp := symbol
	for _, term := range strings.Fields(strings.ReplaceAll(strings.ReplaceAll(inside, "+", " +"), "-", " -")) {
		bare := strings.TrimPrefix(term, "+")
		low := strings.ToLower(bare)
		_, is := numbers[low]
		switch m := intelScaled.FindStringSubmatch(low); {
		case m != nil:
			index, scale = "%"+m[1], m[2]
		case (is || low == "rip") && base == "":
			base = "%" + low
		case is:
			index, scale = "%"+low, "1"
		case disp == "":
			disp = bare
		default:
			disp += map[bool]string{true: "", false: "+"}[strings.HasPrefix(bare, "-")] + bare
		}
	}
	if segment != "" {
		segment = "%" + strings.ToLower(segment) + ":"
	}
	switch {
	case base == "" && index == "":
		if segment == "" && symbol != "" {
			return disp + "(%rip)" // what a compiler means by a symbol alone
		}
		return segment + disp
	case index != "":
		return segment + disp + "(" + base + "," + index + "," + scale + ")"
	}
	return segment + disp + "(" + base + ")"
}
