package kimage

import (
	"cmp"
	"slices"
	"sort"

	"kprobelab/x86"
)

// symbolIndex answers what kallsyms answers: names to symbols in table order,
// addresses to the symbol that covers them.
type symbolIndex struct {
	// all has the image's symbols by ascending address, equal addresses in
	// table order, and then the modules'.
	all []Symbol
	// image counts the elements of all that belong to the image.
	image int
	// first and next chain the image's symbols of one name in table order:
	// first has the index in all of the first one, next of the following one
	// plus 1 (0 ends the chain).
	first map[string]int32
	next  []int32
}

// setImage makes the index of the image's symbols, which must be sorted by address. It
// sets their sizes as kallsyms computes them; end returns the end of the last symbol.
func (x *symbolIndex) setImage(syms []Symbol, end func(x86.Addr) x86.Addr) {
	setSizes(syms, end)
	x.chain(syms)
}

// chain makes the index of symbols that have their sizes.
func (x *symbolIndex) chain(syms []Symbol) {
	x.all = slices.Clip(syms)
	x.image = len(syms)
	x.first = make(map[string]int32, len(syms))
	for i := len(syms) - 1; i >= 0; i-- {
		if after, ok := x.first[syms[i].Name]; ok {
			if x.next == nil {
				x.next = make([]int32, len(syms))
			}
			x.next[i] = after + 1
		}
		x.first[syms[i].Name] = int32(i)
	}
}

// setSizes gives each symbol the distance to the next higher address, but at most to end(addr)
// if that is higher (kallsyms.c, get_symbol_pos; there the end counts for the last symbol only).
func setSizes(syms []Symbol, end func(x86.Addr) x86.Addr) {
	next := len(syms)
	for i := len(syms) - 1; i >= 0; i-- {
		if i+1 < len(syms) && syms[i+1].Addr > syms[i].Addr {
			next = i + 1
		}
		stop := end(syms[i].Addr)
		if next < len(syms) && (stop == 0 || syms[next].Addr < stop) {
			stop = syms[next].Addr
		}
		if stop > syms[i].Addr {
			syms[i].Size = uint64(stop - syms[i].Addr)
		}
	}
}

// add appends a module's symbols; they come after the image's in lookups.
func (x *symbolIndex) add(syms []Symbol) { x.all = append(x.all, syms...) }

// imageAddr returns the address of the image's first symbol of that name.
func (x *symbolIndex) imageAddr(name string) (x86.Addr, bool) {
	i, ok := x.first[name]
	if !ok {
		return 0, false
	}
	return x.all[i].Addr, true
}

// lookup appends the image's symbols of that name in table order.
func (x *symbolIndex) lookup(name string, to []Symbol) []Symbol {
	i, ok := x.first[name]
	if !ok {
		return to
	}
	for {
		to = append(to, x.all[i])
		if x.next == nil || x.next[i] == 0 {
			return to
		}
		i = x.next[i] - 1
	}
}

// at returns the image's symbol that covers addr: the first of the symbols with the highest
// address at or below it. It does not check whether kallsyms covers the address at all.
func (x *symbolIndex) at(addr x86.Addr) (Symbol, bool) {
	return covering(x.all[:x.image], addr)
}

func covering(syms []Symbol, addr x86.Addr) (Symbol, bool) {
	i := sort.Search(len(syms), func(i int) bool { return syms[i].Addr > addr }) - 1
	if i < 0 {
		return Symbol{}, false
	}
	for i > 0 && syms[i-1].Addr == syms[i].Addr {
		i--
	}
	return syms[i], true
}

// moduleArea holds a loaded module's ranges of addresses and its symbols.
type moduleArea struct {
	name string
	// text and initText are its executable parts, core and init.
	text, initText x86.Range
	// regions are the pieces of memory it consists of; a symbol's size
	// never reaches over the end of its region.
	regions []x86.Range
	// symbols are the module's kallsyms in table order.
	symbols []Symbol
	// byAddr are the same by address, with sizes; addModule makes it.
	byAddr []Symbol
	// btf is the module's section .BTF, which builds on the kernel's.
	btf []byte
}

// addModule makes a module part of the image: its sections become addressable,
// its symbols are found after the image's. It is called while the image is
// being opened.
func (img *Image) addModule(m *moduleArea, sections []*Section) {
	m.byAddr = slices.Clone(m.symbols)
	slices.SortStableFunc(m.byAddr, byAddress)
	setSizes(m.byAddr, func(a x86.Addr) x86.Addr {
		r, _ := m.region(a)
		return r.End
	})
	img.addArea(m)
	if img.owned == nil {
		img.owned = map[string][]*Section{}
	}
	img.owned[m.name] = slices.SortedStableFunc(slices.Values(sections), func(a, b *Section) int { return cmp.Compare(a.Addr, b.Addr) })
	img.addSections(sections)
}

func byAddress(a, b Symbol) int {
	switch {
	case a.Addr < b.Addr:
		return -1
	case a.Addr > b.Addr:
		return 1
	}
	return 0
}

func (m *moduleArea) region(addr x86.Addr) (x86.Range, bool) {
	for _, r := range m.regions {
		if r.Contains(addr) {
			return r, true
		}
	}
	return x86.Range{}, false
}

func (m *moduleArea) lookup(name string, to []Symbol) []Symbol {
	for _, s := range m.byAddr {
		if s.Name == name {
			to = append(to, s)
		}
	}
	return to
}

// SameName counts symbols of one name; with kernelFirst, modules' symbols count only if
// the kernel itself has none (number_of_same_symbols).
func SameName(found []Symbol, kernelFirst bool) int {
	own := 0
	for _, s := range found {
		if s.Module == "" {
			own++
		}
	}
	if kernelFirst && own > 0 {
		return own
	}
	return len(found)
}
