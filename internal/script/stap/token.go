package stap

import (
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
)

// kind is the kind of a token.
type kind uint8

const (
	junk kind = iota
	identifier
	operator
	text
	number
	embedded
	keyword
)

// Pos is a place in a script.
type Pos struct {
	file         *file
	Line, Column int
}

// inLibrary reports whether the place is in the library, or in an alias of it.
func (p Pos) inLibrary() bool { return p.file != nil && p.file.library }

func (p Pos) String() string {
	if p.file == nil {
		return "<nowhere>"
	}
	return fmt.Sprintf("%s:%d:%d", p.file.name, p.Line, p.Column)
}

// file is a script's text.
type file struct {
	name  string
	text  string
	lines []string
	// library is for the tapset.
	library bool
}

func newFile(name, text string) *file {
	return &file{name: name, text: text, lines: strings.Split(text, "\n")}
}

// token is a word of the script.
type token struct {
	kind kind
	// text is the word. For a string it is the text between the quotes, in which C's escapes are
	// still escapes.
	text string
	pos  Pos
	// message is the error message for junk, "" for other tokens.
	message    string
	noArgument bool // the message is that an argument is not there
	// macro is the use of the macro that the token comes from.
	macro *token
	// inside counts the macros that made the token, one inside another.
	inside int
}

// String returns the token as messages name it.
func (t *token) String() string {
	switch t.kind {
	case identifier:
		return fmt.Sprintf("identifier '%s' at %s", t.text, t.pos)
	case operator:
		return fmt.Sprintf("operator '%s' at %s", t.text, t.pos)
	case text:
		return fmt.Sprintf("string '%s' at %s", t.text, t.pos)
	case number:
		return fmt.Sprintf("number '%s' at %s", t.text, t.pos)
	case embedded:
		return fmt.Sprintf("embedded-code at %s", t.pos)
	case keyword:
		return fmt.Sprintf("keyword at %s", t.pos)
	}
	return fmt.Sprintf("junk '%s' at %s", t.text, t.pos)
}

// near returns the words with which a run-time error names its place.
func (t *token) near() string { return "near " + t.String() }

func (t *token) is(k kind, text string) bool { return t != nil && t.kind == k && t.text == text }
func (t *token) op(text string) bool         { return t.is(operator, text) }

var keywords = setOf("probe global private function if else for foreach in limit return delete while break continue next string long try catch")

// setOf makes a set of words.
func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// operators are the operators of more than one character, the longest first.
var operators = []string{
	"<<<", "<<=", ">>=",
	"%(", "%?", "%:", "%)", "&&", "||", "!=", "!~", "=~", "==", "<=", ">=", "<<", ">>", "++", "--", "->",
	"+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", ".=",
}

// lexer makes tokens.
type lexer struct {
	f    *file
	s    string // what is left
	at   Pos
	args []string
	// inserted is the number of bytes at the beginning of s that come from arguments.
	inserted int
	// all is the number of bytes that arguments have inserted into the script.
	all int
}

// leastInserted is the least that an argument counts of bounded.StapInserted, each time that it is put into the script.
const leastInserted = 256

func newLexer(f *file, args []string) *lexer {
	return &lexer{f: f, s: f.text, at: Pos{f, 1, 1}, args: args}
}

// skip passes n bytes.
func (l *lexer) skip(n int) string {
	out := l.s[:n]
	for i := range n {
		switch {
		case l.inserted > 0:
			l.inserted--
		case l.s[i] == '\n':
			l.at.Line++
			l.at.Column = 1
		default:
			l.at.Column++
		}
	}
	l.s = l.s[n:]
	return out
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isSpace(c byte) bool  { return c == ' ' || c >= '\t' && c <= '\r' }

// next is the next token, nil at the end.
func (l *lexer) next() *token {
	for {
		for l.s != "" && isSpace(l.s[0]) {
			l.skip(1)
		}
		switch {
		case l.s == "":
			return nil
		case l.s[0] == '#', strings.HasPrefix(l.s, "//"):
			if n := strings.IndexByte(l.s, '\n'); n >= 0 {
				l.skip(n)
			} else {
				l.skip(len(l.s))
			}
		case strings.HasPrefix(l.s, "/*"):
			if n := strings.Index(l.s[2:], "*/"); n >= 0 {
				l.skip(n + 4)
			} else {
				l.skip(len(l.s))
			}
		default:
			t, again := l.word()
			if !again {
				return t
			}
		}
	}
}

// word reads one token; again says that an argument of the command line was put in its place.
func (l *lexer) word() (t *token, again bool) {
	t = &token{pos: l.at}
	c := l.s[0]
	switch {
	case (c == '$' || c == '@') && len(l.s) > 1 && (isDigit(l.s[1]) || l.s[1] == '#' || l.s[1] == '*'):
		return l.argument(t)
	case isLetter(c), c == '$', c == '@' && len(l.s) > 1 && isLetter(l.s[1]):
		n := 1
		for n < len(l.s) && (isLetter(l.s[n]) || isDigit(l.s[n]) || l.s[n] == '$') {
			n++
		}
		t.text = l.skip(n)
		switch {
		case c == '@':
			t.kind = operator
		case keywords[t.text]:
			t.kind = keyword
		default:
			t.kind = identifier
		}
	case isDigit(c):
		n := 1
		for n < len(l.s) && (isLetter(l.s[n]) && l.s[n] != '_' || isDigit(l.s[n])) {
			n++
		}
		t.kind, t.text = number, l.skip(n)
	case c == '"':
		l.quoted(t)
	case strings.HasPrefix(l.s, "%{"):
		n := strings.Index(l.s[2:], "%}")
		if n < 0 {
			l.skip(len(l.s))
			t.message = "Could not find matching '%}' to close embedded function block"
			return t, false
		}
		code := l.skip(n + 4)
		t.kind, t.text = embedded, code[2:len(code)-2]
	default:
		t.kind = operator
		n := 1
		for _, op := range operators {
			if strings.HasPrefix(l.s, op) {
				n = len(op)
				break
			}
		}
		if c > '~' || c < ' ' {
			t.kind = junk
		}
		t.text = l.skip(n)
	}
	return t, false
}

// argument puts an argument of the command line in the place of $1, $#, $*, or makes a string
// of it (@1).
func (l *lexer) argument(t *token) (*token, bool) {
	asText := l.s[0] == '@'
	n := 2
	for isDigit(l.s[1]) && n < len(l.s) && isDigit(l.s[n]) {
		n++
	}
	name := l.skip(n)[1:]
	value := ""
	switch name {
	case "#":
		value = fmt.Sprint(len(l.args))
	case "*":
		value = strings.Join(l.args, " ")
		if asText {
			var all []string
			for _, a := range l.args {
				all = append(all, `"`+a+`"`)
			}
			asText, value = false, strings.Join(all, " ")
		}
	default:
		i := 0
		if _, err := fmt.Sscan(name, &i); err != nil || i < 1 || i > len(l.args) {
			t.message, t.noArgument = fmt.Sprintf("command line argument out of range [1-%d]", len(l.args)), true
			return t, false
		}
		value = l.args[i-1]
	}
	if asText {
		t.kind, t.text = text, value
		return t, false
	}
	// An argument may name itself, and each copies what is left of the script.
	if l.all += max(len(value), leastInserted); l.all > bounded.StapInserted {
		t.message = "the arguments of the command line are too long"
		return t, false
	}
	l.s, l.inserted = value+" "+l.s, l.inserted+len(value)+1
	return nil, true
}

// quoted reads a string.
func (l *lexer) quoted(t *token) {
	var b strings.Builder
	for i := 1; i < len(l.s); i++ {
		c := l.s[i]
		switch {
		case c == '"':
			l.skip(i + 1)
			t.kind, t.text = text, b.String()
			return
		case c == '\n':
			l.skip(i)
			t.message = "Could not find matching closing quote"
			return
		case c == '\\' && i+1 < len(l.s):
			i++
			switch e := l.s[i]; {
			case e == '\n':
			case strings.IndexByte(`abtnvfr01234567x\`, e) >= 0:
				b.WriteByte('\\')
				b.WriteByte(e)
			default:
				b.WriteByte(e)
			}
		default:
			b.WriteByte(c)
		}
	}
	l.skip(len(l.s))
	t.message = "Could not find matching closing quote"
}

// unescape is a string's value.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; {
		case c == 'x':
			v, n := 0, 0
			for i+1 < len(s) && hexDigit(s[i+1]) >= 0 {
				v, n, i = v<<4|hexDigit(s[i+1]), n+1, i+1
			}
			b.WriteByte(byte(v))
		case c >= '0' && c <= '7':
			v := int(c - '0')
			for n := 1; n < 3 && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '7'; n++ {
				i++
				v = v<<3 | int(s[i]-'0')
			}
			b.WriteByte(byte(v))
		default:
			if at := strings.IndexByte("abtnvfr", c); at >= 0 {
				c = "\a\b\t\n\v\f\r"[at]
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

func hexDigit(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
