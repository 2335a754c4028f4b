package bench

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"kprobelab/x86"
)

// The other probes are in a module of functions that nothing calls, each a mov and a ret, which are
// too short to be optimized.
const (
	fillerStride = 16
	fillerProbes = 2 // one on each instruction
)

var (
	fillerCode    = []byte{0x89, 0xf8, opRet} // mov %edi,%eax; ret
	fillerOffsets = [fillerProbes]uint32{0, 2}
)

func fillerName(i int) string { return fmt.Sprintf("bench_filler_%d", i) }

// fillerObject is a relocatable object with n such functions.
func fillerObject(n int) []byte {
	text := bytes.Repeat([]byte{x86.Int3}, n*fillerStride)
	symbols := []elf.Sym64{{}}
	names := []byte{0}
	for i := range n {
		copy(text[i*fillerStride:], fillerCode)
		symbols = append(symbols, elf.Sym64{
			Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1,
			Value: uint64(i * fillerStride), Size: uint64(len(fillerCode)),
		})
		names = append(append(names, fillerName(i)...), 0)
	}
	var table bytes.Buffer
	_ = binary.Write(&table, binary.LittleEndian, symbols) // a Buffer takes all
	const sections = "\x00.text\x00.symtab\x00.strtab\x00.shstrtab\x00"
	o := object{body: make([]byte, binary.Size(elf.Header64{})), headers: []elf.Section64{{}}}
	o.add(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Addralign: 16}, text)
	o.add(elf.Section64{Name: 7, Type: uint32(elf.SHT_SYMTAB), Link: 3, Info: 1, Entsize: 24, Addralign: 8}, table.Bytes())
	o.add(elf.Section64{Name: 15, Type: uint32(elf.SHT_STRTAB), Addralign: 1}, names)
	o.add(elf.Section64{Name: 23, Type: uint32(elf.SHT_STRTAB), Addralign: 1}, []byte(sections))
	return o.bytes()
}

// object is an ELF file that is being put together.
type object struct {
	body    []byte
	headers []elf.Section64
}

func (o *object) align() {
	for len(o.body)%16 != 0 {
		o.body = append(o.body, 0)
	}
}

func (o *object) add(h elf.Section64, content []byte) {
	o.align()
	h.Off, h.Size = uint64(len(o.body)), uint64(len(content))
	o.headers = append(o.headers, h)
	o.body = append(o.body, content...)
}

func (o *object) bytes() []byte {
	o.align()
	head := elf.Header64{
		Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Shoff: uint64(len(o.body)), Ehsize: uint16(binary.Size(elf.Header64{})),
		Shentsize: uint16(binary.Size(elf.Section64{})), Shnum: uint16(len(o.headers)), Shstrndx: uint16(len(o.headers) - 1),
	}
	copy(head.Ident[:], elf.ELFMAG)
	head.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	head.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	head.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	var first, last bytes.Buffer
	_ = binary.Write(&first, binary.LittleEndian, &head) // a Buffer takes all
	_ = binary.Write(&last, binary.LittleEndian, o.headers)
	copy(o.body, first.Bytes())
	return append(o.body, last.Bytes()...)
}

// fillers returns the number of functions on which so many probes are planted.
func fillers(probes int) int { return (probes + fillerProbes - 1) / fillerProbes }

// writeFiller puts the module into a directory, with so many functions.
func writeFiller(dir string, functions int) (string, error) {
	path := filepath.Join(dir, fmt.Sprintf("bench_filler_%d.o", functions))
	return path, os.WriteFile(path, fillerObject(functions), 0o600)
}
