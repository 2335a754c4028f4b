package bpftrace

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
)

// kind is the kind of a token; those with a fixed text are this text.
type kind string

const (
	tEnd         kind = "end of file"
	tEndPred     kind = "end predicate"
	tBuiltin     kind = "builtin"
	tCall        kind = "call"
	tCallBuiltin kind = "call_builtin"
	tIntType     kind = "integer type"
	tBuiltinType kind = "builtin type"
	tSizedType   kind = "sized type"
	tFn          kind = "subprog"
	tIdent       kind = "identifier"
	tPath        kind = "path"
	tDirective   kind = "preprocessor directive"
	tDefinition  kind = "struct definition"
	tEnumDef     kind = "enum"
	tString      kind = "string"
	tMap         kind = "map"
	tVar         kind = "variable"
	tParam       kind = "positional parameter"
	tParamCount  kind = "$#"
	tInt         kind = "integer"
	tStackMode   kind = "stack_mode"
	tStruct      kind = "struct"
)

type token struct {
	kind kind
	text string
	num  uint64
	at   span
}

// words are the words that are no identifiers.
var words = func() map[string]kind {
	m := map[string]kind{}
	add := func(k kind, list string) {
		for _, w := range strings.Fields(list) {
			m[w] = k
		}
	}
	add(tStackMode, "bpftrace perf raw")
	add(tBuiltin, "args cgroup comm cpid numaid cpu ctx curtask elapsed func gid pid probe rand retval tid uid username jiffies")
	for i := range 10 {
		add(tBuiltin, fmt.Sprintf("arg%d sarg%d", i, i))
	}
	add(tCall, `avg buf cat cgroupid clear count delete exit hist join kaddr kptr ksym len lhist macaddr max min ntop override
		print printf cgroup_path reg signal stats str strerror strftime strncmp strcontains sum system time uaddr uptr usym
		zero path unwatch bswap skboutput pton debugf has_key percpu_kaddr`)
	add(tCallBuiltin, "kstack ustack nsecs")
	add(tFn, "fn")
	add(tIntType, "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64")
	add(tBuiltinType, `void min_t max_t sum_t count_t avg_t stats_t umin_t umax_t usum_t ucount_t uavg_t ustats_t probe_t
		lhist_t hist_t usym_t ksym_t timestamp macaddr_t cgroup_path_t strerror_t kstack_t ustack_t`)
	add(tSizedType, "string inet buffer")
	for _, w := range strings.Fields("if else unroll while config for return continue break sizeof offsetof let") {
		m[w] = kind(w)
	}
	return m
}()

// operators, longest first.
var operators = []kind{
	"<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "++", "--", "->",
	":", ";", "{", "}", "[", "]", "(", ")", ",", "=", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", ".", "?",
}

var (
	identRE = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*`)
	pathRE  = regexp.MustCompile(`^:(\\.|[_\-./a-zA-Z0-9#+*])+`)
	numRE   = regexp.MustCompile(`^(0[xX][0-9a-fA-F]+|[0-9]([0-9_]*[0-9])?([uU]?[lL]?[lL]|[uU])?[eE][0-9]([0-9_]*[0-9])?([uU]?[lL]?[lL]|[uU])?|[0-9]([0-9_]*[0-9])?([uU]?[lL]?[lL]|[uU])?)`)
	endPred = regexp.MustCompile(`^/[ \t\r\n]*[/{]`)
	octRE   = regexp.MustCompile(`^[0-7]{1,3}`)
	hexRE   = regexp.MustCompile(`^[xX][0-9a-fA-F]{1,2}`)
)

// lexer makes tokens of a script.
type lexer struct {
	f *file
	// at is the offset, step where the token's place begins: after the last blank.
	at         int
	here, step pos
	macros     map[string]string
	// language is the version of the language; depth is the number of open braces.
	language Language
	depth    int
	// expanding is the number of macros around this text, one inside another. expanded counts all expansions of
	// the script.
	expanding int
	expanded  *int
	problems  *Problems
	list      []token
}

func (l *lexer) fail(format string, a ...any) {
	l.problems.list = append(l.problems.list, &Problem{Message: fmt.Sprintf(format, a...), at: span{l.step, l.here}})
}

func (l *lexer) rest() string { return l.f.text[l.at:] }

// take goes over n bytes.
func (l *lexer) take(n int) string {
	s := l.f.text[l.at : l.at+n]
	l.at += n
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		l.here = pos{l.here.line + strings.Count(s, "\n"), len(s) - i}
	} else {
		l.here.col += n
	}
	return s
}

func (l *lexer) add(k kind, text string) {
	l.list = append(l.list, token{kind: k, text: text, at: span{l.step, l.here}})
}

// lex makes the tokens, with macros in their places; the last one is the end of the file.
func lex(f *file, macros map[string]string, language Language, problems *Problems) []token {
	l := &lexer{f: f, language: language, here: pos{1, 1}, step: pos{1, 1}, macros: macros, expanded: new(int), problems: problems}
	if strings.HasPrefix(f.text, "#!") {
		l.take(max(strings.IndexByte(f.text+"\n", '\n'), 0))
	}
	for l.at < len(f.text) && len(l.list) < bounded.Tokens {
		l.next()
	}
	if len(l.list) >= bounded.Tokens {
		l.fail("the script is too long")
	}
	l.add(tEnd, "")
	return l.list
}

func (l *lexer) next() {
	s := l.rest()
	switch c := s[0]; {
	case c == ' ' || c == '\t':
		l.take(1)
		l.step = l.here
	case c == '\n' || c == '\r':
		l.take(1)
		l.step = l.here
	case strings.HasPrefix(s, "//"):
		l.take(strings.IndexByte(s+"\n", '\n'))
	case strings.HasPrefix(s, "/*"):
		end := strings.Index(s[2:], "*/")
		if end < 0 {
			l.take(len(s))
			l.fail("end of file during comment")
			return
		}
		l.take(end + 4)
	case c == '"':
		l.text()
	case c == '#':
		line := s[:strings.IndexByte(s+"\n", '\n')]
		l.take(len(line))
		if len(line) < 2 || line[1] == '!' {
			l.fail("invalid character '#'")
			return
		}
		l.add(tDirective, line)
	case c == '@':
		n := len(identRE.FindString(s[1:]))
		l.add2(tMap, n+1)
	case c == '$':
		l.dollar(s)
	case c >= '0' && c <= '9':
		if l.language.newest() && l.duration(s) {
			return
		}
		n := numRE.FindString(s)
		l.take(len(n))
		v, err := parseInt(n)
		if err != "" {
			l.fail("%s", err) // the tool goes on without the number
			return
		}
		l.add(tInt, n)
		l.list[len(l.list)-1].num = v
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		l.word(identRE.FindString(s))
	default:
		l.operator(s)
	}
}

func (l *lexer) add2(k kind, n int) { l.add(k, l.take(n)); l.list[len(l.list)-1].at.to = l.here }

func (l *lexer) dollar(s string) {
	switch {
	case strings.HasPrefix(s, "$#"):
		l.add2(tParamCount, 2)
	case identRE.MatchString(s[1:]):
		l.add2(tVar, 1+len(identRE.FindString(s[1:])))
	default:
		n := 1
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 1 {
			l.take(1)
			l.fail("invalid character '$'")
			return
		}
		l.add2(tParam, n)
	}
}

func (l *lexer) operator(s string) {
	if p := pathRE.FindString(s); p != "" && !(l.language.newest() && l.depth > 0) {
		l.add2(tPath, len(p))
		return
	}
	if endPred.MatchString(s) {
		l.add2(tEndPred, 1)
		return
	}
	for _, op := range operators {
		if strings.HasPrefix(s, string(op)) {
			if l.add2(op, len(op)); op == ":" && !l.language.newest() {
				l.colon()
			}
			l.nest(op)
			return
		}
	}
	l.take(1)
	l.fail("invalid character '%s'", s[:1])
}

// colon goes over the blanks after one. bpftrace reads the character that follows twice, but for a type's name,
// which is one word there.
func (l *lexer) colon() {
	for l.at < len(l.f.text) && strings.IndexByte(" \t\r\n", l.f.text[l.at]) >= 0 {
		l.take(1)
		l.step = l.here
	}
	word := identRE.FindString(l.rest())
	if word != "struct" && word != "union" && word != "enum" {
		l.here.col++
		return
	}
	l.add2(tStruct, len(word))
	for l.at < len(l.f.text) && strings.IndexByte(" \t\r\n", l.f.text[l.at]) >= 0 {
		l.take(1)
		l.step = l.here
	}
	if name := identRE.FindString(l.rest()); name != "" {
		l.take(len(name))
		l.add(tIdent, word+" "+name)
	}
}

func (l *lexer) word(w string) {
	switch w {
	case "struct", "union", "enum":
		if l.language.newest() {
			l.tagged(w)
		} else {
			l.structure(w)
		}
		return
	}
	if text, ok := l.macros[w]; ok && words[w] == "" && text != w {
		l.expand(w, text)
		return
	}
	l.take(len(w))
	k := tIdent
	if known, ok := words[w]; ok {
		k = known
	}
	if l.language.newest() {
		k = newestKind(w, k)
	}
	l.add(k, w)
}

// expand puts a macro's tokens in place of its name.
func (l *lexer) expand(name, text string) {
	l.take(len(name))
	if *l.expanded++; l.expanding > 16 || *l.expanded > bounded.BpftraceMacros {
		if *l.expanded > 2*bounded.BpftraceMacros {
			return
		}
		*l.expanded = 2 * bounded.BpftraceMacros
		l.fail("Macro recursion limit reached: %s, %s", name, text)
		return
	}
	in := &lexer{f: newFile(l.f.name, text), here: l.here, step: l.step, macros: l.macros, language: l.language, depth: l.depth, expanding: l.expanding + 1, expanded: l.expanded, problems: l.problems}
	for in.at < len(text) && len(l.list)+len(in.list) < bounded.Tokens {
		in.next()
	}
	l.list = append(l.list, in.list...)
	l.depth = in.depth
	l.here, l.step = in.here, in.step // bpftrace puts the text into the line
}

// structure is a type's name, or its definition.
func (l *lexer) structure(word string) {
	l.take(len(word))
	l.add(tStruct, word)
	s := l.rest()
	depth := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '{':
			depth++
		case c == '}':
			depth--
			if depth > 0 {
				continue
			}
			n := i + 1
			if n < len(s) && s[n] == ';' {
				n++
			}
			k := tDefinition
			if word == "enum" {
				k = tEnumDef
			}
			l.add(k, word+l.take(n))
			return
		case depth == 0 && (c == '*' || c == ')' || c == ','):
			l.take(i)
			l.here.col++ // bpftrace reads what follows twice
			l.add(tIdent, word+" "+strings.Trim(s[:i], " "))
			return
		case depth == 0 && (c == '[' || c == ';'):
			// A type's name before its size is read as one.
			if c == '[' {
				l.take(i)
				l.here.col++
				l.add(tIdent, word+" "+strings.Trim(s[:i], " "))
				return
			}
		}
	}
	l.take(len(s))
}

// text is a string.
func (l *lexer) text() {
	l.take(1)
	var b strings.Builder
	for {
		s := l.rest()
		if s == "" || s[0] == '\n' {
			l.fail("unterminated string")
			if s != "" {
				l.take(1)
			}
			return
		}
		switch {
		case s[0] == '"':
			l.take(1)
			l.add(tString, b.String())
			return
		case s[0] != '\\':
			b.WriteString(l.take(1))
		default:
			l.escape(s[1:], &b)
		}
	}
}

func (l *lexer) escape(s string, b *strings.Builder) {
	if s == "" || s[0] == '\n' {
		l.take(1)
		l.fail("invalid character")
		return
	}
	if i := strings.IndexByte(`ntr"\`, s[0]); i >= 0 {
		b.WriteByte("\n\t\r\"\\"[i])
		l.take(2)
		return
	}
	if o := octRE.FindString(s); o != "" {
		v, _ := strconv.ParseUint(o, 8, 16)
		l.take(1 + len(o))
		if v > math.MaxUint8 {
			l.fail(`octal escape sequence out of range '\%s'`, o)
		}
		b.WriteByte(byte(v))
		return
	}
	if h := hexRE.FindString(s); h != "" {
		v, _ := strconv.ParseUint(h[1:], 16, 8)
		l.take(1 + len(h))
		b.WriteByte(byte(v))
		return
	}
	l.take(2)
	l.fail(`invalid escape character '\%s'`, s[:1])
}

// The messages for a text that is no number: one of C++'s library, and one of bpftrace's own.
const (
	noInt    = "stoull"
	trailing = "Found trailing non-numeric characters"
)

// parseUint reads a number without an exponent, as C++'s stoull does with base 0. err is the message for a mistake, ""
// for none.
func parseUint(text string) (v uint64, err string) {
	n := strings.TrimRight(strings.ReplaceAll(text, "_", ""), "uUlL")
	digits, base, all := n, 10, "0123456789"
	switch {
	case len(n) > 2 && (n[:2] == "0x" || n[:2] == "0X"):
		digits, base, all = n[2:], 16, "0123456789abcdefABCDEF"
	case len(n) > 1 && n[0] == '0':
		base, all = 8, "01234567"
	}
	rest := strings.TrimLeft(digits, all)
	v, e := strconv.ParseUint(digits[:len(digits)-len(rest)], base, 64)
	switch {
	case e != nil:
		return 0, noInt
	case rest != "":
		return 0, trailing
	}
	return v, ""
}

// parseInt reads a number of the script. err is the message for a mistake, "" for none.
func parseInt(text string) (v uint64, err string) {
	coeff, exp, ok := strings.Cut(strings.ToLower(strings.TrimRight(strings.ReplaceAll(text, "_", ""), "uUlL")), "e")
	if !ok || strings.HasPrefix(coeff, "0x") {
		return parseUint(text)
	}
	c, e1 := strconv.ParseUint(strings.TrimRight(coeff, "ul"), 10, 64)
	e, e2 := strconv.ParseUint(exp, 10, 64)
	switch {
	case e1 != nil || e2 != nil:
		return 0, trailing
	case c > 9:
		return 0, "Coefficient part of scientific literal must be in range (0,9), got: " + coeff
	case e > 16:
		return 0, "Exponent will overflow integer range: " + exp
	}
	for range e {
		c *= 10
	}
	return c, ""
}
