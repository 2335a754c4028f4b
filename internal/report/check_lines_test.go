package report

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// section is one of an object.
type elfSection struct {
	name string
	kind elf.SectionType
	data []byte
}

// tinyObject makes an ELF file for BPF of sections; the last one has their names.
func tinyObject(sections ...elfSection) []byte {
	names := []byte{0}
	var body, headers bytes.Buffer
	const header = 64
	put := func(v any) { _ = binary.Write(&headers, binary.LittleEndian, v) }
	put(elf.Section64{})
	sections = append(sections, elfSection{".shstrtab", elf.SHT_STRTAB, nil})
	for i := range sections {
		sections[i].data = bytes.Clone(sections[i].data)
	}
	for i := range sections {
		s := &sections[i]
		at := len(names)
		names = append(append(names, s.name...), 0)
		if i == len(sections)-1 {
			s.data = names
		}
		h := elf.Section64{Name: uint32(at), Type: uint32(s.kind), Off: uint64(header + body.Len()), Size: uint64(len(s.data))}
		if s.kind == elf.SHT_PROGBITS && s.name[0] != '.' {
			h.Flags = uint64(elf.SHF_EXECINSTR)
		}
		if s.kind == elf.SHT_SYMTAB {
			h.Link, h.Entsize = uint32(len(sections)), 24
		}
		put(h)
		body.Write(s.data)
	}
	h := elf.Header64{Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_BPF), Version: 1, Shoff: uint64(header + body.Len()), Ehsize: header, Shentsize: 64, Shnum: uint16(len(sections) + 1), Shstrndx: uint16(len(sections))}
	copy(h.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1})
	var out bytes.Buffer
	_ = binary.Write(&out, binary.LittleEndian, h)
	out.Write(body.Bytes())
	out.Write(headers.Bytes())
	return out.Bytes()
}

// words are 32-bit numbers.
func numbers(list ...uint32) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// TestPlacesOfPrograms: .BTF.ext says in which line of C a program begins; what is damaged says nothing.
func TestPlacesOfPrograms(t *testing.T) {
	const strings = "\x00kprobe/vfs_read\x00/src/tool.bpf.c\x00"
	btf := append(numbers(0x01eb9f, 24, 0, 0, 0, uint32(len(strings))), strings...)
	ext := func(records ...uint32) []byte {
		info := numbers(append([]uint32{16, 1, uint32(len(records) / 4)}, records...)...)
		return append(numbers(0x01eb9f, 24, 0, 0, 0, uint32(len(info))), info...)
	}
	var symbols bytes.Buffer
	_ = binary.Write(&symbols, binary.LittleEndian, []elf.Sym64{{}, {Name: 1, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Value: 8}})
	object := func(btf, ext []byte) []byte {
		return tinyObject(elfSection{"kprobe/vfs_read", elf.SHT_PROGBITS, make([]byte, 16)}, elfSection{".BTF", elf.SHT_PROGBITS, btf},
			elfSection{".BTF.ext", elf.SHT_PROGBITS, ext}, elfSection{".symtab", elf.SHT_SYMTAB, symbols.Bytes()})
	}
	good := ext(0, 17, 0, 3<<10, 8, 17, 0, 12<<10|4, 8, 17, 0, 13<<10)
	list, err := bpfProbes(object(btf, good))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "/src/tool.bpf.c", list[0].File)
	require.Equal(t, 12, list[0].Line)
	for name, b := range map[string][2][]byte{
		"no_strings": {nil, good}, "no_lines": {btf, nil}, "cut": {btf, good[:30]}, "cut_record": {btf, good[:len(good)-20]}, "short_records": {btf, append(good[:24:24], 4, 0, 0, 0)},
		"far_lines": {btf, numbers(0, 0xffffffff, 0, 0, 0xffffffff, 0xffffffff)}, "far_strings": {numbers(0, 0xffffffff, 0, 0, 0xffffffff, 0xffffffff), good},
	} {
		list, err := bpfProbes(object(b[0], b[1]))
		require.NoError(t, err, name)
		require.Zero(t, list[0].Line, name)
		require.Empty(t, list[0].File, name)
	}
}
