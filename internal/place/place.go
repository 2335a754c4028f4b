// Package place reads which instruction a text means, as every command and every function of the library takes it:
//
//	SYM[+OFF]         an offset from a symbol
//	MODULE:SYM[+OFF]  from a symbol of a module
//	ADDR[+OFF]        from an address, hexadecimal, with 0x or as nm, objdump and /proc/kallsyms print it
//
// A word without 0x is an address if it begins with a digit, or is 16 digits long: no symbol is either. OFF is a number
// as the kernel reads it in kprobe_events (kstrtoul, base 0): hexadecimal with 0x, octal with 0, else decimal.
//
// It must not know which symbols there are. Definitions of kprobe_events and uprobe_events, the notations of perf, stap
// and bpftrace have their own packages.
package place

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/x86"
)

// Place is an instruction: Offset bytes past a symbol or an address.
type Place struct {
	// Symbol is a name, or MODULE:NAME; empty for an address.
	Symbol string
	Addr   x86.Addr
	Offset uint32
}

// addrDigits is the number of digits that the kernel prints of an address.
const addrDigits = 16

// Parse reads SYM[+OFF] or ADDR[+OFF].
func Parse(text string) (p Place, err error) {
	where, offset, has := strings.Cut(text, "+")
	if has {
		if p.Offset, err = Offset(offset); err != nil {
			return p, err
		}
	}
	digits, prefixed := cutHex(where)
	switch {
	case where == "":
		return p, errors.New("a symbol or an address is missing")
	case !prefixed && !isDigit(where[0]) && !isAddr(where):
		p.Symbol = where
		return p, nil
	}
	v, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return p, fmt.Errorf("%q is not an address of 64 bits", where)
	}
	p.Addr = x86.Addr(v)
	return p, nil
}

// Offset reads a number of bytes.
func Offset(text string) (uint32, error) {
	digits, base := text, 10
	if hex, ok := cutHex(text); ok {
		digits, base = hex, 16
	} else if len(text) > 1 && text[0] == '0' {
		digits, base = text[1:], 8
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return 0, fmt.Errorf("the offset %q is not a number of 32 bits", text)
	}
	return uint32(v), nil
}

func cutHex(text string) (digits string, ok bool) {
	if len(text) > 1 && text[0] == '0' && text[1]|0x20 == 'x' {
		return text[2:], true
	}
	return text, false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isAddr reports an address without 0x.
func isAddr(word string) bool {
	return len(word) == addrDigits && strings.Trim(word, "0123456789abcdefABCDEF") == ""
}

// String names the place as the kernel does: SYM+0xOFF.
func (p Place) String() string {
	s := p.Symbol
	if s == "" {
		s = p.Addr.String()
	}
	if p.Offset != 0 {
		s += "+0x" + strconv.FormatUint(uint64(p.Offset), 16)
	}
	return s
}
