package archive

import (
	"encoding/binary"
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
	// Types: there is a table of its types.
	Types bool `json:"types,omitempty"`
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

// columnNames are the sections of columns.
var columnNames = [...]string{"names", "addrs", "sizes", "kinds"}

func (c *columns) sections() map[string]*[]byte {
	return map[string]*[]byte{"names": &c.names, "addrs": &c.addrs, "sizes": &c.sizes, "kinds": &c.kinds}
}

// Before a function there can be a symbol for its padding, with this before the name. As
// a name it is written by one byte.
const (
	paddingPrefix = "__pfx_"
	paddingName   = "\x01"
)

func (c *columns) add(syms []kimage.Symbol) {
	var last uint64
	for i := range syms {
		s := &syms[i]
		name := s.Name
		if i+1 < len(syms) && name == paddingPrefix+syms[i+1].Name && !strings.HasPrefix(syms[i+1].Name, paddingPrefix) {
			name = paddingName
		}
		c.names = append(append(c.names, name...), 0)
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

// distance returns the distance from symbol i to the next higher address.
func distance(syms []kimage.Symbol, i int) (uint64, bool) {
	for j := i + 1; j < len(syms); j++ {
		if syms[j].Addr > syms[i].Addr {
			return uint64(syms[j].Addr - syms[i].Addr), true
		}
	}
	return 0, false
}

// skip passes over the next n symbols.
func (c *columns) skip(n int) error {
	ok := n >= 0 && n <= len(c.kinds)
	for i := 0; ok && i < n; i++ {
		_, c.text, ok = strings.Cut(c.text, "\x00")
	}
	var ok1, ok2 bool
	c.addrs, ok1 = skipNumbers(c.addrs, n)
	c.sizes, ok2 = skipNumbers(c.sizes, n)
	if !ok || !ok1 || !ok2 {
		return damaged("symbols are missing")
	}
	c.kinds = c.kinds[n:]
	return nil
}

// skipNumbers passes over n numbers (binary.Uvarint).
func skipNumbers(b []byte, n int) (rest []byte, ok bool) {
	for i := 0; n > 0; i++ {
		if i == len(b) {
			return nil, false
		}
		if b[i] < 0x80 {
			n--
		}
		if n == 0 {
			return b[i+1:], true
		}
	}
	return b, n == 0
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
	for i := range syms {
		if syms[i].Name != paddingName {
			continue
		}
		// One of two in a row has no name: names would grow without a bound.
		if i+1 == len(syms) || syms[i+1].Name == paddingName {
			return nil, damaged("symbol %d has no name", i)
		}
		syms[i].Name = paddingPrefix + syms[i+1].Name
	}
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
