package suite

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"maps"
	"slices"
)

// Object is a relocatable ELF64 file of the decision's text and symbols, as a kernel
// module's loader takes one.
func (d *Decision) Object() []byte {
	names := []byte("\x00.text\x00.symtab\x00.strtab\x00")
	nameOf := map[string]uint32{".text": 1, ".symtab": 7, ".strtab": 15}
	symbols := slices.SortedFunc(maps.Keys(d.Symbols), func(a, b string) int { return cmp.Compare(d.Symbols[a], d.Symbols[b]) })
	table := []elf.Sym64{{}}
	for i, name := range symbols {
		end := len(d.Text)
		if i+1 < len(symbols) {
			end = d.Symbols[symbols[i+1]]
		}
		table = append(table, elf.Sym64{
			Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1,
			Value: uint64(d.Symbols[name]), Size: uint64(end - d.Symbols[name]),
		})
		names = append(append(names, name...), 0)
	}
	const header, section, symbol = 64, 64, 24
	text := uint64(header + 4*section)
	syms := text + uint64(len(d.Text)+7)&^7
	strings := syms + uint64(len(table)*symbol)
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a Buffer takes everything
	h := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Shoff: header, Ehsize: header,
		Shentsize: section, Shnum: 4, Shstrndx: 3,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	put(h)
	put([]elf.Section64{
		{},
		{Name: nameOf[".text"], Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Off: text, Size: uint64(len(d.Text)), Addralign: 16},
		{Name: nameOf[".symtab"], Type: uint32(elf.SHT_SYMTAB), Off: syms, Size: uint64(len(table) * symbol), Link: 3, Info: 1, Addralign: 8, Entsize: symbol},
		{Name: nameOf[".strtab"], Type: uint32(elf.SHT_STRTAB), Off: strings, Size: uint64(len(names)), Addralign: 1},
	})
	b.Write(d.Text)
	b.Write(make([]byte, syms-text-uint64(len(d.Text))))
	put(table)
	b.Write(names)
	return b.Bytes()
}
