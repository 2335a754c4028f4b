package sections

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// returnZero is the body of every program: r0 = 0; exit.
var returnZero = []byte{
	0xb7, 0, 0, 0, 0, 0, 0, 0,
	0x95, 0, 0, 0, 0, 0, 0, 0,
}

// programName is the name of the program in every object.
const programName = "drawn"

// Object is an ELF file with one program, which returns 0, in a section of that name.
func Object(section string) []byte {
	names := []byte{0}
	name := func(text string) uint32 {
		at := len(names)
		names = append(append(names, text...), 0)
		return uint32(at)
	}
	symbol := elf.Sym64{
		Name: name(programName), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 3, Size: uint64(len(returnZero)),
	}
	var symbols bytes.Buffer
	write(&symbols, elf.Sym64{})
	write(&symbols, symbol)
	list := []struct {
		header elf.Section64
		data   []byte
	}{
		{},
		{header: elf.Section64{Name: name(".strtab"), Type: uint32(elf.SHT_STRTAB)}},
		{header: elf.Section64{Name: name(".symtab"), Type: uint32(elf.SHT_SYMTAB), Link: 1, Info: 1, Entsize: elf.Sym64Size}, data: symbols.Bytes()},
		{header: elf.Section64{Name: name(section), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR)}, data: returnZero},
		{header: elf.Section64{Name: name("license"), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_WRITE)}, data: []byte("GPL\x00")},
	}
	list[1].data = names
	const headerSize, align = 64, 8
	var body, headers bytes.Buffer
	for i := range list {
		s := &list[i]
		s.header.Off, s.header.Size, s.header.Addralign = uint64(headerSize+body.Len()), uint64(len(s.data)), align
		if i == 0 {
			s.header = elf.Section64{}
		}
		body.Write(s.data)
		body.Write(make([]byte, (align-body.Len()%align)%align))
		write(&headers, s.header)
	}
	head := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_BPF), Version: uint32(elf.EV_CURRENT), Shoff: uint64(headerSize + body.Len()),
		Ehsize: headerSize, Shentsize: 64, Shnum: uint16(len(list)), Shstrndx: 1,
	}
	copy(head.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)})
	var file bytes.Buffer
	write(&file, head)
	file.Write(body.Bytes())
	file.Write(headers.Bytes())
	return file.Bytes()
}

// write appends a structure in the order of the file.
func write(to *bytes.Buffer, structure any) {
	if err := binary.Write(to, binary.LittleEndian, structure); err != nil {
		panic("BUG: " + err.Error())
	}
}
