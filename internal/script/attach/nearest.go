package attach

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// dataTypes are the letters of data symbols in /proc/kallsyms. A reader that looks for code leaves these symbols out.
const dataTypes = "bBdDrR"

// Nearest implements host.System.
func (h *hit) Nearest(addr uint64) (name string, offset uint64, ok bool) {
	if h.r.o.Image == nil {
		return "", 0, false
	}
	if h.r.texts == nil {
		h.r.texts = codeSymbols(h.r.o.Image.Symbols())
	}
	return nearest(h.r.texts, addr)
}

// codeSymbols returns the symbols of code, sorted by address; symbols with the same address stay in the kernel's order.
func codeSymbols(all []kimage.Symbol) []kimage.Symbol {
	list := make([]kimage.Symbol, 0, len(all))
	for _, s := range all {
		if s.Addr != 0 && strings.IndexByte(dataTypes, s.Type) < 0 {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b kimage.Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	return list
}

// nearest returns the last symbol at or before an address, and the address's distance from it.
func nearest(list []kimage.Symbol, addr uint64) (name string, offset uint64, ok bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr > x86.Addr(addr) }) - 1
	if i < 0 {
		return "", 0, false
	}
	return list[i].Name, addr - uint64(list[i].Addr), true
}
