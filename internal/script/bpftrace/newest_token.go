package bpftrace

import (
	"regexp"
	"slices"
	"strings"
)

// durations are the units of a number of nanoseconds.
var durations = map[string]uint64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9}

var durationRE = regexp.MustCompile(`^([0-9](?:[0-9_]*[0-9])?)(ns|us|ms|s|m|h|d)`)

// duration reads a number with a unit of time. It returns false if there is none.
func (l *lexer) duration(s string) bool {
	m := durationRE.FindStringSubmatch(s)
	if m == nil || identRE.MatchString(s[len(m[0]):]) {
		return false
	}
	v, err := parseInt(m[1])
	if err != "" {
		return false
	}
	l.take(len(m[0]))
	l.add(tInt, m[0])
	l.list[len(l.list)-1].num = v * durations[m[2]]
	return true
}

// nest counts the braces: a colon in a block belongs to no probe's name.
func (l *lexer) nest(op kind) {
	switch op {
	case "{":
		l.depth++
	case "}":
		l.depth = max(l.depth-1, 0)
	}
}

// tagged reads struct, union or enum with its name, or a definition of one.
func (l *lexer) tagged(word string) {
	l.take(len(word))
	l.add(tStruct, word)
	s := l.rest()
	blanks := len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	name := identRE.FindString(s[blanks:])
	after := strings.TrimLeft(s[blanks+len(name):], " \t\r\n")
	if l.depth == 0 && strings.HasPrefix(after, "{") {
		l.structure2(word)
		return
	}
	for range blanks {
		l.take(1)
	}
	l.step = l.here
	if name != "" {
		l.take(len(name))
		l.add(tIdent, word+" "+name)
	}
}

// structure2 reads a definition up to the semicolon after its last brace. Attributes may stand before it.
func (l *lexer) structure2(word string) {
	s := l.rest()
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth > 0 {
				continue
			}
			n := i + 1
			rest := strings.TrimLeft(s[n:], " \t")
			if strings.HasPrefix(rest, "__attribute__") || strings.HasPrefix(rest, ";") {
				if end := strings.IndexByte(s[n:], ';'); end >= 0 {
					n += end + 1
				}
			}
			k := tDefinition
			if word == "enum" {
				k = tEnumDef
			}
			l.add(k, word+l.take(n))
			return
		}
	}
	l.take(len(s))
}

const (
	tBool    kind = "bool"
	tMacro   kind = "macro"
	tImport  kind = "import"
	tTypeof  kind = "typeof"
	tComp    kind = "comptime"
	tDiscard kind = "_"
)

// newestWords are the words that are new keywords.
var newestWords = map[string]kind{
	"true": tBool, "false": tBool, "macro": tMacro, "import": tImport, "typeof": tTypeof, "typeinfo": tTypeof, "comptime": tComp, "_": tDiscard,
}

// newestBuiltins are the words that became builtin variables.
var newestBuiltins = []string{"ppid", "pcomm", "leader_tid", "leader_comm", "ncpus", "usermode", "probetype", "has_cpid"}

// newestKind returns the kind of a word; old is its kind in 0.23.
func newestKind(word string, old kind) kind {
	switch k, ok := newestWords[word]; {
	case ok:
		return k
	case strings.HasPrefix(word, "sarg") && old == tBuiltin:
		return tIdent
	case slices.Contains(newestBuiltins, word):
		return tBuiltin
	case old == tStackMode, old == tCall:
		return tIdent // the word has a meaning as an argument, or before a parenthesis
	}
	return old
}
