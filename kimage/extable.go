package kimage

import (
	"encoding/binary"
	"sort"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// ExceptionEntry is one entry of the exception table: an instruction that may
// fault, and where execution goes on when it does.
type ExceptionEntry struct {
	Addr, Fixup x86.Addr
	// Data is the third word: the address of the handler relative to the word
	// itself to 5.15, the fixup's type and registers later, 0 before 4.6.
	Data uint32
}

// ExceptionTable lists the entries by ascending address. The caller must not
// modify it.
func (img *Image) ExceptionTable() []ExceptionEntry { return img.tables.exceptions }

// ExceptionEntry implements View.
func (img *Image) ExceptionEntry(addr x86.Addr) (x86.Addr, bool) {
	list := img.tables.exceptions
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr >= addr })
	if i == len(list) || list[i].Addr != addr {
		return 0, false
	}
	return list[i].Fixup, true
}

// Bug is one entry of the bug table: the ud2 of a BUG or a WARN.
type Bug struct {
	Addr x86.Addr
	// Flags is the address of the entry's flags, two bytes that the kernel changes:
	// BugWarning and the others.
	Flags x86.Addr
	// File and Line are the place in the source, "" and 0 if the table has neither
	// (DEBUG_BUGVERBOSE is off).
	File string
	Line int
}

// Flags of an entry (asm-generic/bug.h).
const (
	// BugWarning: execution goes on past the ud2.
	BugWarning = 1 << iota
	// BugOnce: only the first time is logged.
	BugOnce
	// BugDone: it has been logged.
	BugDone
)

// BugTable lists the entries by ascending address. The caller must not modify
// it.
func (img *Image) BugTable() []Bug { return img.tables.bugs }

// BugAt returns the entry for a ud2 at exactly addr.
func (img *Image) BugAt(addr x86.Addr) (Bug, bool) {
	list := img.tables.bugs
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr >= addr })
	if i == len(list) || list[i].Addr != addr {
		return Bug{}, false
	}
	return list[i], true
}

// BugEntry implements View.
func (img *Image) BugEntry(addr x86.Addr) bool {
	_, ok := img.BugAt(addr)
	return ok
}

// readExceptions reads struct exception_table_entry: three words (4.6 and
// later) or two (before), relative pointers both.
func (img *Image) readExceptions(o tableOwner) {
	at, data := o.table(exceptionTable)
	l := img.pickLayout(at, data, []layout{{size: 12, addr: opened.Rel32}, {size: 8, addr: opened.Rel32}})
	for off := 0; off+l.size <= len(data); off += l.size {
		here := at.Add(int64(off))
		e := ExceptionEntry{Addr: opened.Rel32(here, data[off:]), Fixup: opened.Rel32(here+4, data[off+4:])}
		if l.size == 12 {
			e.Data = binary.LittleEndian.Uint32(data[off+8:])
		}
		if !img.inExec(e.Addr) {
			img.ignore(exceptionTable.section, e.Addr)
			continue
		}
		img.tables.exceptions = append(img.tables.exceptions, e)
	}
}

// readBugs reads struct bug_entry: a relative pointer, with file and line
// (DEBUG_BUGVERBOSE, 12 bytes), without (8 bytes), or with a format before the
// file (6.19 and later, 16 bytes).
func (img *Image) readBugs(o tableOwner) {
	at, data := o.table(bugTable)
	l := img.pickLayout(at, data, []layout{{size: 12, addr: opened.Rel32}, {size: 8, addr: opened.Rel32}, {size: 16, addr: opened.Rel32}})
	for off := 0; off+l.size <= len(data); off += l.size {
		here := at.Add(int64(off))
		b := Bug{Addr: opened.Rel32(here, data[off:]), Flags: here.Add(int64(l.size - 2))}
		if !img.inExec(b.Addr) {
			img.ignore(bugTable.section, b.Addr)
			continue
		}
		if l.size >= 12 {
			file := l.size - 8
			b.File = img.cstring(opened.Rel32(here.Add(int64(file)), data[off+file:]))
			b.Line = int(binary.LittleEndian.Uint16(data[off+file+4:]))
		}
		img.tables.bugs = append(img.tables.bugs, b)
	}
}

// readCFITraps reads the table of kCFI: a relative pointer each.
func (img *Image) readCFITraps(o tableOwner) {
	at, data := o.table(cfiTraps)
	for off := 0; off+4 <= len(data); off += 4 {
		addr := opened.Rel32(at.Add(int64(off)), data[off:])
		if !img.inExec(addr) {
			img.ignore(cfiTraps.section, addr)
			continue
		}
		if img.tables.cfiTraps == nil {
			img.tables.cfiTraps = make(map[x86.Addr]bool)
		}
		img.tables.cfiTraps[addr] = true
	}
}

// CFITrap implements View.
func (img *Image) CFITrap(addr x86.Addr) bool { return img.tables.cfiTraps[addr] }

// cstring returns the NUL-terminated text at addr, "" if there is none of reasonable length.
func (img *Image) cstring(addr x86.Addr) string {
	const longest = 256
	for n := 0; n < longest; n++ {
		b := img.bytes(addr.Add(int64(n)), 1)
		if b == nil {
			return ""
		}
		if b[0] == 0 {
			return string(img.bytes(addr, n))
		}
	}
	return ""
}
