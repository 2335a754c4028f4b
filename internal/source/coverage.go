package source

import (
	"cmp"
	"debug/dwarf"
	"slices"
	"sort"
)

// coverage is code by the units that have it, in the order of addresses.
type coverage []covered

type covered struct {
	from, to uint64
	h        *header
}

// before is the number of ranges before an address that are looked at: ranges of different units
// overlap if the linker has thrown one away.
const before = 8

func (c coverage) unit(addr uint64) *header {
	last := sort.Search(len(c), func(i int) bool { return c[i].from > addr })
	for i := last - 1; i >= 0 && i >= last-before; i-- {
		if addr < c[i].to {
			return c[i].h
		}
	}
	return nil
}

func (c coverage) sorted() coverage {
	slices.SortStableFunc(c, func(a, b covered) int { return cmp.Compare(a.from, b.from) })
	return c
}

// unitOf returns the unit that has the code at an address: by .debug_aranges, else by
// the units' own entries.
func (f *File) unitOf(addr uint64) *header {
	f.arangesOnce.Do(func() { f.aranges = f.readARanges() })
	if h := f.aranges.unit(addr); h != nil {
		return h
	}
	f.rootsOnce.Do(func() { f.roots = f.readRoots() })
	return f.roots.unit(addr)
}

// readARanges reads .debug_aranges.
func (f *File) readARanges() (c coverage) {
	b := cursor{b: f.debug["debug_aranges"]}
	for b.at < uint64(len(b.b)) && !b.bad {
		start := b.at
		length, wide := uint64(b.u32()), false
		if length == 0xffffffff {
			wide, length = true, b.u64()
		}
		end := b.at + length
		if b.bad || end > uint64(len(b.b)) || end < b.at {
			break
		}
		b.u16()
		unit, addrSize := b.offset(wide), b.u8()
		b.u8()
		if addrSize != 8 {
			b.at = end
			continue
		}
		b.at = start + (b.at-start+15)&^15
		h := f.unitAt(unit)
		for b.at+16 <= end && h != nil {
			if from, size := b.u64(), b.u64(); size > 0 {
				c = append(c, covered{from, from + size, h})
			}
		}
		b.at = end
	}
	return c.sorted()
}

// readRoots asks each unit's root; clang writes no .debug_aranges.
func (f *File) readRoots() (c coverage) {
	for i := range f.headers {
		h := &f.headers[i]
		r := f.dwarf.Reader()
		r.Seek(dwarf.Offset(h.root))
		e, err := r.Next()
		if err != nil || e == nil {
			continue
		}
		ranges, err := f.dwarf.Ranges(e)
		if err != nil {
			continue
		}
		for _, x := range ranges {
			c = append(c, covered{x[0], x[1], h})
		}
	}
	return c.sorted()
}

// Mentions reports whether the unit with the code at an address names a file, by the last parts of
// its path. Units that do not have no function of the file.
func (f *File) Mentions(addr uint64, file string) (is bool) {
	defer func() {
		if recover() != nil {
			is = true // whoever reads the unit says what is damaged
		}
	}()
	h := f.unitOf(addr)
	if h == nil {
		return false
	}
	if f.mentioned.file != file {
		f.mentioned.file, f.mentioned.in = file, map[*header]bool{}
	}
	is, known := f.mentioned.in[h]
	if !known {
		name, err := f.fileIn(h, lastParts(file))
		is = name != "" || err != nil
		f.mentioned.in[h] = is
	}
	return is
}
