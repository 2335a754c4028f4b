package process

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Symbol is a function of a file or, if Data is true, a variable.
type Symbol struct {
	Name string
	Data bool
	// Addr is the address that the symbol table has, Offset the offset in the file. Loaded is false
	// if no loaded piece of the file contains it; then there is no offset.
	Addr, Size, Offset uint64
	Loaded             bool
}

// symbols returns the symbol table and the dynamic symbol table, as far as the file has them.
func (f *File) symbols() (tables [][]Symbol, err error) {
	h, err := elf.NewFile(bytes.NewReader(f.Data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w (%v)", f.Name, ErrNotELF, err)
	}
	for _, read := range []func() ([]elf.Symbol, error){h.Symbols, h.DynamicSymbols} {
		list, err := read()
		if err != nil {
			continue // there is no such table
		}
		var table []Symbol
		for _, s := range list {
			kind := elf.ST_TYPE(s.Info)
			data := kind == elf.STT_OBJECT
			if kind != elf.STT_FUNC && kind != elf.STT_NOTYPE && kind != elf.STT_GNU_IFUNC && !data || s.Section == elf.SHN_UNDEF {
				continue
			}
			fn := Symbol{Name: s.Name, Data: data, Addr: s.Value, Size: s.Size}
			fn.Offset, fn.Loaded = offsetOf(h, s.Value)
			table = append(table, fn)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// Symbols returns the symbols that have names, sorted by address, each name and address once.
func (f *File) Symbols() ([]Symbol, error) {
	tables, err := f.symbols()
	var out []Symbol
	for _, table := range tables {
		for _, fn := range table {
			if fn.Name != "" {
				out = append(out, fn)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Symbol) int { return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Name, b.Name)) })
	return slices.CompactFunc(out, func(a, b Symbol) bool { return a.Addr == b.Addr && a.Name == b.Name }), err
}

// Symbol is the address of a function or a variable of the program that New was given.
func (p *Process) Symbol(name string) (x86.Addr, error) {
	im, err := readImage(p.c.Program)
	if err != nil {
		return 0, err
	}
	list, err := p.c.Program.Symbols()
	if err != nil {
		return 0, err
	}
	list = slices.DeleteFunc(list, func(s Symbol) bool { return s.Name != name })
	switch {
	case len(list) == 0:
		return 0, fmt.Errorf("%s has no symbol %s: %w", p.c.Program.Name, name, errno.ENOENT)
	case len(list) > 1:
		return 0, fmt.Errorf("%s has %d symbols %s: give an address: %w", p.c.Program.Name, len(list), name, errno.EADDRNOTAVAIL)
	}
	return x86.Addr(list[0].Addr) + im.bias(), nil
}

// Offset returns the file offset of a function's first byte, by its symbol.
func (f *File) Offset(name string) (uint64, error) {
	tables, err := f.symbols()
	if err != nil {
		return 0, err
	}
	var found []Symbol
	all := 0
	for _, table := range tables {
		for _, fn := range table {
			if fn.Data {
				continue
			}
			all++
			if fn.Name == name && (len(found) == 0 || found[0].Addr != fn.Addr) {
				found = append(found, fn)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch {
	case all == 0:
		return 0, fmt.Errorf("%s has no symbols: give an offset in the file, %s:0xOFFSET: %w", f.Name, f.Name, errno.ENOENT)
	case len(found) == 0:
		return 0, fmt.Errorf("%s has no function %s: %w", f.Name, name, errno.ENOENT)
	case len(found) > 1:
		return 0, fmt.Errorf("%s has %d functions %s: give an offset in the file: %w", f.Name, len(found), name, errno.EADDRNOTAVAIL)
	case !found[0].Loaded:
		return 0, fmt.Errorf("%s: %s is not in what the file loads: %w", f.Name, name, errno.EINVAL)
	}
	return found[0].Offset, nil
}

// Function returns the code of the function at an offset of the file, from the function's first
// byte on, and the offset of that byte. It searches the symbols, then the table of unwinding; ok is
// false if neither has the function.
func (f *File) Function(offset uint64) (code []byte, at uint64, ok bool) {
	at, size, ok := f.functionBySymbol(offset)
	if !ok {
		if at, ok = f.functionByUnwinding(offset); !ok {
			return nil, 0, false
		}
		size = 0
	}
	end := min(at+bounded.ProgramFunction, uint64(len(f.Data)))
	if size > 0 {
		end = min(end, at+size)
	}
	if offset >= end {
		return nil, 0, false
	}
	return f.Data[at:end], at, true
}

// functionBySymbol finds the last function that begins at or before an offset. One without a size, as in
// assembly, ends at the next.
func (f *File) functionBySymbol(offset uint64) (at, size uint64, ok bool) {
	list, err := f.Symbols()
	if err != nil {
		return 0, 0, false
	}
	for _, s := range list {
		switch {
		case !s.Loaded || s.Data || s.Offset > offset || s.Size > 0 && offset-s.Offset >= s.Size:
		case !ok || s.Offset > at:
			at, size, ok = s.Offset, s.Size, true
		}
	}
	return at, size, ok && (size > 0 || f.executable(at) == f.executable(offset) && f.executable(at) >= 0)
}

// executable is the number of the executable section that has an offset of the file, -1 for none.
func (f *File) executable(offset uint64) int {
	h, err := elf.NewFile(bytes.NewReader(f.Data))
	if err != nil {
		return -1
	}
	return slices.IndexFunc(h.Sections, func(s *elf.Section) bool {
		return s.Flags&elf.SHF_EXECINSTR != 0 && s.Type == elf.SHT_PROGBITS && s.Offset <= offset && offset-s.Offset < s.Size
	})
}

// functionByUnwinding searches the sorted table of .eh_frame_hdr (Linux Standard Base, 10.6.2). The
// table begins with its version. For each function it has the address and its description's
// address, relative to the table.
func (f *File) functionByUnwinding(offset uint64) (at uint64, ok bool) {
	const head, row, version = 12, 8, "\x01\x1b\x03\x3b" // signed words of 32 bits, to themselves and to the table
	h, err := elf.NewFile(bytes.NewReader(f.Data))
	if err != nil {
		return 0, false
	}
	for _, p := range h.Progs {
		if p.Type != elf.PT_GNU_EH_FRAME || p.Filesz < head || p.Off > uint64(len(f.Data)) || p.Filesz > uint64(len(f.Data))-p.Off {
			continue
		}
		table := f.Data[p.Off : p.Off+p.Filesz]
		if string(table[:4]) != version {
			return 0, false
		}
		for table = table[head:]; len(table) >= row; table = table[row:] {
			addr := p.Vaddr + uint64(int64(int32(binary.LittleEndian.Uint32(table))))
			if o, loaded := offsetOf(h, addr); loaded && o <= offset && (!ok || o > at) {
				at, ok = o, true
			}
		}
	}
	return at, ok && f.executable(at) == f.executable(offset) && f.executable(at) >= 0
}

// OffsetOf returns the offset in the file from which one of its own addresses is loaded.
func (f *File) OffsetOf(addr uint64) (uint64, bool) {
	h, err := elf.NewFile(bytes.NewReader(f.Data))
	if err != nil {
		return 0, false
	}
	return offsetOf(h, addr)
}

// offsetOf returns the offset in the ELF file from which one of its addresses is loaded.
func offsetOf(h *elf.File, addr uint64) (uint64, bool) {
	for _, p := range h.Progs {
		if p.Type == elf.PT_LOAD && p.Vaddr <= addr && addr-p.Vaddr < p.Filesz {
			return addr - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}
