package callsyntax

import (
	"fmt"
	"strconv"

	"kprobelab/internal/bounded"
)

// MaxBuffer is the largest guest buffer an argument can ask for, in bytes.
const MaxBuffer = bounded.CallBuffer

// Parse reads a sequence of calls with semicolons between them. An error is an
// *Error with the place.
func Parse(text string) ([]Call, error) {
	p := parser{text: text}
	var calls []Call
	for {
		p.space()
		if p.done() && len(calls) > 0 {
			return calls, nil
		}
		c, err := p.call()
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
		p.space()
		if p.done() {
			return calls, nil
		}
		if !p.take(';') {
			return nil, p.errorf("expected ';' or the end after the call, found %s", p.found())
		}
	}
}

// ParseCall reads exactly one call.
func ParseCall(text string) (Call, error) {
	calls, err := Parse(text)
	if err != nil {
		return Call{}, err
	}
	if len(calls) > 1 {
		return Call{}, &Error{Text: text, Col: calls[1].Col, Msg: "expected one call, found a second one"}
	}
	return calls[0], nil
}

// parser walks over the text once; at is the next byte.
type parser struct {
	text string
	at   int
}

func (p *parser) done() bool { return p.at >= len(p.text) }

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.done() {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) take(c byte) bool {
	if p.done() || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

func (p *parser) space() {
	for !p.done() && isSpace(p.text[p.at]) {
		p.at++
	}
}

func (p *parser) pos() pos { return pos{Col: p.at + 1} }

// while takes the bytes for which ok holds.
func (p *parser) while(ok func(byte) bool) string {
	start := p.at
	for !p.done() && ok(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at]
}

// found names what stands here, for a message.
func (p *parser) found() string {
	if p.done() {
		return "the end of the text"
	}
	r := []rune(p.text[p.at:min(p.at+4, len(p.text))])[0]
	return strconv.QuoteRune(r)
}

func (p *parser) errorf(format string, args ...any) error {
	return p.errorAt(p.at+1, format, args...)
}

func (p *parser) errorAt(col int, format string, args ...any) error {
	return &Error{Text: p.text, Col: col, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) call() (Call, error) {
	c := Call{Col: p.at + 1}
	var err error
	if c.Name, err = p.name("a function name"); err != nil {
		return c, err
	}
	p.space()
	if !p.take('(') {
		return c, p.errorf("expected '(' after %s, found %s", c.Name, p.found())
	}
	c.Args, err = p.args()
	return c, err
}

// args reads up to the closing parenthesis, and that too.
func (p *parser) args() ([]Arg, error) {
	p.space()
	if p.take(')') {
		return nil, nil
	}
	var args []Arg
	for {
		p.space()
		a, err := p.arg()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
		p.space()
		switch {
		case p.take(')'):
			return args, nil
		case !p.take(','):
			return nil, p.errorf("expected ',' or ')' after argument %d, found %s", len(args), p.found())
		}
	}
}

func (p *parser) arg() (Arg, error) {
	a, err := p.one()
	if err != nil {
		return nil, err
	}
	return p.flags(a)
}

// one is an argument without the flags that may follow.
func (p *parser) one() (Arg, error) {
	switch c := p.peek(); {
	case c == '"':
		return p.str()
	case c == '\'':
		return p.char()
	case c == '{':
		return p.bytes()
	case c == '&':
		return p.symbol()
	case c == '-' || isDigit(c):
		return p.integer()
	case c == 'b' && p.isBuf():
		return p.buf()
	case isNameStart(c):
		return p.constant()
	default:
		return nil, p.errorf("expected an argument (42, O_RDONLY, \"text\", buf[64], {01 ff}, &symbol), found %s", p.found())
	}
}

// name reads a symbol's name; its module's name and a colon may stand before
// it.
func (p *parser) name(what string) (string, error) {
	start := p.at
	if !isNameStart(p.peek()) {
		return "", p.errorf("expected %s, found %s", what, p.found())
	}
	p.while(isName)
	if p.peek() == ':' {
		p.at++
		if !isNameStart(p.peek()) {
			return "", p.errorf("expected a symbol after the module's name, found %s", p.found())
		}
		p.while(isName)
	}
	return p.text[start:p.at], nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isNameStart(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '.' || c == '$'
}

// isName allows what compilers put into symbols (foo.constprop.0, __pfx_foo$1).
func isName(c byte) bool { return isNameStart(c) || isDigit(c) }
