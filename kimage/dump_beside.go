package kimage

import (
	"slices"
	"strings"

	"kprobelab/x86"
)

// A module beside a booted kernel is the caller's code, at addresses that the kernel has
// not mapped. The kernel knows nothing of it, and its loader has not seen it: a file
// with parts that the kernel would have to read or run is refused.

// besideStart is the address at which the search for room begins: the middle of module
// space. The kernel itself loads modules below it; the machine's own memory is above
// (Documentation/arch/x86/x86_64/mm.rst).
const besideStart = x86.Addr(0xffffffffe0000000)

// besideEnd is the address at which the search ends.
const besideEnd = x86.Addr(0xfffffffff0000000)

// plainSections are the sections that a module beside a booted kernel may have:
// these, and their parts with a dot after the name.
var plainSections = []string{".text", ".rodata", ".data", ".bss", ".note", ".eh_frame"}

// loadBeside loads the modules of the options.
func (d *dump) loadBeside() error {
	img := d.img
	first := len(img.segments)
	for _, path := range img.opts.Modules {
		if err := img.loadModule(path); err != nil {
			return err
		}
	}
	img.beside = img.segments[first:]
	return nil
}

// Beside are the segments of the modules that were loaded beside a booted kernel: it
// has not mapped them.
func (img *Image) Beside() []Segment { return img.beside }

// goBeside finds the module's place beside a booted kernel.
func (m *moduleFile) goBeside() error {
	for i := range m.f.shdrs {
		s := &m.f.shdrs[i]
		if s.typ == 0 || s.flags&shfAlloc == 0 || s.size == 0 || notLoaded[s.name] {
			continue
		}
		if s.isPerCPU() || !slices.ContainsFunc(plainSections, func(plain string) bool { return s.name == plain || strings.HasPrefix(s.name, plain+".") }) {
			return badFormat(m.f.name, -1, "module %s has a section %s, which the booted kernel itself would have to load (kprobelab boot --module): beside a dump there can be plain code and data",
				m.name, s.name)
		}
	}
	at := besideStart
	for p := at; p < at.Add(int64(m.room())); p += pageSize {
		if p >= besideEnd {
			return badFormat(m.f.name, -1, "there is no room for module %s beside the booted kernel", m.name)
		}
		if _, err := m.img.space.Translate(p); err == nil || m.img.besideTaken(p) {
			at = p + pageSize
		}
	}
	m.next = at
	return nil
}

// besideTaken reports whether an earlier module has an address.
func (img *Image) besideTaken(at x86.Addr) bool {
	return slices.ContainsFunc(img.modules, func(m *moduleArea) bool {
		return slices.ContainsFunc(m.regions, func(r x86.Range) bool { return at < x86.Addr(pageUp(uint64(r.End))) && r.Start < at+pageSize })
	})
}
