package process

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/x86"
)

// Symbol is a function of a file's or, with Data, a variable.
type Symbol struct {
	Name string
	Data bool
	// Addr is the file's own address of it, Offset where it begins in the file; Loaded is false
	// for one that is not in what the file loads, and has no offset.
	Addr, Size, Offset uint64
	Loaded             bool
}

// symbols are those of the symbol table, and of the dynamic one, as far as there is one.
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
			for _, p := range h.Progs {
				if v := s.Value; p.Type == elf.PT_LOAD && p.Vaddr <= v && v-p.Vaddr < p.Filesz {
					fn.Offset, fn.Loaded = v-p.Vaddr+p.Off, true
					break
				}
			}
			table = append(table, fn)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// Symbols are those with names, each name and address once, by their addresses.
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

// Offset is where in the file a function begins, by its symbol.
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
