package bpftrace

import "strings"

// wild reports whether bpftrace takes a part of an attach point for a pattern: it has a
// star, or brackets. Brackets make a pattern, and match only themselves.
func wild(s string) bool {
	return strings.Contains(s, "*") || strings.Contains(s, "[") && strings.Contains(s, "]")
}

// starred reports whether a part of an attach point has a star.
func starred(s string) bool { return strings.Contains(s, "*") }

// match reports whether a pattern fits a name, as bpftrace does it: each text between
// stars is searched for from the end of the one before, and is not searched for again
// where the rest does not fit, so that *_lock does not fit a_lock_lock.
func match(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	next := 0
	for i, token := range strings.FieldsFunc(pattern, func(r rune) bool { return r == '*' }) {
		at := strings.Index(name[next:], token)
		if at < 0 || i == 0 && pattern[0] != '*' && at > 0 {
			return false
		}
		next += at + len(token)
	}
	return strings.HasSuffix(pattern, "*") || next == len(name)
}
