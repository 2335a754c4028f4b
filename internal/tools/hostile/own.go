//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// asked are functions that the program calls when it opens an image or checks itself.
var asked = []string{
	"can_probe", "can_boost", "can_optimize", "insn_decode", "insn_init", "insn_get_length", "arch_adjust_kprobe_addr",
	"is_cfi_preamble_symbol", "kprobe_int3_handler", "kprobe_emulate_jcc", "kprobe_emulate_call", "register_kprobe",
	"register_kretprobe", "find_bug", "kernel_text_address", "jump_label_text_reserved", "static_call_text_reserved",
	"alternatives_text_reserved", "arch_prepare_kprobe", "arch_prepare_optimized_kprobe", "init_kprobes",
	"within_kprobe_blacklist", "copy_from_kernel_nofault", "kallsyms_lookup_size_offset", "module_alloc", "execmem_alloc",
}

// answers are functions that do not answer as an honest one would.
var answers = [][]byte{
	{0xeb, 0xfe},                         // loops
	{0x48, 0x89, 0x04, 0x24, 0xeb, 0xfa}, // loops over a store
	{0xe8, 0xfb, 0xff, 0xff, 0xff},       // overflows the stack
	{0x50, 0xeb, 0xfd},
	{0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3}, // faults
	{0x31, 0xc0, 0xff, 0xe0},
	{0x0f, 0x0b}, {0xcc}, {0xf4},
	{0xb8, 2, 0, 0, 0, 0xc3}, // nonsense
	{0x48, 0x89, 0xe0, 0xc3},
	{0x48, 0x83, 0xc8, 0xff, 0xc3},
	{0x31, 0xc0, 0xc3}, {0xb8, 1, 0, 0, 0, 0xc3},
	{0x0f, 0x31, 0x83, 0xe0, 1, 0xc3},                // now so, now so
	{0xb9, 0xff, 0xff, 0xff, 0x7f, 0xf3, 0xaa, 0xc3}, // writes over all that is there
	{0x48, 0x8d, 0x3d, 0xf0, 0xff, 0xff, 0xff, 0xb9, 0, 1, 0, 0, 0xf3, 0xaa, 0xc3},
	{0xe6, 0xe2, 0xc3}, {0xe6, 0xe3, 0xc3}, {0xe6, 0xe0, 0xc3}, {0xe6, 0xe1, 0xeb, 0xfc},
}

// ownSize is the room of a function.
const ownSize = 128

// badFunctions are most of what is asked, and none of it as it should be.
func badFunctions(rng *rand.Rand) map[string][]byte {
	functions := map[string][]byte{}
	for _, name := range asked {
		switch rng.IntN(8) {
		case 0:
		case 1, 2:
			functions[name] = snippet(rng, ownSize)
		default:
			functions[name] = answers[rng.IntN(len(answers))]
		}
	}
	return functions
}

// someFunctions answer, so that the answers are kept.
func someFunctions(rng *rand.Rand) map[string][]byte {
	no := []byte{0x31, 0xc0, 0xc3}
	even := []byte{0x89, 0xf8, 0xf7, 0xd0, 0x83, 0xe0, 0x01, 0xc3} // mov %edi,%eax; not %eax; and $1,%eax; ret
	begins := []byte("__cf")
	if rng.IntN(2) == 0 {
		begins = []byte("__cg")
	}
	// It looks at the name that the function after it gives: sub $0x18,%rsp; mov %rsp,%rsi; call; xor %eax,%eax; cmpl; sete %al.
	const called = 4 + 3 + 5
	symbol := append([]byte{0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xe6, 0xe8}, binary.LittleEndian.AppendUint32(nil, ownSize-called)...)
	symbol = append(append(symbol, 0x31, 0xc0, 0x81, 0x3c, 0x24), begins...)
	symbol = append(symbol, 0x0f, 0x94, 0xc0, 0x48, 0x83, 0xc4, 0x18, 0xc3)
	return map[string][]byte{"can_probe": even, "is_cfi_preamble_symbol": symbol, "lookup_symbol_name": no, "__pfx_can_probe": no, "register_kretprobe": no}
}

// ownImage is an ELF file of a kernel with these functions.
func ownImage(rng *rand.Rand, functions map[string][]byte) []byte {
	const base = 0xffffffff81000000
	text := bytes.Repeat([]byte{0xcc}, 0x1000)
	names := []string{"_text", "_stext"}
	at := []uint64{0, 0}
	offset := ownSize // _text is no function
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		copy(text[offset:offset+ownSize], functions[name])
		names, at = append(names, name), append(at, uint64(offset))
		offset += ownSize
	}
	names, at = append(names, "_etext"), append(at, uint64(len(text)))

	id := make([]byte, 20)
	for i := range id {
		id[i] = byte(rng.Uint32())
	}
	note := append([]byte{4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0}, id...)
	release := []string{"5.10.0-32-cloud-amd64", "6.1.0-56-cloud-amd64", "6.12.107+deb13-cloud-amd64", "7.3.4"}[rng.IntN(4)]
	banner := []byte("Linux version " + release + " (a@b) (gcc) #1 SMP\n\x00")

	strings, symbols := []byte{0}, make([]byte, 24)
	for i, name := range names {
		var y bytes.Buffer
		_ = binary.Write(&y, binary.LittleEndian, elf.Sym64{
			Name: uint32(len(strings)), Info: byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_FUNC), Shndx: 1, Value: base + at[i], Size: ownSize,
		})
		symbols = append(symbols, y.Bytes()...)
		strings = append(append(strings, name...), 0)
	}
	return elfFile([]elfSection{
		{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, addr: base, data: text},
		{name: ".rodata", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: base + 0x2000, data: banner},
		{name: ".notes", kind: elf.SHT_NOTE, flags: elf.SHF_ALLOC, addr: base + 0x3000, data: note},
		{name: ".data", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: base + 0x4000, data: make([]byte, 0x2000)},
		{name: ".symtab", kind: elf.SHT_SYMTAB, link: 6, entry: 24, data: symbols},
		{name: ".strtab", kind: elf.SHT_STRTAB, data: strings},
	})
}

type elfSection struct {
	name  string
	kind  elf.SectionType
	flags elf.SectionFlag
	addr  uint64
	link  uint32
	entry uint64
	data  []byte
}

// elfFile is a linked kernel of these sections, and one with their names.
func elfFile(list []elfSection) []byte {
	names := []byte{0}
	list = append(slices.Clone(list), elfSection{name: ".shstrtab", kind: elf.SHT_STRTAB})
	heads := []elf.Section64{{}}
	var progs []elf.Prog64
	body := make([]byte, 0x1000)
	for i, s := range list {
		head := elf.Section64{Name: uint32(len(names)), Type: uint32(s.kind), Flags: uint64(s.flags), Addr: s.addr, Link: s.link, Entsize: s.entry, Addralign: 1}
		names = append(append(names, s.name...), 0)
		if i == len(list)-1 {
			s.data = names
		}
		body = append(body, make([]byte, -len(body)&0xfff)...)
		head.Off, head.Size = uint64(len(body)), uint64(len(s.data))
		body = append(body, s.data...)
		heads = append(heads, head)
		if s.flags&elf.SHF_ALLOC != 0 {
			flags := elf.PF_R
			if s.flags&elf.SHF_EXECINSTR != 0 {
				flags |= elf.PF_X
			}
			if s.flags&elf.SHF_WRITE != 0 {
				flags |= elf.PF_W
			}
			progs = append(progs, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Off: head.Off, Vaddr: s.addr, Filesz: head.Size, Memsz: head.Size, Align: 0x1000})
		}
	}
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: list[0].addr, Phoff: 64, Shoff: uint64(len(body)),
		Ehsize: 64, Phentsize: 56, Phnum: uint16(len(progs)), Shentsize: 64, Shnum: uint16(len(heads)), Shstrndx: uint16(len(heads) - 1),
	}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	var front, back bytes.Buffer
	_ = binary.Write(&front, binary.LittleEndian, header)
	_ = binary.Write(&front, binary.LittleEndian, progs)
	_ = binary.Write(&back, binary.LittleEndian, heads)
	copy(body, front.Bytes())
	return append(body, back.Bytes()...)
}

// ownFunctions opens an image whose own functions answer as no honest ones do, and
// has it compared with the rules.
func ownFunctions(c *tryOut) {
	image := c.file("image", ownImage(c.rng, badFunctions(c.rng)))
	all := [][]string{
		{"info", image}, {"info", "--json", image}, {"selfcheck", "--points", fmt.Sprint(1 + c.rng.IntN(60)), image}, {"selfcheck", "--points", "5", "--json", image},
		{"explain", image, "can_probe"}, {"scan", image},
	}
	for range 2 {
		c.run(nil, all[c.rng.IntN(len(all))]...)
	}
}

// damagedCache has an image's answers kept, damages them, and opens it again.
func damagedCache(c *tryOut) {
	image := c.file("image", ownImage(c.rng, someFunctions(c.rng)))
	cache := filepath.Join(c.dir, "cache")
	c.env = []string{"KPROBELAB_CACHE=" + cache}
	c.run(nil, "info", image)
	list, _ := filepath.Glob(filepath.Join(cache, "measured", "*"))
	if len(list) == 0 {
		c.found("info", "no answer was kept")
		return
	}
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			c.found("", err.Error())
			return
		}
		switch c.rng.IntN(8) {
		case 0:
			_ = os.Remove(name)
			_ = os.Mkdir(name, 0o700)
		case 1:
			_ = os.Remove(name)
			_ = os.Symlink("/dev/zero", name)
		case 2:
			_ = os.Remove(name)
			_ = os.Symlink(name, name)
		default:
			_ = os.WriteFile(name, mutateText(c.rng, b), 0o600)
		}
	}
	if c.rng.IntN(4) == 0 {
		_ = os.Chmod(filepath.Dir(list[0]), 0)
		defer func() { _ = os.Chmod(filepath.Dir(list[0]), 0o700) }()
	}
	c.run(nil, "info", image)
	c.run(nil, "explain", image, "can_probe")
}
