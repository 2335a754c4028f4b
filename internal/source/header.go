package source

import (
	"fmt"
	"sort"

	"kprobelab/internal/bounded"
)

// header is the header of a unit.
type header struct {
	// start is the offset of the header, root of the unit's first entry, end of the next
	// header; all in .debug_info.
	start, root, end uint64
	version          int
	addrSize         int
	// wide: it is 64-bit DWARF.
	wide   bool
	abbrev uint64
	kind   byte
}

// Kinds of units in DWARF 5.
const (
	unitCompile  = 1
	unitType     = 2
	unitPartial  = 3
	unitSkeleton = 4
	unitSplit    = 5
	unitSplitTyp = 6
)

func (f *File) readHeaders() error {
	info := f.debug["debug_info"]
	for at := uint64(0); at < uint64(len(info)); {
		b := cursor{b: info, at: at}
		h := header{start: at, kind: unitCompile, addrSize: 8}
		length := uint64(b.u32())
		if length == 0xffffffff {
			h.wide, length = true, b.u64()
		}
		if b.bad || length > uint64(len(info))-b.at {
			return fmt.Errorf("%w: the unit at %#x is cut off", ErrDamaged, at)
		}
		h.end = b.at + length
		h.version = int(b.u16())
		switch {
		case h.version >= 5:
			h.kind, h.addrSize = b.u8(), int(b.u8())
			h.abbrev = b.offset(h.wide)
			switch h.kind {
			case unitSkeleton, unitSplit:
				b.skip(8)
			case unitType, unitSplitTyp:
				b.skip(8)
				b.offset(h.wide)
			}
		default:
			h.abbrev = b.offset(h.wide)
			h.addrSize = int(b.u8())
		}
		h.root = b.at
		if b.bad || h.root > h.end || h.version < 2 || h.version > 5 {
			return fmt.Errorf("%w: the unit at %#x has no header that is known here", ErrDamaged, at)
		}
		at = h.end
		if f.headers = append(f.headers, h); len(f.headers) > bounded.Units {
			return fmt.Errorf("%w: more than %d units", ErrTooMuch, bounded.Units)
		}
	}
	return f.allAbbrevs()
}

// unitAt is the header of the unit that an offset of .debug_info is in.
func (f *File) unitAt(at uint64) *header {
	i := sort.Search(len(f.headers), func(i int) bool { return f.headers[i].start > at })
	if i == 0 || at >= f.headers[i-1].end {
		return nil
	}
	return &f.headers[i-1]
}
