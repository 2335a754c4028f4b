package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// File is a file that the program can open, by one name.
type File struct {
	// Name is the absolute path that the program knows it by.
	Name string
	Data []byte
}

// ErrNotELF is a file that execve would refuse with ENOEXEC.
var ErrNotELF = fmt.Errorf("not an ELF program of x86-64: %w", errno.ENOEXEC)

// Clean returns the absolute path of a name that the program uses; the working directory is /.
func Clean(name string) string { return path.Clean("/" + name) }

// PageSize is the size of a page of a program's memory, in bytes.
const PageSize = 4096

// image holds the program headers of an ELF file.
type image struct {
	file   *File
	pieces []elf.ProgHeader // PT_LOAD
	// phdr is the address of the headers in memory, before the load bias is added.
	phdr     x86.Addr
	phnum    int
	entry    x86.Addr
	interp   string
	position bool // ET_DYN: it can be anywhere
	// span is the address range of the pieces, in whole pages.
	span x86.Range
}

// withoutSections reads a file as if it had no sections: execve does not look at them.
type withoutSections []byte

// ReadAt implements io.ReaderAt.
func (f withoutSections) ReadAt(b []byte, off int64) (int, error) {
	n, err := bytes.NewReader(f).ReadAt(b, off)
	for _, r := range [][2]int64{{40, 48}, {60, 64}} { // e_shoff, e_shnum and e_shstrndx
		for i := max(r[0], off); i < min(r[1], off+int64(n)); i++ {
			b[i-off] = 0
		}
	}
	return n, err
}

func readImage(f *File) (*image, error) {
	h, err := elf.NewFile(withoutSections(f.Data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w (%v)", f.Name, ErrNotELF, err)
	}
	if h.Class != elf.ELFCLASS64 || h.Data != elf.ELFDATA2LSB || h.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("%s: %w: it is for %s, %s", f.Name, ErrNotELF, h.Machine, h.Class)
	}
	if h.Type != elf.ET_EXEC && h.Type != elf.ET_DYN {
		return nil, fmt.Errorf("%s: %w: its type is %s", f.Name, ErrNotELF, h.Type)
	}
	im := &image{file: f, phnum: len(h.Progs), entry: x86.Addr(h.Entry), position: h.Type == elf.ET_DYN}
	if im.phnum == 0 || im.phnum > bounded.ProgramHeaders {
		return nil, fmt.Errorf("%s: %w: %d program headers", f.Name, ErrNotELF, im.phnum)
	}
	for _, p := range h.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			if err := im.piece(&p.ProgHeader); err != nil {
				return nil, fmt.Errorf("%s: %w: %w", f.Name, ErrNotELF, err)
			}
		case elf.PT_INTERP:
			if p.Off > uint64(len(f.Data)) || p.Filesz < 2 || p.Filesz > PageSize || p.Filesz > uint64(len(f.Data))-p.Off {
				return nil, fmt.Errorf("%s: %w: the name of its interpreter is outside the file", f.Name, ErrNotELF)
			}
			name, _, _ := bytes.Cut(f.Data[p.Off:p.Off+p.Filesz], []byte{0})
			im.interp = Clean(string(name))
		}
	}
	if len(im.pieces) == 0 {
		return nil, fmt.Errorf("%s: %w: nothing of it is loaded", f.Name, ErrNotELF)
	}
	const phoff = 64 // of the ELF header; the headers follow it in what is executed
	for _, p := range im.pieces {
		if p.Off <= phoff && phoff < p.Off+p.Filesz {
			im.phdr = x86.Addr(p.Vaddr + phoff - p.Off)
		}
	}
	return im, nil
}

func (im *image) piece(p *elf.ProgHeader) error {
	switch {
	case p.Filesz > p.Memsz || p.Memsz > bounded.ProgramImage || p.Vaddr >= uint64(userTop) || p.Vaddr%PageSize != p.Off%PageSize:
		return errors.New("a segment's sizes or addresses do not fit")
	case p.Off > uint64(len(im.file.Data)) || p.Filesz > uint64(len(im.file.Data))-p.Off:
		return errors.New("a segment is outside the file")
	}
	at := x86.Range{Start: pageDown(x86.Addr(p.Vaddr)), End: pageUp(x86.Addr(p.Vaddr + p.Memsz))}
	if len(im.pieces) == 0 {
		im.span = at
	}
	if at.Start < im.span.Start || at.End < im.span.End {
		return errors.New("its segments are not in order")
	}
	im.span.End = at.End
	if im.span.Len() > bounded.ProgramImage {
		return fmt.Errorf("its segments span more than %d MB", bounded.ProgramImage>>20)
	}
	im.pieces = append(im.pieces, *p)
	return nil
}

func pageDown(a x86.Addr) x86.Addr { return a &^ (PageSize - 1) }
func pageUp(a x86.Addr) x86.Addr   { return (a + PageSize - 1) &^ (PageSize - 1) }
