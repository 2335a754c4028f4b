package machine

import (
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Source is the image that a machine runs. *kimage.Image implements it.
type Source interface {
	// Segments are mapped as they are, page by page.
	Segments() []kimage.Segment
	// PerCPU is the template of the per-CPU area; each CPU gets a copy.
	PerCPU() (kimage.PerCPU, bool)
	// Lookup finds the functions that Call names.
	Lookup(name string) []kimage.Symbol
	// SymbolAt names addresses in errors.
	SymbolAt(addr x86.Addr) (kimage.Symbol, bool)
	// ExceptionEntry is the exception table's fixup for an instruction.
	ExceptionEntry(addr x86.Addr) (x86.Addr, bool)
	// ModuleEnd returns the start of free module space; 0 means its usual start.
	ModuleEnd() x86.Addr
}

// Windowed is an optional interface of a Source that needs address ranges with no page mapped, for
// SetPages.
type Windowed interface {
	// Windows returns ranges of whole pages, outside the segments.
	Windows() []x86.Range
}
