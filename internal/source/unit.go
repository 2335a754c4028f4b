package source

import (
	"debug/dwarf"
	"fmt"

	"kprobelab/internal/bounded"
)

// keepUnits is the number of units that are kept as they were read.
const keepUnits = 8

// Unit is a unit with all its entries.
type Unit struct {
	f     *File
	h     *header
	root  *node
	byOff map[dwarf.Offset]*node
	lines []line
	names []*dwarf.LineFile
	read  bool
}

// node is an entry with its place in the tree.
type node struct {
	*dwarf.Entry
	unit     *Unit
	parent   *node
	children []*node
	ranges   [][2]uint64
	ranged   bool
	// c is the type that the entry describes, once it is made.
	c *madeType
}

// unit reads a unit, or finds it among the units that were read last.
func (f *File) unit(h *header) (u *Unit, err error) {
	for i, u := range f.recent {
		if u.h == h {
			f.recent = append(append(f.recent[:i:i], f.recent[i+1:]...), u)
			return u, nil
		}
	}
	defer guard(&err)
	u = &Unit{f: f, h: h, byOff: map[dwarf.Offset]*node{}}
	r := f.dwarf.Reader()
	r.Seek(dwarf.Offset(h.root))
	var open *node
	for depth := 0; ; {
		e, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if e == nil || uint64(e.Offset) >= h.end {
			break
		}
		if e.Tag == 0 {
			if depth--; depth <= 0 {
				break
			}
			open = open.parent
			continue
		}
		if f.left--; f.left < 0 || len(u.byOff) >= bounded.UnitEntries {
			return nil, fmt.Errorf("%w for one question: the unit at %#x is not read to its end", ErrTooMuch, h.start)
		}
		n := &node{Entry: e, unit: u, parent: open}
		u.byOff[e.Offset] = n
		if open == nil {
			u.root = n
		} else {
			open.children = append(open.children, n)
		}
		if e.Children {
			if open, depth = n, depth+1; depth > bounded.UnitDepth {
				return nil, fmt.Errorf("%w: entries are nested deeper than %d", ErrTooMuch, bounded.UnitDepth)
			}
		}
		if depth == 0 {
			break
		}
	}
	if u.root == nil {
		return nil, fmt.Errorf("%w: the unit at %#x is empty", ErrDamaged, h.start)
	}
	if f.recent = append(f.recent, u); len(f.recent) > keepUnits {
		f.recent = append([]*Unit(nil), f.recent[1:]...)
	}
	return u, nil
}

// node finds an entry that another one refers to.
func (u *Unit) node(at dwarf.Offset) *node {
	if n := u.byOff[at]; n != nil {
		return n
	}
	h := u.f.unitAt(uint64(at))
	if h == nil || h == u.h {
		return nil
	}
	other, err := u.f.unit(h)
	if err != nil {
		return nil
	}
	return other.byOff[at]
}

// link is the entry that an attribute refers to, nil without one.
func (n *node) link(attr dwarf.Attr) *node {
	at, ok := n.Val(attr).(dwarf.Offset)
	if !ok {
		return nil
	}
	return n.unit.node(at)
}

// integrate returns an attribute of an entry, or of the entry that it is an instance of.
func (n *node) integrate(attr dwarf.Attr) (val any, at *node) {
	for range bounded.References {
		if n == nil {
			return nil, nil
		}
		if v := n.Val(attr); v != nil {
			return v, n
		}
		next := n.link(dwarf.AttrAbstractOrigin)
		if next == nil {
			next = n.link(dwarf.AttrSpecification)
		}
		n = next
	}
	return nil, nil
}

func (n *node) name() string {
	v, _ := n.integrate(dwarf.AttrName)
	s, _ := v.(string)
	return s
}

func (n *node) linkage() string {
	v, _ := n.integrate(attrLinkage)
	s, _ := v.(string)
	return s
}

// matches reports whether a function's name, or the linker's name for it, matches.
func (n *node) matches(glob string) bool {
	for _, name := range []string{n.name(), n.linkage()} {
		if name != "" && (name == glob || isGlob(glob) && matches(glob, name)) {
			return true
		}
	}
	return false
}

// number is an attribute that is a constant.
func (n *node) number(attr dwarf.Attr) (int64, bool) {
	v, _ := n.integrate(attr)
	return constant(v)
}

func constant(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), true
	}
	return 0, false
}

// code are the ranges of an entry's own code.
func (n *node) code() [][2]uint64 {
	if n.ranged {
		return n.ranges
	}
	n.ranged = true
	r, err := n.unit.f.dwarf.Ranges(n.Entry)
	if err == nil {
		n.ranges = r
	}
	return n.ranges
}

func (n *node) hasPC(addr uint64) bool {
	for _, r := range n.code() {
		if addr >= r[0] && addr < r[1] {
			return true
		}
	}
	return false
}

// attrEntryPC is the address at which an inlined copy is entered, if that is not its start.
const attrEntryPC = dwarf.AttrEntrypc

// exactEntry returns the entry address that the file gives by itself; entry takes the
// beginning of the ranges, too.
func (n *node) exactEntry() (uint64, bool) {
	for _, attr := range []dwarf.Attr{attrEntryPC, dwarf.AttrLowpc} {
		if at, ok := n.Val(attr).(uint64); ok {
			return at, true
		}
	}
	return 0, false
}

func (n *node) entry() (uint64, bool) {
	if at, ok := n.exactEntry(); ok {
		return at, true
	}
	if r := n.code(); n.Val(dwarf.AttrRanges) != nil && len(r) > 0 {
		return r[0][0], true
	}
	return 0, false
}

// high is the end of an entry whose code is in one piece.
func (n *node) high() (uint64, bool) {
	if n.Val(dwarf.AttrHighpc) == nil || len(n.code()) == 0 {
		return 0, false
	}
	return n.code()[0][1], true
}

// defines reports whether a function is more than declared.
func (n *node) defines() bool {
	if n.Tag != dwarf.TagSubprogram || n.Val(dwarf.AttrDeclaration) != nil {
		return false
	}
	_, has := n.entry()
	return has || n.Val(dwarf.AttrInline) != nil
}

// instance reports whether an entry is a function with code, or an inlined copy of one.
func (n *node) instance() bool {
	if n.Tag != dwarf.TagSubprogram && n.Tag != dwarf.TagInlinedSubroutine {
		return false
	}
	_, ok := n.exactEntry()
	return ok || n.Val(dwarf.AttrRanges) != nil
}

// turn says how a walk continues.
type turn int

const (
	stop turn = iota
	into
	over
)

// find walks the entries below one, in their order, and returns the one at which visit
// stops.
func (n *node) find(visit func(*node) turn) *node {
	for _, c := range n.children {
		switch visit(c) {
		case stop:
			return c
		case into:
			if found := c.find(visit); found != nil {
				return found
			}
		}
	}
	return nil
}

// subprograms calls visit for each function of a unit until it returns false.
func (u *Unit) subprograms(visit func(*node) bool) {
	u.root.find(func(n *node) turn {
		switch n.Tag {
		case dwarf.TagSubprogram:
			if !visit(n) {
				return stop
			}
			return into
		case dwarf.TagLexDwarfBlock, dwarf.TagInlinedSubroutine, dwarf.TagNamespace, dwarf.TagStructType, dwarf.TagClassType:
			return into
		}
		return over
	})
}

// functionAt is the function with code at an address.
func (u *Unit) functionAt(addr uint64) (found *node) {
	u.subprograms(func(n *node) bool {
		if n.hasPC(addr) {
			found = n
		}
		return found == nil
	})
	return found
}

// inlinedAt is the outermost copy below a function that an address is in.
func (n *node) inlinedAt(addr uint64) *node {
	return n.find(func(c *node) turn {
		if c.Tag == dwarf.TagInlinedSubroutine && c.hasPC(addr) {
			return stop
		}
		return into
	})
}

// innermost is the deepest copy below a function that an address is in.
func (n *node) innermost(addr uint64) (deepest *node) {
	for n = n.inlinedAt(addr); n != nil; n = n.inlinedAt(addr) {
		deepest = n
	}
	return deepest
}
