// Package printable keeps what a hostile file says from acting on the terminal
// that shows it, and from forging rows of a table.
//
// Names are made printable where they are read (Name): no program that makes
// images puts a control character into one. Everything else that is printed
// passes a Writer, which leaves newlines and tabs.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Name is a name with its control characters, tabs and newlines among them, and with the characters
// that end a line or turn a text's direction around, written as JSON writes them: \u001b, \u202e.
func Name(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f || s[i] == c1Lead || s[i] == turnLead || s[i] == markLead {
			return escape(s)
		}
	}
	return s
}

// c1Lead begins the UTF-8 form of the control characters U+0080 to U+009F.
const c1Lead = 0xc2

// turnLead begins the UTF-8 form of what turns a text around and of the separators of lines, markLead that of the Arabic letter mark.
const turnLead, markLead = 0xe2, 0xd8

// turns reports whether a character ends a line, or has an effect on the direction of what follows it (Unicode, "Bidirectional Algorithm").
func turns(r rune) bool {
	return r == 0x61c || r >= 0x200e && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func escape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r < ' ' || r >= 0x7f && r <= 0x9f || turns(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Writer writes control characters other than newline and tab as Name does. With
// Colour, it leaves the sequences that change colours.
type Writer struct {
	W      io.Writer
	Colour bool
	// lead: the last byte was c1Lead.
	lead bool
	// out holds the text of the next write.
	out []byte
}

// Write implements io.Writer. It makes one write of each.
func (w *Writer) Write(b []byte) (int, error) {
	w.out = w.out[:0]
	from := 0
	for i := 0; i < len(b); i++ {
		x := b[i]
		c1 := w.lead && x >= 0x80 && x <= 0x9f
		w.lead = x == c1Lead
		if x >= ' ' && x != 0x7f && !c1 || x == '\n' || x == '\t' {
			continue
		}
		if n := colour(b[i:]); w.Colour && n > 0 {
			i += n - 1
			continue
		}
		end := i
		if c1 && end > from {
			end-- // without its lead, where that is not written already
		}
		w.out = append(append(w.out, b[from:end]...), '\\', 'u', '0', '0', hex[x>>4], hex[x&15])
		from = i + 1
	}
	if from == 0 {
		return w.W.Write(b)
	}
	w.out = append(w.out, b[from:]...)
	if _, err := w.W.Write(w.out); err != nil {
		return 0, err
	}
	if cap(w.out) > keptBuffer {
		w.out = nil
	}
	return len(b), nil
}

const hex = "0123456789abcdef"

// keptBuffer is the largest buffer that a Writer keeps between two writes.
const keptBuffer = 64 << 10

// colour is the length of a sequence that changes the colour, 0 where b does not
// begin with one.
func colour(b []byte) int {
	if len(b) < 3 || b[0] != 0x1b || b[1] != '[' {
		return 0
	}
	for i, x := range b[2:] {
		switch {
		case x == 'm':
			return i + 3
		case x != ';' && (x < '0' || x > '9'):
			return 0
		}
	}
	return 0
}
