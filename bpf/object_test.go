package bpf_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// An object is a BPF object of clang's form, made without clang: programs, each in a section of its own, with BTF and a line of
// source for each instruction.
type object struct {
	programs []program
}

// program is a program with its instructions and their lines; relocated is the instruction whose offset is that of the member
// nosuch of task_struct, -1 for none.
type program struct {
	name, section string
	code          [][8]byte
	lines         []string
	relocated     int
	records       []record
}

// record is a CO-RE record: its instruction, type 3 (task_struct) or another, the way to a member, and the kind.
type record struct {
	instruction int
	id          uint32
	accessor    string
	kind        uint32
}

// Kinds of records (include/uapi/linux/bpf.h, enum bpf_core_relo_kind).
const (
	fieldOffset, fieldExists = 0, 2
	typeExists               = 8
)

// asking is a program with a record for each of its instructions but the last two. Each moves what the record has into r1.
func asking(name string, local []uint32, records ...record) program {
	p := program{name: name, section: "kprobe/vfs_" + name, relocated: -1, records: records}
	for n := range records {
		p.records[n].instruction = n
		move := moveField
		binary.LittleEndian.PutUint32(move[4:], local[n])
		p.code, p.lines = append(p.code, move), append(p.lines, "r1 = it;")
	}
	p.code, p.lines = append(p.code, returnZero, exit), append(p.lines, "int x = 0;", "return x;")
	return p
}

// Instructions (instruction-set.rst): opcode, registers, offset, immediate.
var (
	returnZero = [8]byte{0xb7, 0, 0, 0, 0, 0, 0, 0} // r0 = 0
	exit       = [8]byte{0x95, 0, 0, 0, 0, 0, 0, 0}
	readR2     = [8]byte{0xbf, 0x20, 0, 0, 0, 0, 0, 0} // r0 = r2, which no program has at its beginning
	moveField  = [8]byte{0xb7, 1, 0, 0, 4, 0, 0, 0}    // r1 = 4, the offset of a field
)

// endless goes round until the verifier has seen a million instructions: r6 is another number in each round.
func endless() program {
	p := fine("endless", "kprobe/vfs_fsync")
	p.code = [][8]byte{
		{0xb7, 6, 0, 0, 0, 0, 0, 0},          // r6 = 0
		{0x07, 6, 0, 0, 1, 0, 0, 0},          // r6 += 1
		{0x85, 0, 0, 0, 5, 0, 0, 0},          // call bpf_ktime_get_ns
		{0x5d, 0x60, 0xfd, 0xff, 0, 0, 0, 0}, // if r0 != r6 goto -3
		returnZero, exit,
	}
	p.lines = []string{"i = 0;", "i++;", "t = bpf_ktime_get_ns();", "if (t != i)", "x = 0;", "return x;"}
	return p
}

// fine is a program that every kernel takes.
func fine(name, section string) program {
	return program{name, section, [][8]byte{returnZero, exit}, []string{"int x = 0;", "return x;"}, -1, nil}
}

// table is a table of strings.
type table struct{ bytes.Buffer }

func (t *table) add(text string) uint32 {
	if t.Len() == 0 {
		t.WriteByte(0)
	}
	at := t.Len()
	t.WriteString(text + "\x00")
	return uint32(at)
}

func put(to *bytes.Buffer, values ...uint32) {
	for _, v := range values {
		_ = binary.Write(to, binary.LittleEndian, v)
	}
}

// types is the section .BTF: int, a function of it, task_struct with a member that no kernel has, pid, and tgid as a long, a
// structure that no kernel has, and the programs. Type n+6 is program n.
func (o object) types(text *table) []byte {
	var types bytes.Buffer
	const kindInt, kindStruct, kindFunc, kindProto = 1 << 24, 4 << 24, 12 << 24, 13 << 24
	put(&types, text.add("int"), kindInt, 4, 1<<24|32)                                           // 1
	put(&types, 0, kindProto, 1)                                                                 // 2
	put(&types, text.add("task_struct"), kindStruct|3, 24, text.add("nosuch"), 1, 32 /* bits */) // 3
	put(&types, text.add("pid"), 1, 64, text.add("tgid"), 4, 128)
	put(&types, text.add("long int"), kindInt, 8, 1<<24|64)                    // 4
	put(&types, text.add("nosuch"), kindStruct|1, 4, text.add("member"), 1, 0) // 5
	for _, p := range o.programs {
		put(&types, text.add(p.name), kindFunc|1, 2)
	}
	return types.Bytes()
}

// build returns the file.
func (o object) build() []byte {
	var text table
	types := o.types(&text)
	var functions, lines, relocations bytes.Buffer
	file := text.add("/src/tool.bpf.c")
	put(&functions, 8)
	put(&lines, 16)
	put(&relocations, 16)
	for n, p := range o.programs {
		section := text.add(p.section)
		put(&functions, section, 1, 0, uint32(n+6))
		put(&lines, section, uint32(len(p.lines)))
		for i, line := range p.lines {
			put(&lines, uint32(8*i), file, text.add(line), uint32(i+10)<<10)
		}
		records := p.records
		if p.relocated >= 0 {
			records = append(records, record{p.relocated, 3, "0:0", fieldOffset})
		}
		if len(records) > 0 {
			put(&relocations, section, uint32(len(records)))
		}
		for _, r := range records {
			put(&relocations, uint32(8*r.instruction), r.id, text.add(r.accessor), r.kind)
		}
	}
	var btf, ext bytes.Buffer
	put(&btf, 0xeb9f|1<<16, 24, 0, uint32(len(types)), uint32(len(types)), uint32(text.Len()))
	btf.Write(types)
	btf.Write(text.Bytes())
	put(&ext, 0xeb9f|1<<16, 32, 0, uint32(functions.Len()), uint32(functions.Len()), uint32(lines.Len()),
		uint32(functions.Len()+lines.Len()), uint32(relocations.Len()))
	for _, b := range []*bytes.Buffer{&functions, &lines, &relocations} {
		ext.Write(b.Bytes())
	}
	return o.file(btf.Bytes(), ext.Bytes())
}

// file is the ELF file.
func (o object) file(btf, ext []byte) []byte {
	var names table
	var symbols bytes.Buffer
	_ = binary.Write(&symbols, binary.LittleEndian, elf.Sym64{})
	type section struct {
		header elf.Section64
		data   []byte
	}
	list := []section{
		{},
		{elf.Section64{Name: names.add(".strtab"), Type: uint32(elf.SHT_STRTAB)}, nil},
		{elf.Section64{Name: names.add(".symtab"), Type: uint32(elf.SHT_SYMTAB), Link: 1, Info: 1, Entsize: elf.Sym64Size}, nil},
		{elf.Section64{Name: names.add("license"), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC)}, []byte("GPL\x00")},
		{elf.Section64{Name: names.add(".BTF"), Type: uint32(elf.SHT_PROGBITS)}, btf},
		{elf.Section64{Name: names.add(".BTF.ext"), Type: uint32(elf.SHT_PROGBITS)}, ext},
	}
	for _, p := range o.programs {
		code := bytes.Join(func() (all [][]byte) {
			for i := range p.code {
				all = append(all, p.code[i][:])
			}
			return all
		}(), nil)
		_ = binary.Write(&symbols, binary.LittleEndian, elf.Sym64{
			Name: names.add(p.name), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: uint16(len(list)), Size: uint64(len(code)),
		})
		list = append(list, section{elf.Section64{
			Name: names.add(p.section), Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR),
		}, code})
	}
	list[1].data, list[2].data = names.Bytes(), symbols.Bytes()
	const headerSize, align = 64, 8
	var body, headers bytes.Buffer
	for i := range list {
		s := &list[i]
		if i > 0 {
			s.header.Off, s.header.Size, s.header.Addralign = uint64(headerSize+body.Len()), uint64(len(s.data)), align
		}
		body.Write(s.data)
		body.Write(make([]byte, (align-body.Len()%align)%align))
		_ = binary.Write(&headers, binary.LittleEndian, s.header)
	}
	head := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_BPF), Version: uint32(elf.EV_CURRENT), Shoff: uint64(headerSize + body.Len()),
		Ehsize: headerSize, Shentsize: 64, Shnum: uint16(len(list)), Shstrndx: 1,
	}
	copy(head.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)})
	var out bytes.Buffer
	_ = binary.Write(&out, binary.LittleEndian, head)
	out.Write(body.Bytes())
	out.Write(headers.Bytes())
	return out.Bytes()
}
