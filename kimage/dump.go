package kimage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/structures"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// dump is a booted kernel's memory, while an image is made from it.
type dump struct {
	img   *Image
	core  *vmcore.Core
	space *vmcore.Space
	// Kernel reads its memory. Data is the kernel's own mapping; pages that are not mapped are zero.
	structures.Kernel
	// runs are the parts that are mapped, each with one protection.
	runs []run
	// left counts the pages that were left out of the dump.
	left int
	// used counts the memory, types and symbols of the modules that were read so far.
	used moduleUse
}

// run is a part of the kernel's mapping.
type run struct {
	x86.Range
	write, exec bool
}

// The kernel's own mapping, wherever KASLR puts it
// (Documentation/arch/x86/x86_64/mm.rst).
const (
	kernelMapStart = x86.Addr(0xffffffff80000000)
	kernelMapEnd   = x86.Addr(0xffffffffc0000000)
)

// Core is the memory dump that the image was made of, nil for an image of another
// kind. It needs no Close.
func (img *Image) Core() *vmcore.Core { return img.core }

// ReadKernel reads memory of a dump as its kernel maps it. It fails for another image.
func (img *Image) ReadKernel(at x86.Addr, b []byte) error {
	if img.space == nil {
		return fmt.Errorf("%s is no memory dump: %w", img.name, errno.EFAULT)
	}
	return img.space.Read(at, b)
}

// dumpAt opens the file if it is a memory dump; nil if it is none.
func dumpAt(path string) (*vmcore.Core, error) {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil, nil // a pipe can be opened once; readFile says what is wrong
	}
	f, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !vmcore.Is(f, st.Size()) {
		return nil, err
	}
	return dumpError(vmcore.Open(path))
}

// dumpIn opens bytes if they are a memory dump; nil if they are none.
func dumpIn(name string, b []byte) (*vmcore.Core, error) {
	r := bytes.NewReader(b)
	if !vmcore.Is(r, r.Size()) {
		return nil, nil
	}
	return dumpError(vmcore.FromReader(name, r, r.Size()))
}

// dumpError turns a dump's FormatError into one of this package.
func dumpError(c *vmcore.Core, err error) (*vmcore.Core, error) {
	var bad *vmcore.FormatError
	if errors.As(err, &bad) {
		return nil, &FormatError{File: bad.File, Offset: -1, Want: bad.Want}
	}
	return c, err
}

// openDump makes the image of a dump.
func openDump(name string, core *vmcore.Core, o *Options) (*Image, error) {
	img := &Image{name: printable.Name(name), kind: KindKernel, core: core}
	if o != nil {
		img.opts = *o
	}
	d := newDump(img, core)
	for _, step := range []func() error{
		d.refuse, d.findSpace, d.findRuns, d.readRuns, d.readSymbols, d.layOut,
		img.choose,
		d.describe, img.loadTables, d.loadModules, d.liveTables, d.findPerCPU, d.findCPU, d.findUptime, d.findTaskLayout, d.findTaskPlaces, d.findTasks, d.findRegisters,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	img.space = d.space
	if err := d.loadBeside(); err != nil {
		return nil, err
	}
	img.measure()
	return img, nil
}

// newDump has no memory yet (findSpace).
func newDump(img *Image, core *vmcore.Core) *dump {
	d := &dump{img: img, core: core}
	d.Kernel = *img.inMemory(func(at x86.Addr, b []byte) error { return d.space.Read(at, b) })
	return d
}

// bad is a FormatError about the dump.
func (d *dump) bad(format string, args ...any) error {
	return badFormat(d.core.Name(), -1, format, args...)
}

// ErrForImage is the error of an option that an image takes and a memory dump does not.
var ErrForImage = errors.New("wrong option")

// refuse refuses options that a booted kernel has no use for.
func (d *dump) refuse() error {
	o := &d.img.opts
	for _, r := range []struct {
		what  string
		given bool
	}{
		{"live text", o.LiveText != ""}, {"a map of symbols", o.SystemMap != ""},
		{"a package of modules", o.Package != ""}, {"a processor", o.CPU != ""},
	} {
		if r.given {
			return fmt.Errorf("%s: %w: %s goes with an image; a memory dump has its own", d.core.Name(), ErrForImage, r.what)
		}
	}
	return nil
}

// findSpace finds the kernel's page tables: the tables of a CPU, or the ones that
// VMCOREINFO names.
func (d *dump) findSpace() error {
	var tried []*vmcore.Space
	cpus := d.core.CPUs()
	for i := range cpus {
		if c := cpus[i].Control; c != nil {
			s := d.core.Space(c.CR3, c.Levels())
			tried = append(tried, s, s.KernelHalf())
		}
	}
	for _, s := range tried {
		if d.hasKernel(s) {
			d.space = s
			return nil
		}
	}
	info := d.core.VMCoreInfo()
	base, ok := info.Number("phys_base")
	root := info.Symbol("swapper_pg_dir")
	if !ok || root == 0 {
		return d.bad("nothing in the dump says where the kernel's page tables are: it has neither QEMU's notes nor VMCOREINFO")
	}
	levels := 4
	if five, _ := info.Number("pgtable_l5_enabled"); five == 1 {
		levels = 5
	}
	d.space = d.core.Space(uint64(root.Sub(kernelMapStart)+base), levels)
	if !d.hasKernel(d.space) {
		return d.bad("the page tables at %v, which VMCOREINFO names, map no kernel", root)
	}
	return nil
}

// hasKernel reports whether a page is mapped from which code of the kernel is run.
// The user's half of separated page tables has the entry text alone, in small
// pages.
func (d *dump) hasKernel(s *vmcore.Space) bool {
	for at := kernelMapStart; at < kernelMapEnd; at += largePage {
		if t, err := s.Translate(at); err == nil && t.Exec && t.PageSize >= largePage {
			return true
		}
	}
	return false
}

const largePage = 2 << 20

// findRuns finds the kernel's mapping.
func (d *dump) findRuns() (err error) {
	d.runs, err = d.walk(x86.Range{Start: kernelMapStart, End: kernelMapEnd})
	return err
}

// walk finds what is mapped of a range of whole pages.
func (d *dump) walk(all x86.Range) ([]run, error) {
	var list []run
	for at := all.Start; at < all.End; {
		t, err := d.space.Translate(at)
		var none *vmcore.NotMappedError
		if errors.As(err, &none) && none.Level > 0 {
			size := x86.Addr(1) << (12 + 9*(none.Level-1))
			at = at&^(size-1) + size
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: the kernel's page tables: %w", d.core.Name(), err)
		}
		size := x86.Addr(t.PageSize)
		r := run{x86.Range{Start: at, End: min(at&^(size-1)+size, all.End)}, t.Write, t.Exec}
		if last := len(list) - 1; last >= 0 && list[last].End == r.Start && list[last].write == r.write && list[last].exec == r.exec {
			list[last].End = r.End
		} else {
			list = append(list, r)
		}
		at = r.End
	}
	return list, nil
}

// readRuns reads the kernel's mapping.
func (d *dump) readRuns() error {
	d.Start = d.runs[0].Start
	size := d.runs[len(d.runs)-1].End.Sub(d.Start)
	if size > bounded.DumpKernel {
		return d.bad("a kernel's mapping of at most %d MiB is wanted, this one has %d MiB", bounded.DumpKernel>>20, size>>20)
	}
	d.Data = make([]byte, size)
	for _, r := range d.runs {
		for at := r.Start; at < r.End; at += pageSize {
			if err := d.readPage(at, d.Data[at.Sub(d.Start):][:pageSize]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPage reads a page. One that was left out of the dump stays zero.
func (d *dump) readPage(at x86.Addr, b []byte) error {
	var filtered *vmcore.FilteredError
	err := d.space.Read(at, b)
	if errors.As(err, &filtered) {
		d.left++
		return nil
	}
	return err
}

// run is the part of the mapping with an address, nil without one.
func (d *dump) run(a x86.Addr) *run {
	for i := range d.runs {
		if d.runs[i].Contains(a) {
			return &d.runs[i]
		}
	}
	return nil
}

// readSymbols decodes the kallsyms tables in the kernel's memory.
func (d *dump) readSymbols() error {
	img := d.img
	syms, err := findKallsyms(d.Data, d.Start, func(a x86.Addr) bool {
		r := d.run(a)
		return r != nil && r.exec
	})
	if err != nil {
		return d.bad("a Linux kernel is wanted: there are no kallsyms tables in the %d MiB that are mapped from %v on", len(d.Data)>>20, d.Start)
	}
	img.findBounds(syms)
	img.cleanNames(syms)
	img.index.setImage(syms, img.bounds.symbolEnd(syms))
	img.facts.Add(evidence.Fact{Name: "symbols", Value: fmt.Sprint(len(syms)), Evidence: "the kallsyms tables in memory"})
	return nil
}

// describe adds what the dump says of itself to the facts.
func (d *dump) describe() error {
	var have []string
	for _, r := range d.core.RAM() {
		have = append(have, r.String())
	}
	total := uint64(0)
	for _, r := range d.core.RAM() {
		total += r.Size
	}
	d.fact("dump", d.core.Format(), "the file's form")
	d.fact("memory", fmt.Sprintf("%d MiB", total>>20), strings.Join(have[:min(len(have), 4)], ", "))
	d.fact("CPUs", fmt.Sprint(len(d.core.CPUs())), "its notes")
	if d.left > 0 {
		d.fact("left out", fmt.Sprintf("%d pages of the kernel's own", d.left), "the dump is filtered; they are taken for zeros")
	}
	return nil
}

func (d *dump) fact(name, value, why string) {
	d.img.facts.Add(evidence.Fact{Name: name, Value: value, Evidence: why})
}
