package stap

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// printing holds the rules by which a text is written in printable characters.
type printing struct {
	// size is the room of a string in bytes. most is the number of bytes of the text that are read,
	// out the number of bytes that may be written; 0 means the room of a string.
	size      int
	most, out int64
	quoted    bool
	// buffer: the text is a buffer, and a NUL does not end it.
	buffer bool
}

// room returns the number of bytes that a limit allows: the limit, or a string's room without the NUL if the limit is 0
// or larger than that.
func (p *printing) room(limit int64) int {
	if limit <= 0 || limit > int64(p.size-1) {
		return p.size - 1
	}
	return int(limit)
}

// text writes a text as _stp_text_str does: an unprintable byte as an escape of C, a character of UTF-8
// by its number. A quoted text that does not fit is cut, and dots follow its closing quote; with the dots
// it fills the room.
func (p *printing) text(dst, in []byte) []byte {
	room := p.room(p.out)
	in = in[:min(len(in), p.room(p.most))]
	if p.quoted {
		room = max(room, 5) - 2
		dst = append(dst, '"')
	}
	// cut is the index in dst of the first escape that the dots may cut, -1 for none; cutSize is its length.
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

// escaped returns the text's first character as it is written, and the number of its bytes in the text.
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
