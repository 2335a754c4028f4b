package kimage

import (
	"cmp"
	"slices"
	"strings"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// Without KALLSYMS_ALL kallsyms knows functions only: tables that lie inside a larger
// section have no name. The kernel's own code has their addresses: a table is the
// memory between two addresses in a function that walks it, if all bytes between them
// are entries of the table. If there is no such function, the table is the longest run
// of such entries in the image's data.

// shortestTable is the least number of entries in a row that count as a table:
// fewer are found by chance.
const shortestTable = 8

// unnamed finds tables of an image without data symbols.
type unnamed struct {
	img    *Image
	fentry x86.Addr
	// returnThunk is __x86_return_thunk; thunks are the thunks of indirect branches.
	returnThunk x86.Addr
	thunks      map[x86.Addr]bool
	// trampolines holds the addresses of static calls' trampolines, nil until the first use.
	trampolines map[x86.Addr]bool
}

func newUnnamed(img *Image) *unnamed {
	u := &unnamed{img: img, thunks: map[x86.Addr]bool{}}
	for _, register := range thunkRegisters {
		if a, ok := img.symbolAddr(indirectThunk + register); ok {
			u.thunks[a] = true
		}
	}
	u.fentry, _ = img.symbolAddr("__fentry__")
	u.returnThunk, _ = img.symbolAddr("__x86_return_thunk")
	return u
}

// findUnnamed finds the kernel's tables that neither a symbol nor a section names.
func (img *Image) findUnnamed() {
	if img.kind != KindKernel || img.index.image == 0 {
		return
	}
	u := newUnnamed(img)
	img.unnamed = map[*tableName]x86.Range{}
	var walked, run []string
	for _, rule := range u.rules() {
		if (tableOwner{img: img}).named(rule.table).End != 0 {
			continue
		}
		if r := u.walked(rule); r.End != 0 {
			img.unnamed[rule.table] = r
			walked = append(walked, rule.table.section)
		} else if r := u.longest(rule); r.End != 0 && img.bounds.onlyText {
			img.unnamed[rule.table] = r
			run = append(run, rule.table.section)
		}
	}
	img.foundFact("tables", walked, "the code that walks them has their addresses")
	img.foundFact("tables by their entries", run, "the longest runs of such entries")
}

// foundFact says which tables were found without a name.
func (img *Image) foundFact(name string, tables []string, how string) {
	if len(tables) == 0 {
		return
	}
	slices.Sort(tables)
	why := "no symbol names them; "
	if img.bounds.onlyText {
		why = "kallsyms has functions only (no KALLSYMS_ALL); "
	}
	img.facts.Add(evidence.Fact{Name: name, Value: strings.Join(tables, ", "), Evidence: why + how})
}

// walked returns the longest row of entries between two addresses in the code of the
// functions that walk the table, the zero Range if there is none.
func (u *unnamed) walked(rule entryRule) (longest x86.Range) {
	var ends []x86.Addr
	for _, name := range rule.table.walkers {
		for _, s := range u.img.Lookup(name) {
			ends = append(ends, u.operands(s)...)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	for i, a := range ends {
		for _, l := range rule.layouts {
			most := u.entriesFrom(a, ends[len(ends)-1], l)
			for _, b := range ends[i+1:] {
				if n := b.Sub(a); n <= most && l.whole(n) && n > longest.End.Sub(longest.Start) {
					longest = x86.Range{Start: a, End: b}
				}
			}
		}
	}
	return longest
}

// maxTable bounds the table that is looked for in code, in bytes.
const maxTable = 16 << 20

// entriesFrom returns the length in bytes of the run of entries from a on, to last at most.
func (u *unnamed) entriesFrom(a, last x86.Addr, l entryLayout) int64 {
	s := u.img.sectionAt(a)
	if s == nil {
		return 0
	}
	data := s.Data[min(uint64(len(s.Data)), uint64(a-s.Addr)):]
	data = data[:min(int64(len(data)), last.Sub(a), maxTable)]
	n, entries, gaps := 0, 0, 0
	for n+l.least() <= len(data) {
		e := data[n:min(len(data), n+l.size)]
		switch {
		case l.is(a.Add(int64(n)), e):
			entries++
		case l.gaps && zero(e):
			gaps++
		default:
			return most(n, entries, gaps)
		}
		n = min(len(data), n+l.size)
	}
	return most(n, entries, gaps)
}

// most is n, or 0 where gaps alone would be the table.
func most(n, entries, gaps int) int64 {
	if gaps > entries {
		return 0
	}
	return int64(n)
}

// operands returns the addresses of data in a function's code, absolute or relative to
// the next instruction.
func (u *unnamed) operands(s Symbol) []x86.Addr {
	var list []x86.Addr
	code := u.img.bytes(s.Addr, int(min(s.Size, opened.MaxSearched)))
	for i := 0; i+4 <= len(code); i++ {
		v := int64(int32(le.Uint32(code[i:])))
		for _, a := range []x86.Addr{x86.Addr(v), s.Addr.Add(int64(i) + 4 + v)} {
			if u.data(a) || u.data(a-1) {
				list = append(list, a)
			}
		}
	}
	return list
}

// longest is the longest row of entries in the image's data.
func (u *unnamed) longest(rule entryRule) (longest x86.Range) {
	if rule.walkedOnly || !u.img.bounds.onlyText {
		return longest
	}
	for _, s := range u.img.sections {
		if !searched(s) {
			continue
		}
		for _, l := range rule.layouts {
			if r := longestRun(s, l); cmp.Compare(r.Len(), longest.Len()) > 0 {
				longest = r
			}
		}
	}
	return longest
}

// maxData bounds a section that is searched, in bytes: a kernel's have some ten million.
const maxData = 64 << 20

func searched(s *Section) bool { return !s.code() && s.Module == "" && len(s.Data) <= maxData }

// longestRun returns the longest row of entries in a section, the zero Range if none is
// long enough. Tables are aligned to 4 bytes at least; so are their entries, if their
// size is a multiple of 4.
func longestRun(s *Section, l entryLayout) (longest x86.Range) {
	align := 4
	for l.size%align != 0 {
		align /= 2
	}
	// began[phase] is the beginning of the present row at that offset within an entry.
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
		if began[phase] < 0 {
			continue
		}
		off := began[phase] + (len(s.Data)-began[phase])/l.size*l.size
		if rest := s.Data[off:]; l.last > 0 && len(rest) >= l.last && l.is(s.Addr.Add(int64(off)), rest) {
			off = len(s.Data)
		}
		end(phase, off)
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
	return s != nil && !s.code()
}

// code reports whether the section is text. The data of 6.17 is marked executable, too.
func (s *Section) code() bool { return s.Exec && !s.Write }
