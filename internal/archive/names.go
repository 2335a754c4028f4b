package archive

import (
	"encoding/binary"
	"sort"
	"strings"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// area is the kernel or a module: all but its symbols.
type area struct {
	Name    string `json:"name,omitempty"`
	Text    span   `json:"text"`
	Init    span   `json:"init"`
	Regions []span `json:"regions"`
	Symbols int    `json:"symbols"`
}

// span is a range of addresses, [start, end).
type span [2]uint64

func spanOf(r x86.Range) span { return span{uint64(r.Start), uint64(r.End)} }

func (s span) rng() x86.Range { return x86.Range{Start: x86.Addr(s[0]), End: x86.Addr(s[1])} }

func (s span) len() uint64 {
	if s[1] < s[0] {
		return 0
	}
	return s[1] - s[0]
}

func areaOf(a *kimage.NameArea) area {
	out := area{Name: a.Name, Text: spanOf(a.Text), Init: spanOf(a.Init), Symbols: len(a.Symbols)}
	for _, r := range a.Regions {
		out.Regions = append(out.Regions, spanOf(r))
	}
	return out
}

// columns are the symbols of all areas, a property each.
type columns struct {
	names, addrs, sizes, kinds []byte
	// text is names when they are read: the symbols share its memory.
	text string
}

func (c *columns) add(syms []kimage.Symbol) {
	var last uint64
	for i := range syms {
		s := &syms[i]
		c.names = append(append(c.names, s.Name...), 0)
		c.addrs = binary.AppendUvarint(c.addrs, uint64(s.Addr)-last)
		last = uint64(s.Addr)
		size := s.Size + 1
		if next, ok := distance(syms, i); ok && next == s.Size {
			size = 0
		}
		c.sizes = binary.AppendUvarint(c.sizes, size)
		c.kinds = append(c.kinds, s.Type)
	}
}

// distance is how far the next higher address is from symbol i.
func distance(syms []kimage.Symbol, i int) (uint64, bool) {
	for j := i + 1; j < len(syms); j++ {
		if syms[j].Addr > syms[i].Addr {
			return uint64(syms[j].Addr - syms[i].Addr), true
		}
	}
	return 0, false
}

// readColumns takes the sections of the names.
func readColumns(f *file) (c columns, err error) {
	for name, to := range map[string]*[]byte{"names": &c.names, "addrs": &c.addrs, "sizes": &c.sizes, "kinds": &c.kinds} {
		if *to, err = f.section(name); err != nil {
			return c, err
		}
	}
	c.text = string(c.names)
	return c, nil
}

// take reads the next n symbols.
func (c *columns) take(module string, n int) ([]kimage.Symbol, error) {
	if n < 0 || n > len(c.kinds) {
		return nil, damaged("symbols are missing")
	}
	syms := make([]kimage.Symbol, n)
	sizes := make([]uint64, n)
	var last uint64
	for i := range syms {
		name, rest, ok := strings.Cut(c.text, "\x00")
		delta, n1 := binary.Uvarint(c.addrs)
		size, n2 := binary.Uvarint(c.sizes)
		if !ok || len(name) == 0 || n1 <= 0 || n2 <= 0 || last+delta < last {
			return nil, damaged("symbol %d cannot be read", i)
		}
		last += delta
		syms[i] = kimage.Symbol{Name: name, Addr: x86.Addr(last), Type: c.kinds[i], Module: module}
		sizes[i] = size
		c.text, c.addrs, c.sizes = rest, c.addrs[n1:], c.sizes[n2:]
	}
	c.kinds = c.kinds[n:]
	setSizes(syms, sizes)
	return syms, nil
}

// setSizes gives the symbols their sizes.
func setSizes(syms []kimage.Symbol, sizes []uint64) {
	var above x86.Addr // the next higher address
	for i := len(syms) - 1; i >= 0; i-- {
		if i+1 < len(syms) && syms[i+1].Addr > syms[i].Addr {
			above = syms[i+1].Addr
		}
		if sizes[i] > 0 {
			syms[i].Size = sizes[i] - 1
		} else if above > syms[i].Addr {
			syms[i].Size = uint64(above - syms[i].Addr)
		}
	}
}

// table puts areas and symbols together.
func table(areas []area, c *columns) (*kimage.NameTable, error) {
	var t kimage.NameTable
	for i := range areas {
		a := &areas[i]
		syms, err := c.take(a.Name, a.Symbols)
		if err != nil {
			return nil, err
		}
		n := kimage.NameArea{Name: a.Name, Text: a.Text.rng(), Init: a.Init.rng(), Symbols: syms}
		for _, r := range a.Regions {
			n.Regions = append(n.Regions, r.rng())
		}
		if i == 0 {
			t.Kernel = n
		} else {
			t.Modules = append(t.Modules, n)
		}
	}
	return &t, nil
}

// at is the number, in a list by ascending address, of the first symbol at an
// address.
func at(syms []kimage.Symbol, a x86.Addr) (int, bool) {
	i := sort.Search(len(syms), func(i int) bool { return syms[i].Addr >= a })
	return i, i < len(syms) && syms[i].Addr == a
}
