package source

import (
	"debug/dwarf"

	"kprobelab/internal/bounded"
)

// span is an expression with the addresses for which it holds.
type span struct {
	from, to uint64
	raw      []byte
}

// everywhere is the end of a span that has none.
const everywhere = ^uint64(0)

// spans returns the spans of a location attribute, in the file's order.
func (n *node) spans(attr dwarf.Attr) []span {
	v, at := n.integrate(attr)
	if at == nil {
		return nil
	}
	f, h := n.unit.f, at.unit.h
	switch v := v.(type) {
	case []byte:
		return []span{{0, everywhere, v}}
	case int64:
		if h.version >= 5 {
			return f.loclist(at.unit, uint64(v))
		}
		return f.oldLoclist(at.unit, uint64(v))
	case uint64: // DW_FORM_loclistx
		base, _ := constant(at.unit.root.Val(dwarf.AttrLoclistsBase))
		c := cursor{b: f.debug["debug_loclists"]}
		c.skip(uint64(base) + min(v, bounded.DebugSections)*uint64(h.word()))
		off := c.offset(h.wide)
		if c.bad {
			return nil
		}
		return f.loclist(at.unit, uint64(base)+off)
	}
	return nil
}

// base returns the address to which the addresses in a unit's lists are added.
func (u *Unit) base() uint64 {
	at, _ := u.root.Val(dwarf.AttrLowpc).(uint64)
	return at
}

// loclist reads a list of .debug_loclists (DWARF 5, 7.7.3).
func (f *File) loclist(u *Unit, at uint64) (out []span) {
	c := cursor{b: f.debug["debug_loclists"]}
	c.skip(at)
	base := u.base()
	for !c.bad && len(out) < bounded.LocationSpans {
		var s span
		switch kind := c.u8(); kind {
		case 0: // end of list
			return out
		case 1: // base_addressx
			base = f.indexedAddr(u.h, c.uleb())
			continue
		case 2: // startx_endx
			s.from, s.to = f.indexedAddr(u.h, c.uleb()), f.indexedAddr(u.h, c.uleb())
		case 3: // startx_length
			s.from = f.indexedAddr(u.h, c.uleb())
			s.to = s.from + c.uleb()
		case 4: // offset_pair
			s.from, s.to = base+c.uleb(), base+c.uleb()
		case 5: // default_location
			s.to = everywhere
		case 6: // base_address
			base = c.u64()
			continue
		case 7: // start_end
			s.from, s.to = c.u64(), c.u64()
		case 8: // start_length
			s.from = c.u64()
			s.to = s.from + c.uleb()
		case 9: // view_pair
			c.uleb()
			c.uleb()
			continue
		default:
			return out
		}
		s.raw = c.take(c.uleb())
		if !c.bad {
			out = append(out, s)
		}
	}
	return out
}

// oldLoclist reads a list of .debug_loc (DWARF 4, 2.6.2).
func (f *File) oldLoclist(u *Unit, at uint64) (out []span) {
	c := cursor{b: f.debug["debug_loc"]}
	c.skip(at)
	base := u.base()
	for !c.bad && len(out) < bounded.LocationSpans {
		from, to := c.u64(), c.u64()
		switch {
		case from == 0 && to == 0:
			return out
		case from == everywhere:
			base = to
			continue
		}
		raw := c.take(uint64(c.u16()))
		if !c.bad {
			out = append(out, span{base + from, base + to, raw})
		}
	}
	return out
}

func exprAt(spans []span, addr uint64) ([]byte, bool) {
	for _, s := range spans {
		if addr >= s.from && addr < s.to {
			return s.raw, true
		}
	}
	return nil, false
}
