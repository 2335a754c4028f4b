package kimage

import (
	"strings"

	"kprobelab/decoder"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// inside shows the image to the packages that work for this one.
type inside struct{ *Image }

var _ opened.Image = inside{}

func (i inside) Bytes(addr x86.Addr, n int) []byte       { return i.bytes(addr, n) }
func (i inside) SymbolAddr(name string) (x86.Addr, bool) { return i.symbolAddr(name) }
func (i inside) OnlyText() bool                          { return i.bounds.onlyText }
func (i inside) Kernel() bool                            { return i.kind == KindKernel }
func (i inside) EntryText() (entry, irqEntry x86.Range)  { return i.bounds.entry, i.bounds.irqEntry }
func (i inside) SymbolAt(addr x86.Addr) (opened.Symbol, bool) {
	s, ok := i.Image.SymbolAt(addr)
	return opened.Symbol(s), ok
}

func (i inside) Lookup(name string) []opened.Symbol {
	var list []opened.Symbol
	for _, s := range i.Image.Lookup(name) {
		list = append(list, opened.Symbol(s))
	}
	return list
}

func (i inside) Partly(name string) string {
	if _, ok := i.symbolAddr(name); ok {
		return name
	}
	for _, s := range i.Symbols() {
		if rest, ok := strings.CutPrefix(s.Name, name); ok && s.Module == "" && strings.HasPrefix(rest, ".") {
			return s.Name
		}
	}
	return ""
}

func (i inside) Section(name string) *opened.Section {
	if s := i.section(name); s != nil {
		return &opened.Section{Name: s.Name, Addr: s.Addr, Data: s.Data, Exec: s.Exec}
	}
	return nil
}

func (i inside) Sections() []opened.Section {
	list := make([]opened.Section, len(i.sections))
	for n, s := range i.sections {
		list[n] = opened.Section{Name: s.Name, Addr: s.Addr, Data: s.Data, Exec: s.Exec, Module: s.Module}
	}
	return list
}

// Walk visits the instructions of a function one by one, until visit returns false or one is
// unknown. It visits nothing if the image has no function of the name, or several.
func (img *Image) Walk(function string, visit func(at x86.Addr, i *decoder.Inst) bool) {
	opened.Walk(inside{img}, function, visit)
}

// Moves reports whether a function moves a constant of 8 or 32 bits into memory or a register (mov $N).
func (img *Image) Moves(function string, n int64) bool { return opened.Moves(inside{img}, function, n) }

// Compares reports whether a function compares a byte with a constant (cmpb $N).
func (img *Image) Compares(function string, n uint8) bool {
	return opened.Compares(inside{img}, function, n)
}

// ReturnOf returns the return address of a function's first direct call of callee; 0 if it has
// none.
func (img *Image) ReturnOf(function, callee string) x86.Addr {
	return opened.ReturnOf(inside{img}, function, callee)
}

func (img *Image) partly(name string) string { return inside{img}.Partly(name) }
