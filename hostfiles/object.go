package hostfiles

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"kprobelab/internal/bounded"
)

// ErrProgram: a file of the host cannot be run on an x86-64 kernel.
var ErrProgram = errors.New("it cannot be run")

// errNotELF: a file does not begin as an ELF file does.
var errNotELF = errors.New("no ELF file")

// object is a program or a library, with the entries of its ELF file that ld.so reads.
type object struct {
	// interpreter is the path of the program's interpreter, "" without one.
	interpreter string
	// needed are the names of its libraries, soname its own.
	needed []string
	soname string
	// rpath and runpath are the folders that it names, unexpanded.
	rpath, runpath []string
	// noDefault: ld.so looks for its libraries neither in the cache nor in the default folders (-z nodefaultlib).
	noDefault bool
	// dynamic: the file has a dynamic section.
	dynamic bool
	// end is the end of its last segment in the file.
	end uint64

	// path is its path in the tree it was found in.
	path string
	from tree
	// loader is the object that needs it, nil for the program.
	loader *object
}

// machines are the names of architectures that a person meets.
var machines = map[elf.Machine]string{
	elf.EM_AARCH64: "64-bit ARM", elf.EM_ARM: "32-bit ARM", elf.EM_386: "32-bit x86", elf.EM_RISCV: "RISC-V", elf.EM_PPC64: "PowerPC",
	elf.EM_S390: "s390", elf.EM_MIPS: "MIPS", elf.EM_LOONGARCH: "LoongArch", elf.EM_BPF: "BPF",
}

// readObject reads a file's ELF headers as the kernel and ld.so do: sections are not looked at. Of a file that is no
// ELF file the error is errNotELF, of one that an x86-64 kernel does not run ErrProgram.
func readObject(r io.ReaderAt) (*object, error) {
	var b [64]byte
	if n, err := r.ReadAt(b[:], 0); n < 4 || string(b[:4]) != elf.ELFMAG {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return nil, errNotELF
	} else if n < len(b) {
		return nil, fmt.Errorf("%w: its ELF header is cut off", ErrProgram)
	}
	var h elf.Header64
	_ = binary.Read(bytes.NewReader(b[:]), binary.LittleEndian, &h) // it has all bytes
	m := elf.Machine(h.Machine)
	big := elf.Data(b[elf.EI_DATA]) == elf.ELFDATA2MSB
	if big {
		m = elf.Machine(binary.BigEndian.Uint16(b[18:]))
	}
	switch {
	case m != elf.EM_X86_64 && machines[m] != "":
		return nil, fmt.Errorf("%w: it is built for %s, the kernel is x86-64", ErrProgram, machines[m])
	case big:
		return nil, fmt.Errorf("%w: its ELF header is big-endian, the kernel is x86-64", ErrProgram)
	case m != elf.EM_X86_64:
		return nil, fmt.Errorf("%w: it is built for another architecture (%v), the kernel is x86-64", ErrProgram, m)
	case elf.Class(b[elf.EI_CLASS]) != elf.ELFCLASS64:
		return nil, fmt.Errorf("%w: it is a program of the x32 ABI, 64-bit ones can be run", ErrProgram)
	case elf.Type(h.Type) == elf.ET_REL:
		return nil, fmt.Errorf("%w: it is an object file, which has to be linked first", ErrProgram)
	case elf.Type(h.Type) != elf.ET_EXEC && elf.Type(h.Type) != elf.ET_DYN:
		return nil, fmt.Errorf("%w: its ELF type is %v", ErrProgram, elf.Type(h.Type))
	case h.Phentsize != 56 || h.Phnum == 0:
		return nil, fmt.Errorf("%w: it has no program headers", ErrProgram)
	case h.Phnum > bounded.ProgramHeaders:
		return nil, fmt.Errorf("%w: it has %d program headers; %d are possible", ErrProgram, h.Phnum, bounded.ProgramHeaders)
	}
	segments := make([]elf.Prog64, h.Phnum)
	if err := binary.Read(io.NewSectionReader(r, int64(h.Phoff), int64(h.Phnum)*56), binary.LittleEndian, segments); err != nil {
		return nil, fmt.Errorf("%w: its program headers are cut off", ErrProgram)
	}
	o := &object{}
	return o, o.read(r, segments)
}

func (o *object) read(r io.ReaderAt, segments []elf.Prog64) error {
	for _, s := range segments {
		switch elf.ProgType(s.Type) {
		case elf.PT_LOAD:
			o.end = max(o.end, s.Off+s.Filesz)
		case elf.PT_INTERP:
			b, err := piece(r, s.Off, s.Filesz, bounded.GuestPath+1)
			if err != nil {
				return fmt.Errorf("%w: the name of its interpreter: %w", ErrProgram, err)
			}
			name, _, _ := bytes.Cut(b, []byte{0})
			o.interpreter = string(name)
		case elf.PT_DYNAMIC:
			b, err := piece(r, s.Off, s.Filesz, bounded.DynamicSection)
			if err == nil {
				err = o.dynamicSection(r, segments, b)
			}
			if err != nil {
				return fmt.Errorf("%w: its dynamic section: %w", ErrProgram, err)
			}
			o.dynamic = true
		}
	}
	return nil
}

// piece reads a range of a file.
func piece(r io.ReaderAt, off, size uint64, most int) ([]byte, error) {
	if size > uint64(most) {
		return nil, fmt.Errorf("%d bytes; %d are possible", size, most)
	}
	b := make([]byte, size)
	if n, err := r.ReadAt(b, int64(off)); n < len(b) {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is cut off")
		}
		return nil, err
	}
	return b, nil
}

// dynamicSection reads what ld.so wants to know of it.
func (o *object) dynamicSection(r io.ReaderAt, segments []elf.Prog64, b []byte) error {
	var at, size uint64
	var list [][2]uint64
	for ; len(b) >= 16; b = b[16:] {
		tag, v := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if tag == uint64(elf.DT_NULL) {
			break
		}
		switch elf.DynTag(tag) {
		case elf.DT_STRTAB:
			at = v
		case elf.DT_STRSZ:
			size = v
		case elf.DT_FLAGS_1:
			o.noDefault = v&uint64(elf.DF_1_NODEFLIB) != 0
		}
		list = append(list, [2]uint64{tag, v})
	}
	text := []byte(nil)
	for _, s := range segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && at >= s.Vaddr && at-s.Vaddr < s.Filesz {
			var err error
			if text, err = piece(r, s.Off+at-s.Vaddr, min(size, s.Filesz-(at-s.Vaddr)), bounded.DynamicStrings); err != nil {
				return fmt.Errorf("its strings: %w", err)
			}
		}
	}
	for _, e := range list {
		tag := elf.DynTag(e[0])
		if tag != elf.DT_NEEDED && tag != elf.DT_SONAME && tag != elf.DT_RPATH && tag != elf.DT_RUNPATH {
			continue
		}
		if e[1] >= uint64(len(text)) {
			return fmt.Errorf("a string at %#x is outside of its %d bytes of strings", e[1], len(text))
		}
		s, _, _ := bytes.Cut(text[e[1]:], []byte{0})
		switch name := string(s); tag {
		case elf.DT_NEEDED:
			if o.needed = append(o.needed, name); len(o.needed) > bounded.Libraries {
				return fmt.Errorf("it needs more than %d libraries", bounded.Libraries)
			}
		case elf.DT_SONAME:
			o.soname = name
		case elf.DT_RPATH:
			o.rpath = strings.Split(name, ":")
		case elf.DT_RUNPATH:
			o.runpath = strings.Split(name, ":")
		}
	}
	return nil
}
