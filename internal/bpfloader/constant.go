//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
)

// Offsets in the header of an ELF file of 64 bits, and in that of a section.
const (
	headSections, headCount  = 0x28, 0x3c
	sectionOffset, sectionIn = 0x18, 0x20
)

// withConstants defines external variables of an object: a section of constants has their values, each of up to 8 bytes. An object in which that
// cannot be done stays as it is.
func withConstants(object []byte, values map[string]uint64) []byte {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil || f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || len(values) == 0 {
		return object
	}
	defer f.Close()
	order := binary.LittleEndian
	count := uint64(order.Uint16(object[headCount:]))
	at, table := order.Uint64(object[headSections:]), f.SectionByType(elf.SHT_SYMTAB)
	symbols, err := f.Symbols()
	if err != nil || order.Uint16(object[headCount-2:]) != elfSection64 || count != uint64(len(f.Sections)) || count+1 >= uint64(elf.SHN_LORESERVE) || at+count*elfSection64 > uint64(len(object)) {
		return object
	}
	names := f.Sections[order.Uint16(object[headCount+2:])]
	strings, err := names.Data()
	if err != nil {
		return object
	}
	out := slices.Clone(object)
	var data []byte
	for i, s := range symbols {
		value, ok := values[s.Name]
		if where := table.Offset + uint64(i+1)*elf.Sym64Size; ok && s.Section == elf.SHN_UNDEF && where+elf.Sym64Size <= uint64(len(object)) {
			symbol := out[where:]
			symbol[4] = elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT)
			order.PutUint16(symbol[6:], uint16(count))
			order.PutUint64(symbol[8:], uint64(len(data)))
			order.PutUint64(symbol[16:], 8)
			data = order.AppendUint64(data, value)
		}
	}
	if data == nil {
		return object
	}
	headers := slices.Clone(object[at : at+count*elfSection64])
	name := headers[uint64(order.Uint16(object[headCount+2:]))*elfSection64:]
	order.PutUint64(name[sectionOffset:], uint64(len(out)))
	order.PutUint64(name[sectionIn:], uint64(len(strings)+len(constants)))
	out = append(append(out, strings...), constants...)
	var added bytes.Buffer
	_ = binary.Write(&added, order, elf.Section64{
		Name: uint32(len(strings)), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Off: uint64(len(out)), Size: uint64(len(data)), Addralign: 1,
	})
	out = append(out, data...)
	order.PutUint64(out[headSections:], uint64(len(out)))
	order.PutUint16(out[headCount:], uint16(count+1))
	return append(append(out, headers...), added.Bytes()...)
}

const (
	elfSection64 = 64
	// constants is the name of the new section. cilium/ebpf makes a map of constants of it.
	constants = ".rodata.kprobelab\x00"
)
