package kimage

import (
	"bytes"
	"slices"
	"strings"

	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/patch"
	"kprobelab/x86"
)

// entryRule recognises the entries of a table.
type entryRule struct {
	table *tableName
	// layouts are the sizes that entries have had, with the test for an entry.
	layouts []entryLayout
	// walkedOnly: other data has such entries, too (the unwinder's are pointers to text, as
	// exceptions are), so that only the code tells.
	walkedOnly bool
}

type entryLayout struct {
	size int
	is   func(at x86.Addr, b []byte) bool
	// gaps: entries of zeros may stand among the others.
	gaps bool
	// last is the size of the last entry if that is not padded, 0 if it is.
	last int
}

// least returns the smallest length of an entry, in bytes.
func (l entryLayout) least() int {
	if l.last > 0 {
		return l.last
	}
	return l.size
}

// whole reports whether n bytes are a number of entries.
func (l entryLayout) whole(n int64) bool {
	over := n % int64(l.size)
	return over == 0 || l.last > 0 && over >= int64(l.last)
}

// rules returns the rules for the tables that may have no name.
func (u *unnamed) rules() []entryRule {
	return []entryRule{
		{exceptionTable, []entryLayout{{size: 12, is: u.exception}, {size: 8, is: u.shortException}}, true},
		{bugTable, []entryLayout{{size: 12, is: u.bug}, {size: 8, is: u.bug}, {size: 16, is: u.bug}}, false},
		{mcountLocations, []entryLayout{{size: 8, is: u.fentryCall, gaps: true}}, false},
		{jumpTable, []entryLayout{{size: 16, is: u.jumpEntry}, {size: 24, is: u.absoluteJumpEntry}}, false},
		{staticCallSites, []entryLayout{{size: 8, is: u.staticCallSite}}, false},
		{staticCallKeys, []entryLayout{{size: 8, is: u.trampolineKey}}, false},
		{altInstructions, []entryLayout{{size: 12, is: u.alternative}, {size: 14, is: u.alternative}, {size: 13, is: u.alternative}}, false},
		{paraInstructions, []entryLayout{{size: 16, is: u.paravirt, last: 10}}, false},
		{smpLocks, []entryLayout{{size: 4, is: u.lock}}, false},
		{returnSites, []entryLayout{{size: 4, is: u.returnSite}}, false},
		{retpolineSites, []entryLayout{{size: 4, is: u.retpolineSite}}, false},
		{cfiSites, []entryLayout{{size: 4, is: u.cfiSite}}, true},
		{sealedEntries, []entryLayout{{size: 4, is: u.sealed}}, false},
		{kprobeBlacklist, []entryLayout{{size: 8, is: u.function}}, true},
		{userPointerMax, []entryLayout{{size: 4, is: u.userPointer}}, true},
	}
}

// exception: relative pointers to two places of text, and a handler (to 5.15) or its
// number.
func (u *unnamed) exception(at x86.Addr, b []byte) bool {
	const mostTypes = 64
	return u.shortException(at, b) && (le.Uint32(b[8:])&0xff < mostTypes || u.code(opened.Rel32(at+8, b[8:])))
}

// shortException is the same without the third word (to 4.5).
func (u *unnamed) shortException(at x86.Addr, b []byte) bool {
	return u.code(opened.Rel32(at, b)) && u.code(opened.Rel32(at+4, b[4:]))
}

// bug: a relative pointer to an instruction that traps; then, by the length, a format and
// a file's name. An entry with a format may belong to a warning that is called with the
// entry (6.19): then it names a place past the call.
func (u *unnamed) bug(at x86.Addr, b []byte) bool {
	addr, file := opened.Rel32(at, b), len(b)-8
	if !u.traps(addr) && (file < 8 || !u.code(addr) || !u.data(opened.Rel32(at+4, b[4:]))) {
		return false
	}
	if file == 0 {
		return zero(b[6:])
	}
	name := opened.Rel32(at.Add(int64(file)), b[file:])
	return u.data(name) && u.img.cstring(name) != ""
}

// traps reports whether ud2 or ud1 stands at the address.
func (u *unnamed) traps(a x86.Addr) bool {
	text := u.text(a)
	if text == nil {
		return u.freed(a)
	}
	for _, c := range [][]byte{{0x0f, 0x0b}, {0x0f, 0xb9}} {
		if bytes.HasPrefix(text, c) {
			return true
		}
	}
	return false
}

// trampolineKey: a relative pointer to a static call's trampoline, and one to its key.
func (u *unnamed) trampolineKey(at x86.Addr, b []byte) bool {
	return u.trampoline(opened.Rel32(at, b)) && u.data(opened.Rel32(at+4, b[4:])&^3)
}

// alternative: text, what replaces it, and a feature.
func (u *unnamed) alternative(at x86.Addr, b []byte) bool {
	a := parseAlternative(at, b)
	return a.feature < maxFlags && u.img.usable(a) && (a.replLen == 0 || u.code(a.repl))
}

// paravirt: the address of an indirect call or jump, and its length.
func (u *unnamed) paravirt(_ x86.Addr, b []byte) bool {
	s := paravirtSite{addr: opened.Abs64(b), len: int(b[9])}
	if !u.code(s.addr) {
		return false
	}
	_, ok := patch.ParavirtSlot(s.addr, u.img.bytes(s.addr, s.len))
	return ok
}

// lock: a relative pointer to a lock prefix.
func (u *unnamed) lock(at x86.Addr, b []byte) bool {
	text := u.text(opened.Rel32(at, b))
	const operandSize = 0x66 // the assembler writes it before the lock prefix
	return text != nil && (text[0] == lockPrefix || text[0] == operandSize && text[1] == lockPrefix)
}

// returnSite: a relative pointer to a jump to the return thunk.
func (u *unnamed) returnSite(at x86.Addr, b []byte) bool {
	target, ok := u.branch(opened.Rel32(at, b))
	return ok && u.returnThunk != 0 && target == u.returnThunk
}

// retpolineSite: a relative pointer to a branch to a thunk.
func (u *unnamed) retpolineSite(at x86.Addr, b []byte) bool {
	target, ok := u.branch(opened.Rel32(at, b))
	return ok && u.thunks[target]
}

// branch is the target of the direct branch at an address.
func (u *unnamed) branch(a x86.Addr) (target x86.Addr, ok bool) {
	if u.text(a) == nil {
		return 0, false
	}
	text := u.img.bytes(a, u.img.branchLen(a))
	if len(text) < 5 {
		return 0, false
	}
	op := text[len(text)-5]
	if op != x86.Call32 && op != x86.Jmp32 && op&0xf0 != 0x80 {
		return 0, false
	}
	return opened.Rel32(a.Add(int64(len(text))), text[len(text)-4:]), true
}

// sealed: a relative pointer to an ENDBR.
func (u *unnamed) sealed(at x86.Addr, b []byte) bool {
	return bytes.HasPrefix(u.text(opened.Rel32(at, b)), opened.Endbr64)
}

// cfiSite: a relative pointer to the hash before a function.
func (u *unnamed) cfiSite(at x86.Addr, b []byte) bool {
	addr := opened.Rel32(at, b)
	s, ok := u.img.SymbolAt(addr + cfiPreamble)
	return ok && s.Addr == addr+cfiPreamble && u.code(addr) && u.img.cfiPreambleAt(addr)
}

// function: the address at which a function begins.
func (u *unnamed) function(_ x86.Addr, b []byte) bool {
	a := opened.Abs64(b)
	s, ok := u.img.SymbolAt(a)
	return ok && s.Addr == a && u.img.inExec(a)
}

// runtimeConstant is the placeholder in the code for a constant that boot writes.
const runtimeConstant = 0x0123456789abcdef

// userPointer: a relative pointer to such a constant.
func (u *unnamed) userPointer(at x86.Addr, b []byte) bool {
	imm := u.img.bytes(opened.Rel32(at, b), 8)
	return imm != nil && u.code(opened.Rel32(at, b)) && le.Uint64(imm) == runtimeConstant
}

// fentryCall: the address of a call of __fentry__.
func (u *unnamed) fentryCall(_ x86.Addr, b []byte) bool {
	at := opened.Abs64(b)
	text := u.text(at)
	return text != nil && text[0] == x86.Call32 && u.fentry != 0 && opened.Rel32(at+5, text[1:]) == u.fentry
}

// jumpEntry: relative pointers to a nop or a jump and to its target, and one to a key.
func (u *unnamed) jumpEntry(at x86.Addr, b []byte) bool {
	return u.jump(opened.Rel32(at, b), opened.Rel32(at+4, b[4:]), at+8+opened.Abs64(b[8:]))
}

// absoluteJumpEntry is the same with absolute pointers (to 4.18).
func (u *unnamed) absoluteJumpEntry(_ x86.Addr, b []byte) bool {
	return u.jump(opened.Abs64(b), opened.Abs64(b[8:]), opened.Abs64(b[16:]))
}

func (u *unnamed) jump(code, target, key x86.Addr) bool {
	text := u.text(code)
	if !u.code(target) || !u.data(key&^3) {
		return false
	}
	switch {
	case text == nil:
		return u.freed(code)
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
	site := opened.Rel32(at, b)
	text := u.text(site)
	switch {
	case !u.data(opened.Rel32(at+4, b[4:]) &^ 3):
		return false
	case u.img.core != nil: // boot has written what the key calls
		return u.code(site) && !u.trampoline(site)
	case text == nil:
		return false
	}
	target := opened.Rel32(site+5, text[1:])
	switch {
	case text[0] == x86.Call32, text[0] == x86.Jmp32:
	case text[0] == 0x0f && text[1]&0xf0 == 0x80: // a conditional tail call
		if text = u.img.bytes(site, 6); text == nil {
			return false
		}
		target = opened.Rel32(site+6, text[2:])
	default:
		return false
	}
	return u.trampoline(target)
}

// trampoline: a static call's trampoline begins at the address.
func (u *unnamed) trampoline(a x86.Addr) bool {
	if u.trampolines == nil {
		u.trampolines = map[x86.Addr]bool{}
		for _, s := range u.img.Symbols() {
			if strings.HasPrefix(s.Name, "__SCT__") {
				u.trampolines[s.Addr] = true
			}
		}
	}
	return u.trampolines[a]
}

// code reports whether a lies in executable text, or in text that boot has freed.
func (u *unnamed) code(a x86.Addr) bool { return u.img.inExec(a) || u.freed(a) }

// freed reports whether boot has freed what was at a.
func (u *unnamed) freed(a x86.Addr) bool {
	return slices.ContainsFunc(u.img.freed, func(r x86.Range) bool { return r.Contains(a) })
}
