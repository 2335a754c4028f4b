package kimage

import (
	"maps"
	"slices"
	"strings"

	"kprobelab/x86"
)

// Without KALLSYMS_ALL kallsyms knows functions only: tables that lie inside a
// larger section have no name. Each is found by what its entries have to be, as the
// longest run of such entries in the image's data.
//
// The blacklist has plain addresses of functions, as other tables have: its bounds are
// read from the code that walks it.

// entryRule says what an entry of a table is.
type entryRule struct {
	section string
	// layouts are the sizes that entries have had, and what makes one an entry.
	layouts []entryLayout
}

type entryLayout struct {
	size int
	is   func(at x86.Addr, b []byte) bool
	// gaps: entries of zeros may stand among the others.
	gaps bool
}

// shortestTable is how many entries a run needs to count as a table: fewer are
// found by chance.
const shortestTable = 8

// rules are those of the tables that share a section with others.
func (u *unnamed) rules() []entryRule {
	return []entryRule{
		{"__mcount_loc", []entryLayout{{8, u.fentryCall, true}}},
		{"__jump_table", []entryLayout{{16, u.jumpEntry, false}, {24, u.absoluteJumpEntry, false}}},
		{".static_call_sites", []entryLayout{{8, u.staticCallSite, false}}},
	}
}

// unnamed finds tables of an image without data symbols.
type unnamed struct {
	img    *Image
	fentry x86.Addr
	found  map[string]x86.Range
}

// findUnnamed fills what table answers from where there is neither a symbol nor a
// section.
func (img *Image) findUnnamed() {
	u := &unnamed{img: img, found: map[string]x86.Range{}}
	u.fentry, _ = img.symbolAddr("__fentry__")
	for _, rule := range u.rules() {
		var longest x86.Range
		for _, s := range img.sections {
			if !searched(s) {
				continue
			}
			for _, l := range rule.layouts {
				if r := longestRun(s, l); uint64(r.End-r.Start) > uint64(longest.End-longest.Start) {
					longest = r
				}
			}
		}
		if longest.End > longest.Start {
			u.found[rule.section] = longest
		}
	}
	if r, ok := u.blacklist(); ok {
		u.found["_kprobe_blacklist"] = r
	}
	img.unnamed = u.found
	img.facts = append(img.facts, Fact{
		Name: "tables", Value: strings.Join(slices.Sorted(maps.Keys(u.found)), ", ") + " found by their entries",
		Evidence: "kallsyms has functions only (no KALLSYMS_ALL)",
	})
}

// maxData bounds a section that is searched, in bytes: a kernel's have some ten million.
const maxData = 64 << 20

func searched(s *Section) bool { return !s.Exec && s.Module == "" && len(s.Data) <= maxData }

// longestRun is the longest row of entries in a section, the zero Range where none is
// long enough. Tables are aligned to 4 bytes at least, to 8 where an entry has a
// word of 8.
func longestRun(s *Section, l entryLayout) (longest x86.Range) {
	const align = 4
	// run[phase] is where the row at that offset within an entry began.
	began := make([]int, l.size/align)
	for i := range began {
		began[i] = -1
	}
	end := func(phase, off int) {
		if began[phase] < 0 {
			return
		}
		for l.gaps && zero(s.Data[off-l.size:off]) {
			off -= l.size
		}
		if n := off - began[phase]; n >= shortestTable*l.size && uint64(n) > uint64(longest.End-longest.Start) {
			longest = x86.Range{Start: s.Addr.Add(int64(began[phase])), End: s.Addr.Add(int64(off))}
		}
		began[phase] = -1
	}
	off := 0
	for ; off+l.size <= len(s.Data); off += align {
		phase, entry := off/align%len(began), s.Data[off:off+l.size]
		switch {
		case l.is(s.Addr.Add(int64(off)), entry):
			if began[phase] < 0 {
				began[phase] = off
			}
		case l.gaps && began[phase] >= 0 && zero(entry):
		default:
			end(phase, off)
		}
	}
	for phase := range began {
		if began[phase] >= 0 {
			end(phase, began[phase]+(len(s.Data)-began[phase])/l.size*l.size)
		}
	}
	return longest
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// fentryCall: the address of a call of __fentry__.
func (u *unnamed) fentryCall(_ x86.Addr, b []byte) bool {
	at := abs64(b)
	text := u.text(at)
	return text != nil && text[0] == x86.Call32 && u.fentry != 0 && rel32(at+5, text[1:]) == u.fentry
}

// jumpEntry: relative pointers to a nop or a jump and to its target, and one to a key.
func (u *unnamed) jumpEntry(at x86.Addr, b []byte) bool {
	return u.jump(rel32(at, b), rel32(at+4, b[4:]), at+8+abs64(b[8:]))
}

// absoluteJumpEntry is the same with absolute pointers (to 4.18).
func (u *unnamed) absoluteJumpEntry(_ x86.Addr, b []byte) bool {
	return u.jump(abs64(b), abs64(b[8:]), abs64(b[16:]))
}

func (u *unnamed) jump(code, target, key x86.Addr) bool {
	text := u.text(code)
	if text == nil || u.text(target) == nil || !u.data(key&^3) {
		return false
	}
	switch {
	case text[0] == 0xeb, text[0] == x86.Jmp32, text[0] == 0x66 && text[1] == 0x90:
		return true
	case text[0] == 0x0f && text[1] == 0x1f: // the nop of 5 bytes
		return true
	}
	// The nop that the compiler put to 5.12.
	return text[0] == 0x3e && text[1] == 0x8d || text[0] == 0x66 && text[1] == 0x66
}

// staticCallSite: a relative pointer to a call of or a jump to a trampoline, and one to
// a key.
func (u *unnamed) staticCallSite(at x86.Addr, b []byte) bool {
	site := rel32(at, b)
	text := u.text(site)
	if text == nil || !u.data(rel32(at+4, b[4:])&^3) {
		return false
	}
	target := rel32(site+5, text[1:])
	switch {
	case text[0] == x86.Call32, text[0] == x86.Jmp32:
	case text[0] == 0x0f && text[1]&0xf0 == 0x80: // a conditional tail call
		if text = u.img.bytes(site, 6); text == nil {
			return false
		}
		target = rel32(site+6, text[2:])
	default:
		return false
	}
	s, ok := u.img.SymbolAt(target)
	return ok && s.Addr == target && strings.HasPrefix(s.Name, "__SCT__")
}

// blacklist is the table of NOKPROBE_SYMBOL: two addresses in the code of init_kprobes
// between which there are only addresses of functions.
func (u *unnamed) blacklist() (longest x86.Range, ok bool) {
	var ends []x86.Addr
	for _, name := range []string{"init_kprobes", "populate_kprobe_blacklist"} {
		for _, s := range u.img.Lookup(name) {
			ends = append(ends, u.operands(s)...)
		}
	}
	for _, a := range ends {
		for _, b := range ends {
			if n := b.Sub(a); n <= longest.End.Sub(longest.Start) || n%8 != 0 || n > 1<<20 {
				continue
			}
			if u.functions(u.img.bytes(a, int(b.Sub(a)))) {
				longest, ok = x86.Range{Start: a, End: b}, true
			}
		}
	}
	return longest, ok
}

// operands are the addresses of data that stand in a function's code, absolute or
// relative to what follows.
func (u *unnamed) operands(s Symbol) []x86.Addr {
	var list []x86.Addr
	code := u.img.bytes(s.Addr, int(min(s.Size, maxSearched)))
	for i := 0; i+4 <= len(code); i++ {
		v := int64(int32(le.Uint32(code[i:])))
		for _, a := range []x86.Addr{x86.Addr(v), s.Addr.Add(int64(i) + 4 + v)} {
			if u.data(a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// maxSearched bounds the code that is searched for addresses.
const maxSearched = 4 << 10

// functions reports whether each word is the address at which a function begins.
func (u *unnamed) functions(words []byte) bool {
	for ; len(words) >= 8; words = words[8:] {
		a := abs64(words)
		if s, ok := u.img.SymbolAt(a); !ok || s.Addr != a || !u.img.inExec(a) {
			return false
		}
	}
	return words != nil
}

// array is where two pointers lie side by side that name these two strings, 0 where
// they do not.
func (u *unnamed) array(first, second string) x86.Addr {
	for _, s := range u.img.sections {
		if !searched(s) {
			continue
		}
		for off := 0; off+16 <= len(s.Data); off += 8 {
			p, q := abs64(s.Data[off:]), abs64(s.Data[off+8:])
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
		if slot == nil || !zero(slot) && u.img.cString(abs64(slot)) == "" {
			break
		}
	}
	return x86.Range{Start: at, End: at.Add(int64(n / 32 * 32 * 8))}
}

// tested is the variable that a function compares with 0 before anything else, by
// cmpl $0,var(%rip) or mov var(%rip),%eax.
func (u *unnamed) tested(function string) (x86.Addr, bool) {
	for _, s := range u.img.Lookup(function) {
		code := u.img.bytes(s.Addr, int(min(s.Size, maxSearched)))
		for i := 0; i+7 <= len(code); i++ {
			after := int64(0)
			switch {
			case code[i] == 0x83 && code[i+1] == 0x3d && code[i+6] == 0:
				after = 1
			case code[i] == 0x8b && code[i+1] == 0x05:
			default:
				continue
			}
			if a := rel32(s.Addr.Add(int64(i)+6+after), code[i+2:]); u.data(a) {
				return a, true
			}
		}
	}
	return 0, false
}

// text is 5 bytes of the image's text at a, nil elsewhere.
func (u *unnamed) text(a x86.Addr) []byte {
	if !u.img.inExec(a) {
		return nil
	}
	return u.img.bytes(a, 5)
}

// data reports whether a lies in a section that is no code.
func (u *unnamed) data(a x86.Addr) bool {
	s := u.img.sectionAt(a)
	return s != nil && !s.Exec
}
