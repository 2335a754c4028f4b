package debian

import (
	"cmp"
	"strings"
)

// Compare orders versions as dpkg does: deb-version(7).
func Compare(a, b string) int {
	ea, a := epoch(a)
	eb, b := epoch(b)
	if c := digits(ea, eb); c != 0 {
		return c
	}
	ua, ra := revision(a)
	ub, rb := revision(b)
	return cmp.Or(part(ua, ub), part(ra, rb))
}

func epoch(v string) (string, string) {
	if e, rest, ok := strings.Cut(v, ":"); ok {
		return e, rest
	}
	return "0", v
}

func revision(v string) (string, string) {
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return v[:i], v[i+1:]
	}
	return v, ""
}

// part compares texts and numbers in turn.
func part(a, b string) int {
	for a != "" || b != "" {
		na, nb := span(a, false), span(b, false)
		if c := letters(a[:na], b[:nb]); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
		na, nb = span(a, true), span(b, true)
		if c := digits(a[:na], b[:nb]); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	return 0
}

// span returns the number of digits, or of other characters, that s begins with.
func span(s string, digit bool) int {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9') == digit {
		n++
	}
	return n
}

// letters orders a tilde before the end, that before letters, and those before all else.
func letters(a, b string) int {
	for i := range max(len(a), len(b)) {
		if c := cmp.Compare(weight(a, i), weight(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

func weight(s string, i int) int {
	switch {
	case i >= len(s):
		return 0
	case s[i] == '~':
		return -1
	case s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z':
		return int(s[i])
	}
	return int(s[i]) + 256
}

// digits compares numbers of any length.
func digits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
