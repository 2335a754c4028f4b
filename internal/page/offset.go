package page

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	offsetPattern  = regexp.MustCompile(`^\+?(0x[0-9a-f]+|[0-9]+)$`)
	addressPattern = regexp.MustCompile(`^(0x)?(ffffffff[0-9a-f]{8})$`)
)

// offsetOf reads a number, decimal or with 0x.
func offsetOf(s string) (uint64, bool) {
	m := offsetPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	base, digits := 10, m[1]
	if strings.HasPrefix(digits, "0x") {
		base, digits = 16, digits[2:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}
