package kimage

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/container"
	"kprobelab/internal/printable"
	"kprobelab/x86"
)

// maxImage is the most that is read of a file, or unpacked, or occupied in memory.
const maxImage = bounded.Image

// ELF numbers (System V ABI, "Object Files"; x86-64 supplement).
const (
	etRel  = 1
	etExec = 2
	etDyn  = 3

	emX8664 = 62

	shtSymtab = 2
	shtRela   = 4
	shtNobits = 8
	shtDynsym = 11

	shfWrite = 1
	shfAlloc = 2
	shfExec  = 4
	shfTLS   = 0x400

	ptLoad = 1

	ehdrSize = container.ELFHeader
	phdrSize = container.ELFProgram
	shdrSize = container.ELFSection
	symSize  = 24
	relaSize = 24
)

var le = binary.LittleEndian

// elfFile is a parsed ELF header with its tables; all offsets in it have been
// checked against the file's length.
type elfFile struct {
	name string
	data []byte
	typ  uint16
	// loads are by address, and none is empty.
	loads []elfLoad
	shdrs []elfSection
}

// elfLoad is a PT_LOAD program header.
type elfLoad struct {
	off, addr, filesz, memsz uint64
	write, exec              bool
}

// elfSection is a section header with its name.
type elfSection struct {
	name       string
	typ        uint32
	flags      uint64
	addr       uint64
	off, size  uint64
	link, info uint32
	align      uint64
	entsize    uint64
}

// content returns the section's bytes in the file; nil for NOBITS, and for
// debugging information, which nothing here reads.
func (f *elfFile) content(s *elfSection) []byte {
	if s.typ == shtNobits || isDebug(s.name, s.flags) {
		return nil // readSparse may have left it out
	}
	return f.data[s.off : s.off+s.size : s.off+s.size]
}

// parseELF reads the header, the program headers and the section headers.
func parseELF(name string, data []byte) (*elfFile, error) {
	f := &elfFile{name: name, data: data}
	if err := f.header(); err != nil {
		return nil, err
	}
	if err := f.programHeaders(); err != nil {
		return nil, err
	}
	if err := f.sectionHeaders(); err != nil {
		return nil, err
	}
	if len(f.shdrs) == 0 && len(f.loads) == 0 {
		return nil, badFormat(name, 0x20, "the ELF has neither sections nor segments")
	}
	return f, nil
}

func (f *elfFile) header() error {
	b := f.data
	switch {
	case !container.IsELF(b):
		return badFormat(f.name, 0, "it is no ELF file")
	case len(b) < ehdrSize:
		return badFormat(f.name, int64(len(b)), "the ELF header is cut off: it has 64 bytes")
	case b[4] != 2:
		return badFormat(f.name, 4, "a 64-bit ELF is wanted, this one is 32-bit (%s)", machineName(le.Uint16(b[18:])))
	case b[5] != 1:
		return badFormat(f.name, 5, "a little-endian ELF is wanted")
	case le.Uint16(b[18:]) != emX8664:
		return badFormat(f.name, 18, "an x86-64 ELF is wanted, this one is for %s", machineName(le.Uint16(b[18:])))
	}
	f.typ = le.Uint16(b[16:])
	if f.typ != etRel && f.typ != etExec && f.typ != etDyn {
		return badFormat(f.name, 16, "a relocatable, executable or shared ELF is wanted, the type is %d", f.typ)
	}
	return nil
}

func machineName(m uint16) string {
	names := map[uint16]string{2: "SPARC", 3: "i386", 8: "MIPS", 20: "PowerPC", 21: "PowerPC64", 22: "S390",
		40: "ARM", 43: "SPARC64", 62: "x86-64", 183: "AArch64", 243: "RISC-V", 258: "LoongArch"}
	if n, ok := names[m]; ok {
		return n
	}
	return fmt.Sprintf("machine %d", m)
}

// table checks that n entries of size bytes lie at off in the file.
func (f *elfFile) table(what string, off, n, size uint64) ([]byte, error) {
	length := uint64(len(f.data))
	if off > length || n > (length-off)/size {
		return nil, badFormat(f.name, int64(min(off, length)), "%s is cut off: %d entries of %d bytes at %#x in a file of %d bytes",
			what, n, size, off, length)
	}
	return f.data[off : off+n*size], nil
}

func (f *elfFile) programHeaders() error {
	b := f.data
	off, n := le.Uint64(b[32:]), uint64(le.Uint16(b[56:]))
	if n == 0 {
		return nil
	}
	if s := le.Uint16(b[54:]); s != phdrSize {
		return badFormat(f.name, 54, "program headers of 56 bytes are wanted, not %d", s)
	}
	t, err := f.table("the program header table", off, n, phdrSize)
	if err != nil {
		return err
	}
	for ; len(t) > 0; t = t[phdrSize:] {
		if le.Uint32(t) != ptLoad {
			continue
		}
		l := elfLoad{off: le.Uint64(t[8:]), addr: le.Uint64(t[16:]), filesz: le.Uint64(t[32:]), memsz: le.Uint64(t[40:])}
		l.write, l.exec = le.Uint32(t[4:])&2 != 0, le.Uint32(t[4:])&1 != 0
		if _, err := f.table("a loaded segment", l.off, l.filesz, 1); err != nil {
			return err
		}
		if l.memsz < l.filesz || l.memsz > maxImage || l.addr+l.memsz < l.addr {
			return badFormat(f.name, int64(off), "a segment at %#x of %#x bytes cannot be", l.addr, l.memsz)
		}
		if l.memsz > 0 {
			f.loads = append(f.loads, l)
		}
	}
	slices.SortStableFunc(f.loads, func(a, b elfLoad) int { return cmp.Compare(a.addr, b.addr) })
	return nil
}

func (f *elfFile) sectionHeaders() error {
	b := f.data
	off, n, strndx := le.Uint64(b[40:]), uint64(le.Uint16(b[60:])), uint32(le.Uint16(b[62:]))
	if off == 0 {
		return nil
	}
	if s := le.Uint16(b[58:]); s != shdrSize {
		return badFormat(f.name, 58, "section headers of 64 bytes are wanted, not %d", s)
	}
	// More than 0xff00 sections: the numbers are in section 0.
	if first, err := f.table("the section header table", off, 1, shdrSize); err != nil {
		return err
	} else if n == 0 {
		n = le.Uint64(first[32:])
		if strndx == 0xffff {
			strndx = le.Uint32(first[40:])
		}
	}
	if n > bounded.Sections {
		return badFormat(f.name, 60, "%d sections are too many", n)
	}
	t, err := f.table("the section header table", off, n, shdrSize)
	if err != nil {
		return err
	}
	f.shdrs = make([]elfSection, 0, n)
	names := make([]uint32, 0, n)
	for at := off; len(t) > 0; t, at = t[shdrSize:], at+shdrSize {
		s := elfSection{typ: le.Uint32(t[4:]), flags: le.Uint64(t[8:]), addr: le.Uint64(t[16:]), off: le.Uint64(t[24:]),
			size: le.Uint64(t[32:]), link: le.Uint32(t[40:]), info: le.Uint32(t[44:]), align: le.Uint64(t[48:]), entsize: le.Uint64(t[56:])}
		if err := f.checkSection(&s, at); err != nil {
			return err
		}
		f.shdrs, names = append(f.shdrs, s), append(names, le.Uint32(t))
	}
	return f.nameSections(strndx, names)
}

func (f *elfFile) checkSection(s *elfSection, at uint64) error {
	if s.typ == 0 {
		*s = elfSection{}
		return nil
	}
	if s.align == 0 {
		s.align = 1
	}
	switch {
	case s.typ != shtNobits && (s.off > uint64(len(f.data)) || s.size > uint64(len(f.data))-s.off):
		return badFormat(f.name, int64(at), "a section of %#x bytes at %#x ends past the file's %d bytes", s.size, s.off, len(f.data))
	case s.size > maxImage, s.addr+s.size < s.addr:
		return badFormat(f.name, int64(at), "a section at %#x of %#x bytes cannot be", s.addr, s.size)
	case s.align&(s.align-1) != 0 || s.align > 1<<30:
		return badFormat(f.name, int64(at), "a section's alignment is a power of two, not %#x", s.align)
	}
	return nil
}

func (f *elfFile) nameSections(strndx uint32, names []uint32) error {
	if int(strndx) >= len(f.shdrs) {
		return badFormat(f.name, 62, "section names are in section %d, there are %d", strndx, len(f.shdrs))
	}
	strs := string(f.content(&f.shdrs[strndx]))
	for i := range f.shdrs {
		f.shdrs[i].name = cstring(strs, names[i])
	}
	return nil
}

// cstring returns the NUL-terminated name at off, "" if there is none. It is made
// printable: a name with a tab would forge the columns of a table.
func cstring(s string, off uint32) string {
	if uint64(off) >= uint64(len(s)) {
		return ""
	}
	s = s[off:min(uint64(len(s)), uint64(off)+bounded.SymbolName)]
	if i := strings.IndexByte(s, 0); i >= 0 {
		return printable.Name(s[:i])
	}
	return ""
}

// section returns the first section of that name, or nil.
func (f *elfFile) section(name string) *elfSection {
	for i := range f.shdrs {
		if f.shdrs[i].name == name {
			return &f.shdrs[i]
		}
	}
	return nil
}

// onlyDebug tells a file that keeps the debugging information of another: all its
// code is NOBITS.
func (f *elfFile) onlyDebug() bool {
	none := false
	for i := range f.shdrs {
		if s := &f.shdrs[i]; s.flags&shfAlloc != 0 && s.flags&shfExec != 0 && s.size > 0 {
			if s.typ != shtNobits {
				return false
			}
			none = true
		}
	}
	return none
}

// newSection makes a Section of a header, at addr and with that content.
func newSection(s *elfSection, addr x86.Addr, data []byte) *Section {
	return &Section{
		Name: s.name, Addr: addr, Data: data, Size: s.size, Align: s.align,
		Alloc: s.flags&shfAlloc != 0, Write: s.flags&shfWrite != 0, Exec: s.flags&shfExec != 0,
		zero: s.typ == shtNobits,
	}
}
