package filter

import (
	"bytes"
	"strings"
)

// how a text is compared (enum regex_type).
type how int

const (
	matchFull how = iota
	matchFront
	matchMiddle
	matchEnd
	matchGlob
)

// matcher compares a text with a pattern.
type matcher struct {
	pattern string
	how     how
	// not: the pattern began with "!".
	not bool
}

// parseGlob finds the simplest way to compare (filter_parse_regex): stars at
// the ends only need no glob.
func parseGlob(text string) matcher {
	m := matcher{pattern: text}
	if strings.HasPrefix(text, "!") {
		m.not, m.pattern = true, text[1:]
	}
	pattern := m.pattern
	if pattern == "" || isDigit(pattern[0]) {
		return m
	}
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c == '*' && i == 0:
			m.how, m.pattern = matchEnd, pattern[1:]
		case c == '*' && i == len(pattern)-1:
			m.pattern = m.pattern[:len(m.pattern)-1]
			if m.how == matchEnd {
				m.how = matchMiddle
			} else {
				m.how = matchFront
			}
		case c == '*' || c == '[' || c == '?' || c == '\\':
			return matcher{pattern: pattern, how: matchGlob, not: m.not}
		}
	}
	return m
}

// match compares with a text in space: it ends at the first NUL or at the end. size is the length
// that the kernel assumes, 0 for unknown.
func (m *matcher) match(space []byte, size int) bool {
	text := space
	if i := bytes.IndexByte(space, 0); i >= 0 {
		text = space[:i]
	}
	if size > 0 && len(text) > size {
		text = text[:size]
	}
	switch m.how {
	case matchFront:
		return (size == 0 || size >= len(m.pattern)) && hasPrefix(text, m.pattern)
	case matchMiddle:
		return contains(text, m.pattern)
	case matchEnd:
		return endsWith(space, m.pattern, size-1)
	case matchGlob:
		return glob(m.pattern, text)
	}
	if size > 0 && len(m.pattern) > size {
		return len(text) == size && m.pattern[:size] == string(text)
	}
	return string(text) == m.pattern
}

func hasPrefix(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

func contains(b []byte, s string) bool {
	for i := 0; i+len(s) <= len(b); i++ {
		if string(b[i:i+len(s)]) == s {
			return true
		}
	}
	return false
}

// endsWith compares the bytes before end, NULs included: if the text is shorter than the length
// that the kernel assumes, it compares the NULs.
func endsWith(space []byte, s string, end int) bool {
	if end < len(s) || end > len(space) {
		return false
	}
	return string(space[end-len(s):end]) == s
}

// Glob reports whether a name matches a pattern, as "~" in a filter does.
func Glob(pattern, name string) bool { return glob(pattern, []byte(name)) }

// glob is lib/glob.c: "*", "?", "[a-z]", "[!a-z]", and a backslash before
// a character that stands for itself. A star backs up to the last one only,
// which is enough.
func glob(pattern string, text []byte) bool {
	p, i := 0, 0
	starP, starI := -1, 0
	for {
		if i == len(text) {
			for p < len(pattern) && pattern[p] == '*' {
				p++
			}
			return p == len(pattern)
		}
		if p < len(pattern) && pattern[p] == '*' {
			p++
			starP, starI = p, i
			continue
		}
		if n, ok := globOne(pattern[p:], text[i]); ok {
			p += n
			i++
			continue
		}
		if starP < 0 {
			return false
		}
		starI++
		p, i = starP, starI
	}
}

// globOne matches one character against the pattern's next element, and says
// how long that is.
func globOne(pattern string, c byte) (int, bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if n, ok, closed := globClass(pattern, c); closed {
			return n, ok
		}
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
		return 1, false
	}
	return 1, pattern[0] == c
}

// globClass matches "[...]"; without a closing bracket it is no class.
func globClass(pattern string, c byte) (n int, ok, closed bool) {
	i := 1
	invert := i < len(pattern) && pattern[i] == '!'
	if invert {
		i++
	}
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false, false
		}
		lo := pattern[i]
		i++
		if lo == ']' && !first {
			return i, ok != invert, true
		}
		hi := lo
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			hi = pattern[i+1]
			i += 2
		}
		if lo <= c && c <= hi {
			ok = true
		}
	}
}
