//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
)

// withoutWeak makes weak external variables of the kernel's configuration (extern int CONFIG_X __kconfig __weak) global ones.
// cilium/ebpf 0.22 refuses a whole object for a weak one, and gives a variable that the configuration does not have 0, as libbpf gives a
// weak one. A damaged object stays as it is: the reader says what is wrong with it.
func withoutWeak(object []byte) []byte {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil || f.Class != elf.ELFCLASS64 {
		return object
	}
	defer f.Close()
	table := f.SectionByType(elf.SHT_SYMTAB)
	symbols, err := f.Symbols()
	if err != nil || table == nil || table.Offset > uint64(len(object)) {
		return object
	}
	object = slices.Clone(object)
	for i, s := range symbols {
		if elf.ST_BIND(s.Info) != elf.STB_WEAK || s.Section != elf.SHN_UNDEF || !strings.HasPrefix(s.Name, "CONFIG_") && !strings.HasPrefix(s.Name, "LINUX_") {
			continue
		}
		// Symbols leaves out the first, which is empty. st_info is the fifth byte of a symbol.
		if at := table.Offset + uint64(i+1)*elf.Sym64Size + 4; at < uint64(len(object)) {
			object[at] = elf.ST_INFO(elf.STB_GLOBAL, elf.ST_TYPE(s.Info))
		}
	}
	return object
}
