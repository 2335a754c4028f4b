package callsyntax

import (
	"strconv"
	"strings"
)

// letters are the C escapes of one letter.
var letters = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// letterOf is the letter of a control character's escape, 0 where it is written
// by number.
var letterOf = [256]byte{
	'\a': 'a', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v',
}

func (p *parser) integer() (Arg, error) {
	n := Int{pos: p.pos()}
	if p.take('-') {
		n.Form = Negative
	}
	if !isDigit(p.peek()) {
		return nil, p.errorf("expected digits after '-', found %s", p.found())
	}
	digits := p.while(isName)
	base := 10
	if rest, ok := cutHex(digits); ok {
		digits, base = rest, 16
	}
	v, err := strconv.ParseUint(digits, base, 64)
	switch {
	case err == nil:
	case err.(*strconv.NumError).Err == strconv.ErrRange:
		return nil, p.errorAt(n.Col, "%s does not fit in 64 bits", p.text[n.Col-1:p.at])
	default:
		return nil, p.errorAt(n.Col, "%q is not a number", p.text[n.Col-1:p.at])
	}
	if n.Form == Negative {
		if v > 1<<63 {
			return nil, p.errorAt(n.Col, "%s does not fit in 64 bits", p.text[n.Col-1:p.at])
		}
		v = -v
	} else if base == 16 {
		n.Form = Hex
	}
	n.Value = v
	return n, nil
}

func cutHex(s string) (string, bool) {
	if len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x' {
		return s[2:], true
	}
	return s, false
}

func (p *parser) char() (Arg, error) {
	n := Int{pos: p.pos(), Form: Char}
	text, err := p.quoted('\'')
	if err != nil {
		return nil, err
	}
	if len(text) != 1 {
		return nil, p.errorAt(n.Col, "a character constant holds one byte, this one %d", len(text))
	}
	n.Value = uint64(text[0])
	return n, nil
}

func (p *parser) str() (Arg, error) {
	s := String{pos: p.pos()}
	var err error
	s.Text, err = p.quoted('"')
	return s, err
}

// quoted reads a C literal, escapes and all, and both its quotes.
func (p *parser) quoted(quote byte) (string, error) {
	start := p.at + 1
	p.at++
	var b strings.Builder
	for {
		switch c := p.peek(); {
		case p.done():
			return "", p.errorAt(start, "the closing %c of this literal is missing", quote)
		case c == quote:
			p.at++
			return b.String(), nil
		case c == '\\':
			v, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteByte(v)
		default:
			b.WriteByte(c)
			p.at++
		}
	}
}

// escape reads one escape sequence. \x takes at most two digits, where C would
// go on, so that every byte can be written in front of any text.
func (p *parser) escape() (byte, error) {
	col := p.at + 1
	p.at++
	c := p.peek()
	switch {
	case p.done():
		return 0, p.errorAt(col, "the escape at the end is not complete")
	case letters[c] != 0:
		p.at++
		return letters[c], nil
	case c == 'x':
		p.at++
		return p.number(col, 16, 2, isHex)
	case '0' <= c && c <= '7':
		return p.number(col, 8, 3, func(c byte) bool { return '0' <= c && c <= '7' })
	}
	return 0, p.errorAt(col, "\\%c is not an escape of C", c)
}

// number reads up to most digits of a numeric escape.
func (p *parser) number(col, base, most int, ok func(byte) bool) (byte, error) {
	start := p.at
	for p.at < start+most && !p.done() && ok(p.peek()) {
		p.at++
	}
	v, err := strconv.ParseUint(p.text[start:p.at], base, 8)
	if err != nil {
		return 0, p.errorAt(col, "%s is not a byte", p.text[col-1:p.at])
	}
	return byte(v), nil
}

// isBuf looks ahead for "buf[", so that a symbol may be called buf.
func (p *parser) isBuf() bool {
	rest, ok := strings.CutPrefix(p.text[p.at:], "buf")
	return ok && strings.HasPrefix(strings.TrimLeft(rest, " \t"), "[")
}

func (p *parser) buf() (Arg, error) {
	b := Buf{pos: p.pos()}
	p.at += len("buf")
	p.space()
	p.take('[')
	p.space()
	if !isDigit(p.peek()) {
		return nil, p.errorf("expected the buffer's size in bytes, found %s", p.found())
	}
	size, err := p.integer()
	if err != nil {
		return nil, err
	}
	n := size.(Int)
	if n.Value > MaxBuffer {
		return nil, p.errorAt(n.Col, "a buffer has at most %d bytes", MaxBuffer)
	}
	b.N = int(n.Value)
	p.space()
	if !p.take(']') {
		return nil, p.errorf("expected ']' after the buffer's size, found %s", p.found())
	}
	return b, nil
}

func (p *parser) bytes() (Arg, error) {
	b := Bytes{pos: p.pos(), Data: []byte{}}
	p.at++
	for {
		p.space()
		if p.take('}') {
			return b, nil
		}
		if p.done() {
			return nil, p.errorAt(b.Col, "the closing } of these bytes is missing")
		}
		if p.at+2 > len(p.text) || !isHex(p.text[p.at]) || !isHex(p.text[p.at+1]) {
			return nil, p.errorf("expected a byte as two hexadecimal digits, found %s", p.found())
		}
		v, _ := strconv.ParseUint(p.text[p.at:p.at+2], 16, 8)
		b.Data = append(b.Data, byte(v))
		p.at += 2
		if len(b.Data) > MaxBuffer {
			return nil, p.errorf("a buffer has at most %d bytes", MaxBuffer)
		}
	}
}

func (p *parser) symbol() (Arg, error) {
	s := SymbolRef{pos: p.pos()}
	p.at++
	var err error
	if s.Name, err = p.name("a symbol's name after '&'"); err != nil {
		return nil, err
	}
	if !p.take('+') {
		return s, nil
	}
	if !isDigit(p.peek()) {
		return nil, p.errorf("expected the offset in bytes, found %s", p.found())
	}
	off, err := p.integer()
	if err != nil {
		return nil, err
	}
	s.Off = off.(Int).Value
	return s, nil
}
