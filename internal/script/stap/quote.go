package stap

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// printing says how a text is written in characters that print.
type printing struct {
	// size is the room of a string. Of the text so many bytes count as most says, and at most so
	// many as out says are written; 0 is for as many as a string has.
	size      int
	most, out int64
	quoted    bool
	// buffer is for bytes, among which may be NULs.
	buffer bool
}

// room is how much a limit leaves of a string's room.
func (p *printing) room(limit int64) int {
	if limit <= 0 || limit > int64(p.size-1) {
		return p.size - 1
	}
	return int(limit)
}

// text writes a text as _stp_text_str does: what does not print as an escape of C, what is UTF-8
// by its number. A quoted text that has not enough room ends in dots after the quote, with which it
// is as long as there is room.
func (p *printing) text(dst, in []byte) []byte {
	room := p.room(p.out)
	in = in[:min(len(in), p.room(p.most))]
	if p.quoted {
		room = max(room, 5) - 2
		dst = append(dst, '"')
	}
	// cut is where the first escape begins that the dots may cut, and how long it is.
	cut, cutSize := -1, 0
	for len(in) > 0 && room > 0 && (in[0] != 0 || p.buffer) {
		c, n := escaped(in)
		size := len(c)
		if in[0] == 0 {
			c = `\0` // that it is short does not make room
		}
		if size > 1 && cut < 0 && room-3 < size {
			cut, cutSize = len(dst), size
		}
		if room < size {
			break
		}
		dst = append(dst, c...)
		in, room = in[n:], room-size
	}
	switch {
	case !p.quoted:
	case len(in) > 0 && in[0] != 0:
		end := len(dst) - 3 + room
		if cut >= 0 && cut < end && end < cut+cutSize {
			end = cut
		}
		dst = append(dst[:end], `"...`...)
	default:
		dst = append(dst, '"')
	}
	return dst
}

// escaped is how the text's first character is written, and how many bytes it has.
func escaped(in []byte) (c string, n int) {
	if r, n := utf8.DecodeRune(in); n > 1 {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08X`, r), n
		}
		return fmt.Sprintf(`\u%04X`, r), n
	}
	b := in[0]
	if i := strings.IndexByte("\a\b\t\n\v\f\r\\\"", b); i >= 0 {
		return `\` + `abtnvfr\"`[i:i+1], 1
	}
	if b < ' ' || b > '~' {
		return fmt.Sprintf(`\%03o`, b), 1
	}
	return string(rune(b)), 1
}
