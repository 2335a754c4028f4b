package kimage

import (
	"slices"
	"sort"
	"strings"

	"kprobelab/x86"
)

// Names holds the symbols of a kernel and of its modules, as kallsyms has them, and
// the ranges of addresses that are text.
type Names struct {
	index   symbolIndex
	modules []*moduleArea
	// regions are the modules' by ascending address.
	regions []moduleRegion
	// named are the modules' symbols by name, by the order of loading.
	named  map[string][]Symbol
	bounds bounds
	// with are the symbols of modules that With has added, by the order of loading. They
	// are in neither index, which are shared.
	with []Symbol
}

// moduleRegion is a piece of a module's memory.
type moduleRegion struct {
	x86.Range
	of *moduleArea
}

// addArea adds a module.
func (n *Names) addArea(m *moduleArea) {
	n.index.add(m.byAddr)
	if n.named == nil {
		n.named = make(map[string][]Symbol, len(m.byAddr))
	}
	for i := range m.byAddr {
		name := m.byAddr[i].Name
		n.named[name] = append(slices.Clip(n.named[name]), m.byAddr[i])
	}
	n.placeArea(m)
}

// placeArea is addArea without the indexes.
func (n *Names) placeArea(m *moduleArea) {
	n.modules = append(n.modules, m)
	for _, r := range m.regions {
		i := sort.Search(len(n.regions), func(i int) bool { return n.regions[i].Start > r.Start })
		n.regions = slices.Insert(n.regions, i, moduleRegion{r, m})
	}
}

// regionAt returns the module's region that contains an address.
func (n *Names) regionAt(addr x86.Addr) (moduleRegion, bool) {
	i := sort.Search(len(n.regions), func(i int) bool { return n.regions[i].Start > addr }) - 1
	if i < 0 || !n.regions[i].Contains(addr) {
		return moduleRegion{}, false
	}
	return n.regions[i], true
}

// Symbols lists kallsyms: the image's symbols by ascending address in table
// order, then the modules'. The caller must not modify it.
func (n *Names) Symbols() []Symbol {
	if len(n.with) > 0 {
		return slices.Concat(n.index.all, n.with)
	}
	return n.index.all
}

// Modules lists the names of the loaded modules in the order of loading.
func (n *Names) Modules() []string {
	var names []string
	for _, m := range n.modules {
		names = append(names, m.name)
	}
	return names
}

// Lookup implements View: the image's symbols of that name in table order,
// then the modules' in the order they were loaded.
func (n *Names) Lookup(name string) []Symbol {
	if mod, sym, ok := strings.Cut(name, ":"); ok {
		var found []Symbol
		for _, m := range n.modules {
			if m.name == mod {
				found = m.lookup(sym, found)
			}
		}
		return found
	}
	found := append(n.index.lookup(name, nil), n.named[name]...)
	for i := range n.with {
		if n.with[i].Name == name {
			found = append(found, n.with[i])
		}
	}
	return found
}

// SymbolAt implements View. As in the kernel, an address that lies in no
// kallsyms range (below _stext, past _end) has no symbol, and the per-CPU
// symbols' small numbers are no addresses.
func (n *Names) SymbolAt(addr x86.Addr) (Symbol, bool) {
	if n.bounds.kallsyms(addr) {
		return n.index.at(addr)
	}
	if r, ok := n.regionAt(addr); ok {
		s, ok := covering(r.of.byAddr, addr)
		return s, ok && r.Contains(s.Addr)
	}
	return Symbol{}, false
}

// InText implements View. The image is as boot leaves it, so the kernel's init text is
// freed and no text any more; InInit tells the addresses that it had.
func (n *Names) InText(addr x86.Addr) bool {
	if n.bounds.text(addr) {
		return true
	}
	r, ok := n.regionAt(addr)
	return ok && r.of.text.Contains(addr)
}

// InInit implements View.
func (n *Names) InInit(addr x86.Addr) (module string, ok bool) {
	if n.bounds.initText(addr) {
		return "", true
	}
	if r, ok := n.regionAt(addr); ok && r.of.initText.Contains(addr) {
		return r.of.name, true
	}
	return "", false
}

// NameTable is all of Names as data, for a file that keeps them.
type NameTable struct {
	// Kernel is the kernel's own part, Modules the modules' by the order of
	// loading.
	Kernel  NameArea
	Modules []NameArea
}

// NameArea is a kernel's or a module's part of a NameTable.
type NameArea struct {
	// Name is the module's name, "" for the kernel.
	Name string
	// Text is its text, and Init its init text.
	Text, Init x86.Range
	// Regions are the ranges of addresses that symbols cover.
	Regions []x86.Range
	// Symbols are by ascending address, with their sizes.
	Symbols []Symbol
}

// Table is all that the Names know. It shares their memory.
func (n *Names) Table() NameTable {
	b := &n.bounds
	t := NameTable{Kernel: NameArea{
		Text: x86.Range{Start: b.stext, End: b.etext}, Init: x86.Range{Start: b.sinittext, End: b.einittext},
		Regions: b.regions(), Symbols: n.index.all[:n.index.image],
	}}
	for _, m := range n.modules {
		t.Modules = append(t.Modules, NameArea{Name: m.name, Text: m.text, Init: m.initText, Regions: m.regions, Symbols: m.byAddr})
	}
	return t
}

// regions are the ranges that kallsyms answers for.
func (b *bounds) regions() []x86.Range {
	switch {
	case b.sections != nil:
		return b.sections
	case b.onlyText:
		return []x86.Range{{Start: b.stext, End: b.etext}, {Start: b.sinittext, End: b.einittext}}
	}
	return []x86.Range{{Start: b.stext, End: b.end}}
}

// NewNames makes Names of a table, and keeps its memory. The symbols of a part
// must be by ascending address.
func NewNames(t *NameTable) *Names {
	k := &t.Kernel
	n := &Names{bounds: bounds{
		stext: k.Text.Start, etext: k.Text.End, sinittext: k.Init.Start, einittext: k.Init.End,
		sections: append([]x86.Range{}, k.Regions...),
	}}
	n.index.chain(k.Symbols)
	for i := range t.Modules {
		n.addArea(t.Modules[i].area())
	}
	return n
}

func (a *NameArea) area() *moduleArea {
	return &moduleArea{name: a.Name, text: a.Text, initText: a.Init, regions: a.Regions, symbols: a.Symbols, byAddr: a.Symbols}
}

// With are the Names with one more module.
func (n *Names) With(a *NameArea) *Names {
	more := *n
	more.modules, more.regions = slices.Clip(n.modules), slices.Clone(n.regions)
	m := a.area()
	more.with = append(slices.Clip(n.with), m.byAddr...)
	more.placeArea(m)
	return &more
}
