package kimage

import (
	"cmp"
	"slices"
	"sync"

	"kprobelab/decoder"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/processor"
	"kprobelab/kimage/vmcore"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Image is a kernel (or any x86-64 object) taken apart: its memory as boot
// leaves it, its symbols, and the tables that the kernel's checks consult. It
// is a View of its own text.
//
// An Image is safe for concurrent reading. Its memory belongs to it: Open
// copies what it reads, and boot-time patches are made in that copy.
type Image struct {
	name string
	// path is the file from which the image was read, "" if there was none.
	path string
	kind Kind
	// bias was added to the addresses of a file that can be anywhere.
	bias uint64
	opts Options

	// sections are the allocated sections by ascending address, without the per-CPU
	// template; other holds the template and the sections that are not allocated.
	sections []*Section
	other    []*Section
	segments []Segment
	// percpu is the section .data..percpu, nil if there is none.
	percpu *Section
	// live is the text that Options.LiveText replaced; empty without it.
	live x86.Range

	// owned are the sections of each loaded module by ascending address.
	owned map[string][]*Section
	// core is the memory dump that it was made of, nil without one.
	core *vmcore.Core
	// space are the page tables of the dump's kernel.
	space *vmcore.Space
	// beside are the segments of modules that the dump's kernel has not loaded.
	beside []Segment
	// processors are a running kernel's processors; unknown says why their registers are not known.
	processors []vmcore.CPU
	unknown    error
	// tasks are a running kernel's tasks.
	tasks []Task
	// taskLayout has the offsets of a task's numbers and name.
	taskLayout TaskLayout
	// taskPlaces has the offsets of the members that Tasks reads; taskUnknown says why they are not
	// known.
	taskPlaces  map[string]int
	taskUnknown error
	// freed are the ranges of a running kernel that boot freed, by ascending address;
	// empty for other images.
	freed []x86.Range
	// packaged records which modules of Options.Package were loaded.
	packaged packaged

	// Names are its symbols, and where its text lies.
	Names

	profile *profile.Config
	facts   evidence.Facts
	// cpu is the processor for which boot patches the text; processor describes the
	// instructions that it executes, and is computed once.
	cpu       *processor.Model
	processor struct {
		once sync.Once
		p    Processor
	}
	// events are read from a dump once.
	events struct {
		once sync.Once
		list []Event
	}
	syscallEvents struct {
		once sync.Once
		list []SyscallEvent
	}

	// tables holds the entries that loadTables read and bootPatch used; unnamed has
	// the tables that no symbol and no section names.
	tables  kernelTables
	unnamed map[*tableName]x86.Range
	// cfiHashes are the hashes that bootPatch met.
	cfiHashes []CFIHash
}

var _ View = (*Image)(nil)

// Kind is the kind of object from which an image was made.
type Kind int

// The kinds of image.
const (
	// KindKernel is a linked kernel: it has _stext or a Linux banner.
	KindKernel Kind = iota
	// KindObject is a relocatable file that was laid out and relocated.
	KindObject
	// KindProgram is any other executable or shared object.
	KindProgram
)

// Section is one section of the image.
type Section struct {
	Name string
	Addr x86.Addr
	// Data is the section's content, private to the image and writable;
	// the rest, up to Size, is zero. It is part of its Segment's Data.
	Data []byte
	// Size in bytes, at least len(Data).
	Size uint64
	// Align is the section's alignment in bytes, at least 1.
	Align uint64
	// Alloc, Write and Exec are the section's flags.
	Alloc, Write, Exec bool
	// Module is the owning module's name, "" for the image itself.
	Module string
	// zero marks NOBITS: the file has no bytes of it.
	zero bool
}

// Range is the section's place in memory.
func (s *Section) Range() x86.Range {
	return x86.Range{Start: s.Addr, End: s.Addr + x86.Addr(s.Size)}
}

// Options says how to open an image. The zero value reads all from the file itself.
type Options struct {
	// LiveText names a file whose text is laid over the image's: an ELF, or
	// raw bytes from _stext on ("FILE@ADDR" for another start); plain, zstd
	// or gzip. Empty: none.
	LiveText string
	// Config names a kernel .config, plain or gzip, that decides what would
	// otherwise be inferred. Empty: the image's own, if it is embedded, or the
	// one beside the image's file: config-RELEASE beside vmlinuz-RELEASE.
	Config string
	// SystemMap names a System.map or a copy of /proc/kallsyms (plain, gzip
	// or zstd) that replaces the symbols of a linked image. Empty: the
	// image's own.
	SystemMap string
	// Modules names the module files to load, in order. Beside a booted kernel's dump
	// they can be plain code and data: its own loader does not see them.
	Modules []string
	// Package names a folder with the modules of the kernel's package, in it and
	// in the folders below. Those that were made for the kernel are loaded after
	// Modules, each after the ones that it depends on. Empty: none.
	Package string
	// CPU is the processor the boot-time text is made for,
	// "MODEL[,+feature][,-feature]" as QEMU writes it: one of CPUModels,
	// HostCPU, or a file in the form of /proc/cpuinfo. Empty: DefaultCPU. What
	// is not known is an ErrCPU.
	CPU string
	// Progress, when not nil, is called now and then with a stage
	// ("decompress") and how far it is, in bytes; total is 0 where unknown.
	Progress func(stage string, done, total int64)
	// Profile replaces the profile that would be chosen from the evidence.
	Profile *profile.Config
	// Measure, when not nil, asks the image's own functions about fields of its profile;
	// it is called once, at the end. Its answers win over all other evidence, but not
	// over Profile. An error besides answers names the fields without an answer.
	Measure func(*Image) ([]Answer, error)
	// NoBoot leaves the text as the file has it, without boot-time patches.
	NoBoot bool
	// Reader reads the instructions of the code; nil is decoder.X86asm.
	Reader decoder.Reader
}

// Reader is the Reader of the Options.
func (img *Image) Reader() decoder.Reader {
	if img.opts.Reader == nil {
		return decoder.X86asm{}
	}
	return img.opts.Reader
}

// addSections adds sections to the image, allocated ones by address.
func (img *Image) addSections(list []*Section) {
	for _, s := range list {
		if s.Alloc {
			img.sections = append(img.sections, s)
		} else {
			img.other = append(img.other, s)
		}
	}
	slices.SortStableFunc(img.sections, func(a, b *Section) int {
		return cmp.Compare(a.Addr, b.Addr)
	})
}

// section returns the image's first section of that name, or nil.
func (img *Image) section(name string) *Section {
	for _, list := range [][]*Section{img.sections, img.other} {
		for _, s := range list {
			if s.Name == name && s.Module == "" {
				return s
			}
		}
	}
	return nil
}

// sectionAt returns the allocated section that holds addr, or nil.
func (img *Image) sectionAt(addr x86.Addr) *Section {
	// The last section that starts at or before addr, by bisection.
	lo, hi := 0, len(img.sections)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if img.sections[mid].Addr <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return nil
	}
	s := img.sections[lo-1]
	if uint64(addr-s.Addr) >= s.Size {
		return nil
	}
	return s
}

// bytes returns the n bytes at addr as a slice into the image's own memory,
// so writing to it patches the image. It returns nil unless all of them lie
// in the content of one section (not in its zero-filled rest).
func (img *Image) bytes(addr x86.Addr, n int) []byte {
	s := img.sectionAt(addr)
	if s == nil || n < 0 {
		return nil
	}
	off := uint64(addr - s.Addr)
	if off > uint64(len(s.Data)) || uint64(n) > uint64(len(s.Data))-off {
		return nil
	}
	return s.Data[off : off+uint64(n) : off+uint64(n)]
}

// symbolAddr returns the address of the first symbol of the image (not of a
// module) with that name.
func (img *Image) symbolAddr(name string) (x86.Addr, bool) {
	return img.index.imageAddr(name)
}

// Profile is the kernel behaviour that the evidence, or Options.Profile,
// chose. The caller must not modify it.
func (img *Image) Profile() *profile.Config { return img.profile }

// Facts lists what was inferred about the kernel, each with its evidence.
func (img *Image) Facts() []evidence.Fact { return img.facts }

// Fact returns the fact of that name, the zero Fact if it is unknown.
func (img *Image) Fact(name string) evidence.Fact { return img.facts.Find(name) }

// Name is the name the image was opened by.
func (img *Image) Name() string { return img.name }

// Kind returns the kind of object that the image is.
func (img *Image) Kind() Kind { return img.kind }

// OfProgram reports whether it is a program's or a library's: all its code has addresses of the
// lower half.
func (img *Image) OfProgram() bool {
	code := false
	for _, s := range img.sections {
		if s.Exec {
			code = true
			if s.Addr >= opened.KernelHalf {
				return false
			}
		}
	}
	return code && img.Core() == nil
}

// Bias returns the number that was added to the addresses of a position-independent program's file.
func (img *Image) Bias() uint64 { return img.bias }

// Sections lists all sections, allocated ones by ascending address first.
// The caller must not modify them.
func (img *Image) Sections() []*Section {
	return append(append([]*Section(nil), img.sections...), img.other...)
}
