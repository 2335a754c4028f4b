package report

import (
	"bytes"
	"debug/elf"

	"kprobelab/internal/bounded"
)

// sourceLines are the places in C at which functions begin.
type sourceLines map[begin]sourceLine

// begin is the offset of a function in a section, in bytes.
type begin struct {
	section string
	offset  uint64
}

type sourceLine struct {
	file string
	line int
}

// readLines looks up the functions in an object's .BTF.ext (Documentation/bpf/btf.rst, "line_info"). What is damaged or not there
// is left out, because no answer depends on it.
func readLines(f *elf.File, symbols []elf.Symbol) sourceLines {
	lines := sourceLines{}
	for _, s := range symbols[:min(len(symbols), bounded.BPFPlaces)] {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && int(s.Section) < len(f.Sections) {
			lines[begin{f.Sections[s.Section].Name, s.Value}] = sourceLine{}
		}
	}
	text, ext := btfStrings(f), sectionData(f, ".BTF.ext")
	const header, record, column = 24, 16, 10
	if len(text) == 0 || len(ext) < header {
		return lines
	}
	le := f.ByteOrder
	from := uint64(le.Uint32(ext[4:])) + uint64(le.Uint32(ext[16:]))
	end := from + uint64(le.Uint32(ext[20:]))
	if end > uint64(len(ext)) || end-from < 4 {
		return lines
	}
	rest, size := ext[from+4:end], uint64(le.Uint32(ext[from:]))
	for len(rest) >= 8 && size >= record {
		section, n := stringAt(text, le.Uint32(rest)), le.Uint32(rest[4:])
		for rest = rest[8:]; n > 0 && uint64(len(rest)) >= size; n-- {
			at := begin{section, uint64(le.Uint32(rest))}
			if l, wanted := lines[at]; wanted && l.line == 0 {
				lines[at] = sourceLine{printable(stringAt(text, le.Uint32(rest[4:]))), int(le.Uint32(rest[12:]) >> column)}
			}
			rest = rest[size:]
		}
	}
	return lines
}

// btfStrings are the strings of .BTF.
func btfStrings(f *elf.File) []byte {
	b := sectionData(f, ".BTF")
	const header = 24
	if len(b) < header {
		return nil
	}
	from := uint64(f.ByteOrder.Uint32(b[4:])) + uint64(f.ByteOrder.Uint32(b[16:]))
	end := from + uint64(f.ByteOrder.Uint32(b[20:]))
	if end > uint64(len(b)) {
		return nil
	}
	return b[from:end]
}

// longestPath is the kernel's PATH_MAX.
const longestPath = 4096

func stringAt(text []byte, at uint32) string {
	if uint64(at) >= uint64(len(text)) {
		return ""
	}
	text = text[at:min(uint64(len(text)), uint64(at)+longestPath)]
	if n := bytes.IndexByte(text, 0); n >= 0 {
		return string(text[:n])
	}
	return ""
}

// sectionData returns a section's bytes; compressed ones are not read, for no compiler makes them of BTF.
func sectionData(f *elf.File, name string) []byte {
	s := f.Section(name)
	if s == nil || s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_COMPRESSED != 0 {
		return nil
	}
	b, err := s.Data()
	if err != nil {
		return nil
	}
	return b
}
