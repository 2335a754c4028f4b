package script

import "strconv"

// Piece is a part of a format: plain text, or a directive for the next argument.
type Piece struct {
	// Text is printed as it is, where Verb is 0.
	Text string
	// Verb is one of b c d i m M o p s u x X.
	Verb byte
	// Width and Precision are -1 where they are not given; with Star they are arguments of
	// their own, before the one that is printed.
	Width, Precision         int
	StarWidth, StarPrecision bool
	Left, Zero, Sign         bool
	Space, Alternate         bool
	// Show makes the text that is printed of an argument of any type with the verb s.
	Show func(t *Thread, number int64, text, dst []byte) []byte
}

// out is a text that grows up to a limit.
type out struct {
	b   []byte
	end int // of b, which it does not pass
}

func (o *out) byte(c byte) {
	if len(o.b) < o.end {
		o.b = append(o.b, c)
	}
}

func (o *out) text(s []byte) { o.b = append(o.b, s[:max(min(len(s), o.end-len(o.b)), 0)]...) }

func (o *out) string(s string) { o.b = append(o.b, s[:max(min(len(s), o.end-len(o.b)), 0)]...) }

func (o *out) repeat(c byte, n int) {
	for n = min(n, o.end-len(o.b)); n > 0; n-- {
		o.b = append(o.b, c)
	}
}

// number writes a number as a directive says: base 8, 10 or 16.
func (o *out) number(p *Piece, width, precision int, v uint64) {
	base, upper := 10, false
	switch p.Verb {
	case 'o':
		base = 8
	case 'x', 'p':
		base = 16
	case 'X':
		base, upper = 16, true
	}
	sign := byte(0)
	if p.Verb == 'd' || p.Verb == 'i' {
		switch {
		case int64(v) < 0:
			sign, v = '-', -v
		case p.Sign:
			sign = '+'
		case p.Space:
			sign = ' '
		}
	}
	prefix := ""
	if p.Alternate || p.Verb == 'p' {
		switch {
		case base == 8:
			prefix = "0"
		case upper:
			prefix = "0X"
		case base == 16:
			prefix = "0x"
		}
	}
	var room [66]byte
	digits := strconv.AppendUint(room[:0], v, base)
	if upper {
		for i, c := range digits {
			if c >= 'a' {
				digits[i] = c - 'a' + 'A'
			}
		}
	}
	zeros := max(precision-len(digits), 0)
	pad := width - zeros - len(digits) - len(prefix)
	if sign != 0 {
		pad--
	}
	if !p.Left && !p.Zero {
		o.repeat(' ', pad)
	}
	if sign != 0 {
		o.byte(sign)
	}
	o.string(prefix)
	if !p.Left && p.Zero {
		o.repeat('0', pad)
	}
	o.repeat('0', zeros)
	o.text(digits)
	if p.Left {
		o.repeat(' ', pad)
	}
}

// quotes are the escapes of %#c.
var quotes = map[byte]byte{'\a': 'a', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v', '\'': '\'', '\\': '\\'}

// char writes a character, with # one that does not print as an escape.
func (o *out) char(p *Piece, width int, c byte) {
	size := 1
	escape, quoted := quotes[c]
	octal := false
	if p.Alternate {
		if octal = !quoted && (c < ' ' || c > '~'); octal {
			size = 4
		} else if quoted {
			size = 2
		}
	}
	if !p.Left {
		o.repeat(' ', width-size)
	}
	switch size {
	case 2:
		o.byte('\\')
		o.byte(escape)
	case 4:
		o.byte('\\')
		o.byte('0' + c>>6)
		o.byte('0' + c>>3&7)
		o.byte('0' + c&7)
	default:
		o.byte(c)
	}
	if p.Left {
		o.repeat(' ', width-size)
	}
}

// str writes a string.
func (o *out) str(p *Piece, width, precision int, s []byte) {
	if precision >= 0 && precision < len(s) {
		s = s[:precision]
	}
	if !p.Left {
		o.repeat(' ', width-len(s))
	}
	o.text(s)
	if p.Left {
		o.repeat(' ', width-len(s))
	}
	if p.Zero {
		o.byte(0)
	}
}

// binary writes a number's bytes.
func (o *out) binary(p *Piece, width, precision int, v uint64) {
	size := func(n int) int {
		switch n {
		case 1, 2, 4, 8:
			return n
		}
		return -1
	}
	precision = size(precision)
	switch {
	case width < 0 && precision < 0:
		width, precision = 8, 8
	case width < 0:
		width = precision
	case precision < 0:
		if precision = size(width); precision < 0 {
			precision = 8
		}
	}
	if !p.Left {
		o.repeat(0, width-precision)
	}
	for i := range precision {
		o.byte(byte(v >> (8 * i)))
	}
	if p.Left {
		o.repeat(0, width-precision)
	}
}

// memory writes the memory at an address, M in hexadecimal.
func (o *out) memory(t *Thread, p *Piece, width, precision int, at uint64, near string) {
	n := 1
	if precision > 0 {
		n = precision
	}
	shown := n
	if p.Verb == 'M' {
		shown = 2 * n
	}
	if !p.Left {
		o.repeat(' ', width-shown)
	}
	var room [64]byte
	for n > 0 && len(o.b) < o.end {
		part := room[:min(n, len(room))]
		t.read(at, part, p.Alternate, near)
		if p.Verb == 'm' {
			o.text(part)
		} else {
			const hex = "0123456789abcdef"
			for _, c := range part {
				o.byte(hex[c>>4])
				o.byte(hex[c&15])
			}
		}
		n, at = n-len(part), at+uint64(len(part))
	}
	if p.Left {
		o.repeat(' ', width-shown)
	}
}
