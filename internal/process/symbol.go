package process

import (
	"bytes"
	"debug/elf"
	"fmt"

	"kprobelab/errno"
)

// Offset is where in the file a function begins, by its symbol.
func (f *File) Offset(name string) (uint64, error) {
	h, err := elf.NewFile(bytes.NewReader(f.Data))
	if err != nil {
		return 0, fmt.Errorf("%s: %w (%v)", f.Name, ErrNotELF, err)
	}
	var found []elf.Symbol
	all := 0
	for _, read := range []func() ([]elf.Symbol, error){h.Symbols, h.DynamicSymbols} {
		list, err := read()
		if err != nil {
			continue // there is no such table
		}
		for _, s := range list {
			kind := elf.ST_TYPE(s.Info)
			if kind != elf.STT_FUNC && kind != elf.STT_NOTYPE && kind != elf.STT_GNU_IFUNC || s.Section == elf.SHN_UNDEF {
				continue
			}
			all++
			if s.Name == name && (len(found) == 0 || found[0].Value != s.Value) {
				found = append(found, s)
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
	}
	for _, p := range h.Progs {
		if v := found[0].Value; p.Type == elf.PT_LOAD && p.Vaddr <= v && v-p.Vaddr < p.Filesz {
			return v - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("%s: %s is not in what the file loads: %w", f.Name, name, errno.EINVAL)
}
