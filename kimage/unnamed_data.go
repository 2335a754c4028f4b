package kimage

import (
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// Data that other code than the tables' needs, found without its symbol.

// array returns the address of two adjacent pointers to these two strings, in this order, or
// 0 if there are none.
func (u *unnamed) array(first, second string) x86.Addr {
	for _, s := range u.img.sections {
		if !searched(s) {
			continue
		}
		for off := 0; off+16 <= len(s.Data); off += 8 {
			p, q := opened.Abs64(s.Data[off:]), opened.Abs64(s.Data[off+8:])
			if u.data(p) && u.data(q) && u.img.cString(p) == first && u.img.cString(q) == second {
				return s.Addr.Add(int64(off))
			}
		}
	}
	return 0
}

// flagTables are x86_cap_flags and x86_bug_flags, of which one may follow the other.
func (u *unnamed) flagTables() (flags, bugs x86.Range) {
	flags, bugs = u.names("fpu", "vme"), u.names("f00f", "fdiv")
	if bugs.Start < flags.Start {
		bugs.End = min(bugs.End, flags.Start)
	} else {
		flags.End = min(flags.End, bugs.Start)
	}
	return flags, bugs
}

// maxFlags bounds how many features a kernel names.
const maxFlags = 64 * 32

// names is an array of pointers to names, of which some are missing, in words of 32. It
// begins with these two.
func (u *unnamed) names(first, second string) x86.Range {
	at := u.array(first, second)
	n := 0
	for ; at != 0 && n < maxFlags; n++ {
		slot := u.img.bytes(at.Add(int64(8*n)), 8)
		if slot == nil || !zero(slot) && u.img.cString(opened.Abs64(slot)) == "" {
			break
		}
	}
	return x86.Range{Start: at, End: at.Add(int64(n / 32 * 32 * 8))}
}

// tested is the variable that a function compares with 0 before anything else, by
// cmpl $0,var(%rip) or mov var(%rip),%eax.
func (u *unnamed) tested(function string) (x86.Addr, bool) {
	for _, s := range u.img.Lookup(function) {
		code := u.img.bytes(s.Addr, int(min(s.Size, opened.MaxSearched)))
		for i := 0; i+7 <= len(code); i++ {
			after := int64(0)
			switch {
			case code[i] == 0x83 && code[i+1] == 0x3d && code[i+6] == 0:
				after = 1
			case code[i] == 0x8b && code[i+1] == 0x05:
			default:
				continue
			}
			if a := opened.Rel32(s.Addr.Add(int64(i)+6+after), code[i+2:]); u.data(a) {
				return a, true
			}
		}
	}
	return 0, false
}
