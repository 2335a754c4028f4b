package definition

import (
	"math"

	"kprobelab/errno"
)

// The kernel's ways of reading a number (lib/kstrtox.c): C syntax, the whole
// text or nothing, no blanks. EINVAL is for text that is no number, ERANGE for
// one that does not fit.

// kstrtoull reads an unsigned number; base 0 tells by the prefix.
func kstrtoull(s string, base int) (uint64, error) {
	if s != "" && s[0] == '+' {
		s = s[1:]
	}
	return parseUint(s, base)
}

func parseUint(s string, base int) (uint64, error) {
	base, s = radix(s, base)
	v, n, over := digits(s, base)
	switch {
	case over:
		return 0, errno.ERANGE
	case n == 0:
		return 0, errno.EINVAL
	}
	if n < len(s) && s[n] == '\n' {
		n++
	}
	if n != len(s) {
		return 0, errno.EINVAL
	}
	return v, nil
}

// radix takes the prefix off.
func radix(s string, base int) (int, string) {
	hex := len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x'
	if base == 0 {
		switch {
		case hex && len(s) > 2 && digit(s[2]) < 16:
			base = 16
		case s != "" && s[0] == '0':
			base = 8
		default:
			base = 10
		}
	}
	if base == 16 && hex {
		s = s[2:]
	}
	return base, s
}

// digits reads as many as there are, and says how many that is.
func digits(s string, base int) (v uint64, n int, over bool) {
	for n < len(s) && digit(s[n]) < base {
		d := uint64(digit(s[n]))
		if v > (math.MaxUint64-d)/uint64(base) {
			over = true
		}
		v = v*uint64(base) + d
		n++
	}
	return v, n, over
}

func digit(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		return int(c|0x20-'a') + 10
	}
	return math.MaxInt
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// kstrtoll reads a signed number.
func kstrtoll(s string, base int) (int64, error) {
	if s != "" && s[0] == '-' {
		v, err := parseUint(s[1:], base)
		if err == nil && v > 1<<63 {
			err = errno.ERANGE
		}
		return -int64(v), err
	}
	v, err := kstrtoull(s, base)
	if err == nil && v > math.MaxInt64 {
		err = errno.ERANGE
	}
	return int64(v), err
}

// kstrtouint reads an unsigned number of 32 bits.
func kstrtouint(s string) (uint32, error) {
	v, err := kstrtoull(s, 0)
	if err == nil && v > math.MaxUint32 {
		err = errno.ERANGE
	}
	return uint32(v), err
}

// simpleStrtoul reads the number at the start of a text, and returns it and the rest.
func simpleStrtoul(s string) (uint64, string) {
	base, t := radix(s, 0)
	v, n, _ := digits(t, base)
	return v, t[n:]
}
