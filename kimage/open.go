package kimage

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"kprobelab/internal/container"
	"kprobelab/internal/printable"
	"kprobelab/kimage/evidence"
	"kprobelab/x86"
)

// Open reads a kernel image: an ELF (vmlinux, a relocatable object, a
// program), a bzImage, a compressed ELF, or the memory dump of a booted kernel
// (package vmcore). o may be nil. There is nothing to
// close. Errors about the file's content are a *FormatError (errors.Is
// ErrFormat); others come from the file system. All are one line.
func Open(path string, o *Options) (*Image, error) {
	if core, err := dumpAt(path); err != nil {
		return nil, err
	} else if core != nil {
		return openDump(path, core, o)
	}
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return open(path, path, b, o)
}

// OpenReader reads an image from r to its end, as Open does from a file; name
// is for messages.
func OpenReader(name string, r io.Reader, o *Options) (*Image, error) {
	b, err := container.Read(r, 0, maxImage, badFormat(name, -1, "more than 1 GiB came"))
	if errors.Is(err, ErrFormat) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return open(name, "", b, o)
}

// FromBytes makes an image of a file's content, as Open does; name is for
// messages. b is not kept and not changed.
func FromBytes(name string, b []byte, o *Options) (*Image, error) {
	return open(name, "", bytes.Clone(b), o)
}

// open makes the image of b, which it may keep and change. path is the file with the
// content b, "" if there is none.
func open(name, path string, b []byte, o *Options) (*Image, error) {
	if core, err := dumpIn(name, b); err != nil {
		return nil, err
	} else if core != nil {
		return openDump(name, core, o)
	}
	img := &Image{name: printable.Name(name), path: path}
	if o != nil {
		img.opts = *o
	}
	elf, err := unwrap(name, b, img.opts.Progress)
	if err != nil {
		return nil, err
	}
	f, err := parseELF(name, elf)
	if err != nil {
		return nil, err
	}
	if f.onlyDebug() {
		return nil, badFormat(name, -1, "this file has debugging information alone, and no code: open the file from which it was split off")
	}
	for _, step := range []func(*elfFile) error{
		img.layOut, img.readSymbols,
		func(*elfFile) error { return img.choose() },
		func(*elfFile) error { return img.loadTables() },
		func(*elfFile) error { return img.layLiveText() },
		func(*elfFile) error { return img.boot() },
		func(*elfFile) error { return img.loadModules() },
		func(*elfFile) error { return img.loadPackage() },
	} {
		if err := step(f); err != nil {
			return nil, err
		}
	}
	img.measure()
	return img, nil
}

// layOut makes sections and segments of the ELF.
func (img *Image) layOut(f *elfFile) error {
	var err error
	switch {
	case f.typ == etRel:
		img.kind = KindObject
		err = img.layObject(f)
	case f.typ == etDyn && lowest(f) < programBase>>32:
		img.kind, img.bias = KindProgram, programBase
		if err = img.layLinked(f, programBase); err == nil {
			err = img.relocateDynamic(f)
		}
	default:
		img.kind = KindProgram
		err = img.layLinked(f, 0)
	}
	if err != nil {
		return err
	}
	if len(img.sections) == 0 {
		return badFormat(f.name, -1, "the ELF has neither code nor data")
	}
	return nil
}

// lowest is the lowest address that the file wants to be loaded at.
func lowest(f *elfFile) uint64 {
	low := ^uint64(0)
	for _, l := range f.loads {
		low = min(low, l.addr)
	}
	return low
}

// boot patches the text as the kernel does when it starts.
func (img *Image) boot() error {
	if img.opts.NoBoot {
		return nil
	}
	return img.bootPatch()
}

func (img *Image) loadModules() error {
	for _, path := range img.opts.Modules {
		if err := img.loadModule(path); err != nil {
			return err
		}
	}
	return nil
}

// readSymbols fills the symbol index of a linked image, from the map that the
// options name, the kernel's own tables, or the file's symbol table.
func (img *Image) readSymbols(f *elfFile) error {
	if img.kind == KindObject {
		return nil // layObject did
	}
	syms, from, err := img.findSymbols(f)
	if err != nil {
		return err
	}
	if isKernel(img, syms) {
		img.kind = KindKernel
	}
	img.findBounds(syms)
	img.cleanNames(syms)
	img.index.setImage(syms, img.bounds.symbolEnd(syms))
	img.facts.Add(evidence.Fact{Name: "symbols", Value: fmt.Sprint(len(syms)), Evidence: from})
	return nil
}

func (img *Image) findSymbols(f *elfFile) (syms []Symbol, from string, err error) {
	if img.opts.SystemMap != "" {
		syms, err = img.readSystemMap(img.opts.SystemMap)
		return syms, img.opts.SystemMap, err
	}
	for _, s := range img.sections {
		if s.Exec || len(s.Data) == 0 {
			continue
		}
		if syms, err := findKallsyms(s.Data, s.Addr, img.executable); err == nil {
			return syms, "the image's kallsyms tables in " + s.Name, nil
		}
	}
	syms = kallsymsOf(f.symbols(), func(s *elfSymbol) (x86.Addr, *Section) {
		if s.shndx == shnAbs {
			return x86.Addr(s.value), nil
		}
		if p := img.percpu; p != nil && int(s.shndx) < len(f.shdrs) && f.shdrs[s.shndx].name == p.Name {
			return x86.Addr(s.value), p
		}
		at := x86.Addr(s.value + img.bias)
		in := img.sectionAt(at)
		if in == nil { // a symbol at the very end of a section, such as _end
			in = img.sectionAt(at - 1)
		}
		return at, in
	})
	if len(syms) == 0 {
		return nil, "none: the file is stripped; a System.map or /proc/kallsyms names them", nil
	}
	return syms, "the file's symbol table", nil
}

func (img *Image) executable(a x86.Addr) bool {
	s := img.sectionAt(a)
	return s != nil && s.Exec
}

// isKernel tells a kernel by its symbols, or without any by its text address.
func isKernel(img *Image, syms []Symbol) bool {
	at := addrsOf(syms, "_stext", "_text")
	if at["_stext"] != 0 || at["_text"] != 0 {
		return true
	}
	text := img.section(".text")
	return text != nil && text.Addr >= 0xffffffff80000000
}
