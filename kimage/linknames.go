package kimage

import (
	"slices"
	"strings"
)

// promoted is the text that LLVM puts between a name and a hash when optimization at
// link time makes a local function global.
const promoted = ".llvm."

// cleanNames cuts the suffixes that LLVM gives to names when it optimizes at link time, as
// the kernel's lookups do (kallsyms.c, cleanup_symbol_name): from the first dot on (5.16 to
// 6.5), later only promoted ones, which a late lookup's text names; from 6.11 on none are.
func (img *Image) cleanNames(syms []Symbol) {
	if !slices.ContainsFunc(syms, func(s Symbol) bool { return strings.Contains(s.Name, promoted) }) {
		return
	}
	b := img.banner()
	cut := promoted
	switch {
	case !b.Since(5, 16) || b.Since(6, 11):
		return
	case !img.says("\x00" + promoted + "\x00"):
		cut = "."
	}
	for i := range syms {
		if at := strings.Index(syms[i].Name, cut); at > 0 {
			syms[i].Name = syms[i].Name[:at]
		}
	}
}
