package source

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// ErrNone is a file without DWARF.
var ErrNone = errors.New("no debugging information")

// ErrDamaged is DWARF that cannot be read, ErrTooMuch what is more than is read.
var (
	ErrDamaged = errors.New("damaged debugging information")
	ErrTooMuch = errors.New("too much debugging information")
)

// File is the debugging information of one file. It is for one goroutine.
type File struct {
	path  string
	dwarf *dwarf.Data
	// debug are the sections by their names without the dot.
	debug   map[string][]byte
	ehFrame uint64 // the address of .eh_frame
	// segments are a program's.
	segments []segment
	headers  []header
	symbols  symbols
	module   string
	buildID  string
	release  string
	abbrevs  map[uint64]abbrevs
	// recent are the units that were read last, the latest at the end.
	recent []*Unit
	// tables are the units with a table of lines, the latest at the end, and rows is how many rows these have.
	tables []*Unit
	rows   int
	// left counts down the entries that may still be read for this question.
	left int
	// fromBTF: BTF and symbols are all there is.
	fromBTF bool
	btf     []*ctype.BTF
	// enums are the names of enumerations of BTF.
	enumsOnce sync.Once
	enums     map[string]enumerator
	// aranges and roots map code to units, by two parts of the file.
	arangesOnce, rootsOnce sync.Once
	aranges, roots         coverage
	// mentioned says of each unit whether it names the file of the last question.
	mentioned struct {
		file string
		in   map[*header]bool
	}
}

// needed are the sections that are read.
var needed = []string{
	"debug_abbrev", "debug_addr", "debug_aranges", "debug_frame", "debug_info", "debug_line", "debug_line_str", "debug_loc",
	"debug_loclists", "debug_ranges", "debug_rnglists", "debug_str", "debug_str_offsets", "eh_frame",
}

// Open reads the debugging information of a file: an executable, a shared or a
// relocatable object, a vmlinux, a module, or the split-off debugging information of
// one. The error is ErrNone if there is none.
func Open(path string) (file *File, err error) {
	in, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := in.Stat()
	switch {
	case err != nil:
		return nil, err
	case !s.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w: it is no plain file", path, ErrNone)
	case s.Size() > bounded.SourceFile:
		return nil, fmt.Errorf("%s: %w", path, ErrTooMuch)
	}
	file, err = read(in, s.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.path = path
	return file, nil
}

// read reads a file that is open. The standard library's readers are not hardened
// against every damage; what they trip over is a damaged file.
func read(in io.ReaderAt, size int64) (f *File, err error) {
	defer guard(&err)
	e, err := elf.NewFile(in)
	if err != nil {
		return nil, fmt.Errorf("%w: it is no ELF file", ErrNone)
	}
	if e.Machine != elf.EM_X86_64 || e.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("%w for x86-64", ErrNone)
	}
	f = &File{debug: map[string][]byte{}, abbrevs: map[uint64]abbrevs{}, buildID: buildID(e), segments: segmentsOf(e)}
	l := place(e)
	if err := f.sections(e, l, uint64(size)); err != nil {
		return nil, err
	}
	f.symbols = readSymbols(e, l)
	f.module, f.release = moduleOf(e)
	if f.release == "" {
		f.release = f.banner(e)
	}
	if err := f.readHeaders(); err != nil {
		return nil, err
	}
	d := f.debug
	f.dwarf, err = dwarf.New(d["debug_abbrev"], nil, nil, d["debug_info"], d["debug_line"], nil, d["debug_ranges"], d["debug_str"])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, name := range []string{"debug_addr", "debug_line_str", "debug_loclists", "debug_rnglists", "debug_str_offsets"} {
		if err := f.dwarf.AddSection("."+name, d[name]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return f, nil
}

// guard turns a panic of a reader into an error.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}

// Path is the file's name, as it was opened.
func (f *File) Path() string { return f.path }

// Module is the module's name, "" if the file is no module.
func (f *File) Module() string { return f.module }

// Release is the kernel's release that the file names, "" if it names none.
func (f *File) Release() string { return f.release }

// BuildID is the file's build id in hexadecimal, "" if it has none.
func (f *File) BuildID() string { return f.buildID }

// sections reads the debugging sections, unpacked, and relocated if the file still has
// to be linked.
func (f *File) sections(e *elf.File, l *layout, size uint64) error {
	total := uint64(0)
	byName := map[string]*elf.Section{}
	for _, s := range e.Sections {
		name, _ := strings.CutPrefix(s.Name, ".")
		name = strings.Replace(name, "zdebug_", "debug_", 1)
		if s.Type != elf.SHT_NOBITS && byName[name] == nil {
			byName[name] = s
		}
	}
	if byName["debug_info"] == nil || byName["debug_abbrev"] == nil {
		return ErrNone
	}
	for _, name := range needed {
		s := byName[name]
		if s == nil {
			continue
		}
		if total += s.Size; s.Size > bounded.DebugSections || total > bounded.DebugSections {
			return fmt.Errorf("%w: %s has %d bytes", ErrTooMuch, s.Name, s.Size)
		}
		b, err := contents(s, size)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, s.Name, err)
		}
		if e.Type == elf.ET_REL {
			if b, err = l.relocate(e, s, b); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrDamaged, s.Name, err)
			}
		}
		f.debug[name] = b
		if name == "eh_frame" {
			f.ehFrame = l.at[slices.Index(e.Sections, s)]
		}
	}
	return nil
}

// contents is a section, unpacked. A plain one is read at once, into as much memory as
// it takes: there are sections of hundreds of megabytes.
func contents(s *elf.Section, file uint64) ([]byte, error) {
	if s.Flags&elf.SHF_COMPRESSED != 0 || strings.HasPrefix(s.Name, ".zdebug_") {
		return s.Data()
	}
	if s.Offset > file || s.Size > file-s.Offset {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, s.Size)
	_, err := s.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b, err
}

// buildID returns the build ID from the linker's note.
func buildID(e *elf.File) string {
	for _, s := range e.Sections {
		if s.Type != elf.SHT_NOTE || s.Size > 1<<16 {
			continue
		}
		b, err := s.Data()
		for err == nil && len(b) >= 12 {
			name, desc, kind := uint64(e.ByteOrder.Uint32(b)), uint64(e.ByteOrder.Uint32(b[4:])), e.ByteOrder.Uint32(b[8:])
			at := 12 + (name+3)&^3
			if at+desc > uint64(len(b)) {
				break
			}
			if kind == 3 && string(b[12:12+name]) == "GNU\x00" {
				return fmt.Sprintf("%x", b[at:at+desc])
			}
			b = b[min(at+(desc+3)&^3, uint64(len(b))):]
		}
	}
	return ""
}

// moduleOf is the name of a module and the release that it is for, from its .modinfo.
func moduleOf(e *elf.File) (name, release string) {
	s := e.Section(".modinfo")
	if s == nil || e.Type != elf.ET_REL || s.Size > 1<<20 {
		return "", ""
	}
	b, err := s.Data()
	if err != nil {
		return "", ""
	}
	for _, line := range strings.Split(string(b), "\x00") {
		if v, ok := strings.CutPrefix(line, "name="); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(line, "vermagic="); ok {
			release, _, _ = strings.Cut(v, " ")
		}
	}
	return name, release
}

// banner is the release in a kernel's linux_banner.
func (f *File) banner(e *elf.File) string {
	const start, room = "Linux version ", 128
	for _, sym := range f.symbols.named("linux_banner") {
		for _, s := range e.Sections {
			if s.Type != elf.SHT_PROGBITS || sym.Start < s.Addr || sym.Start-s.Addr >= s.Size {
				continue
			}
			b := make([]byte, room)
			n, _ := s.ReadAt(b, int64(sym.Start-s.Addr))
			if rest, ok := strings.CutPrefix(string(b[:n]), start); ok {
				release, _, _ := strings.Cut(rest, " ")
				return release
			}
		}
	}
	return ""
}
