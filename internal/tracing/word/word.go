// Package word splits text at white space as the kernel does: byte by byte, in Latin-1 (lib/ctype.c), so that the last byte
// of "à" in UTF-8 is white space and the two of a no-break space are a letter and white space.
//
// It must not know what the words mean.
package word

// IsSpace reports white space (isspace): blanks, and the no-break space of Latin-1.
func IsSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' || c == 0xa0 }

// Split returns the words of a line (argv_split).
func Split(line string) []string { return SplitAt(line, IsSpace) }

// SplitAt returns what lies between bytes of a kind; nothing empty is among it.
func SplitAt(line string, between func(c byte) bool) (words []string) {
	for {
		line = trimLeft(line, between)
		if line == "" {
			return words
		}
		n := 0
		for n < len(line) && !between(line[n]) {
			n++
		}
		words, line = append(words, line[:n]), line[n:]
	}
}

// Index returns the offset of the first white space, len(s) if there is none.
func Index(s string) int {
	n := 0
	for n < len(s) && !IsSpace(s[n]) {
		n++
	}
	return n
}

// Trim takes white space off both ends (strim).
func Trim(s string) string { return TrimLeft(TrimRight(s)) }

// TrimLeft takes it off the beginning (skip_spaces).
func TrimLeft(s string) string { return trimLeft(s, IsSpace) }

func trimLeft(s string, skip func(c byte) bool) string {
	for s != "" && skip(s[0]) {
		s = s[1:]
	}
	return s
}

// TrimRight takes it off the end.
func TrimRight(s string) string {
	for s != "" && IsSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}
