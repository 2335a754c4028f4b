package machine

import (
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Source is what a machine needs of the image that it runs. *kimage.Image
// implements it.
type Source interface {
	// Segments are mapped as they are, page by page.
	Segments() []kimage.Segment
	// PerCPU is the template of the area that each CPU gets a copy of.
	PerCPU() (kimage.PerCPU, bool)
	// Lookup finds the functions that Call names.
	Lookup(name string) []kimage.Symbol
	// SymbolAt names addresses in errors.
	SymbolAt(addr x86.Addr) (kimage.Symbol, bool)
	// ExceptionEntry is the exception table's fixup for an instruction.
	ExceptionEntry(addr x86.Addr) (x86.Addr, bool)
	// ModuleEnd is where module space is free; 0 means its usual start.
	ModuleEnd() x86.Addr
}

// Windowed is what a Source has beside where it wants memory with no page mapped, for
// SetPages.
type Windowed interface {
	// Windows are whole pages, apart from the segments.
	Windows() []x86.Range
}
