package source

import (
	"debug/elf"
	"fmt"
	"path/filepath"

	"kprobelab/internal/bounded"
)

// segment is a piece of a program's file that is loaded.
type segment struct{ addr, size, offset uint64 }

// kernelHalf is the lowest address of the upper half, which kernels use.
const kernelHalf = 1 << 63

// segmentsOf returns the loaded segments of a program or a library: a linked file whose addresses
// are in the lower half. For other files it returns nil.
func segmentsOf(e *elf.File) (list []segment) {
	if e.Type != elf.ET_EXEC && e.Type != elf.ET_DYN {
		return nil
	}
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Vaddr >= kernelHalf {
			return nil
		}
		list = append(list, segment{p.Vaddr, p.Filesz, p.Off})
	}
	return list
}

// OfProgram reads a program or a library without debugging information: it has the symbols
// alone. The error is ErrNone if the file is neither.
func OfProgram(path string) (f *File, err error) {
	defer guard(&err)
	in, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	e, err := elf.NewFile(in)
	if err != nil || e.Machine != elf.EM_X86_64 || e.Class != elf.ELFCLASS64 || len(segmentsOf(e)) == 0 {
		return nil, fmt.Errorf("%s: %w: it is no program of x86-64", path, ErrNone)
	}
	return &File{path: path, fromBTF: true, symbols: readSymbols(e, place(e)), segments: segmentsOf(e), buildID: buildID(e)}, nil
}

// Program is the path, without links, of a file that is a program or a library; "" for others.
func (f *File) Program() string {
	if len(f.segments) == 0 {
		return ""
	}
	path, err := filepath.EvalSymlinks(f.path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		path = f.path
	}
	return filepath.ToSlash(path)
}

// FileOffset converts one of a program's own addresses to the offset in its file. It returns
// false if no segment has the address.
func (f *File) FileOffset(addr uint64) (uint64, bool) {
	for _, s := range f.segments {
		if s.addr <= addr && addr-s.addr < s.size {
			return addr - s.addr + s.offset, true
		}
	}
	return 0, false
}
