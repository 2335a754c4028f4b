package kimage

import (
	"bytes"
	"slices"
	"strings"

	"kprobelab/internal/container"
	"kprobelab/internal/printable"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// readMaybePacked reads a file beside an image and unpacks it if it is packed.
func readMaybePacked(path string, report func(string, int64, int64)) ([]byte, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if !container.Packed(b) {
		return b, nil
	}
	return decompressBeside(path, b, report)
}

// readSystemMap reads a System.map or a copy of /proc/kallsyms. Lines that name a
// module become that module's symbols. The map of a kernel whose text was moved (KASLR)
// is moved back to the linked addresses.
func (img *Image) readSystemMap(path string) ([]Symbol, error) {
	b, err := readMaybePacked(path, img.opts.Progress)
	if err != nil {
		return nil, err
	}
	syms, err := parseSystemMap(path, b)
	if err != nil {
		return nil, err
	}
	if allHidden(syms) {
		return nil, badFormat(path, -1, "all its addresses are zero: copy /proc/kallsyms as root (kernel.kptr_restrict)")
	}
	own, modules := splitModules(syms)
	if shift := img.mapShift(own); shift != 0 {
		for i := range own {
			if own[i].Addr >= opened.KernelHalf {
				own[i].Addr -= x86.Addr(shift)
			}
		}
		img.facts.Add(evidence.Fact{Name: "symbols moved", Value: x86.Addr(shift).String(),
			Evidence: "the map's _text is not where the image's text is (KASLR)"})
	}
	if i := slices.IndexFunc(own, func(s Symbol) bool { return s.Name == "linux_banner" }); i >= 0 {
		if a := own[i].Addr; !infer.HasBanner(inside{img}, a) && img.banner().Release != "" {
			return nil, badFormat(path, -1, "these are the symbols of another image: this one has no linux_banner at %v", a)
		}
	}
	slices.SortStableFunc(own, byAddress)
	for _, m := range modules {
		img.addModule(m, nil)
	}
	return own, nil
}

// mapShift returns the distance from the image's text up to the map's, in bytes.
func (img *Image) mapShift(syms []Symbol) uint64 {
	text := img.section(".text")
	at := addrsOf(syms, "_text", "_stext")
	if text == nil {
		return 0
	}
	if t := firstOf(at["_text"], at["_stext"]); t != 0 {
		return uint64(t - text.Addr)
	}
	return 0
}

// parseSystemMap reads lines of "address letter name [module]".
func parseSystemMap(path string, b []byte) ([]Symbol, error) {
	arena := string(b)
	syms := make([]Symbol, 0, bytes.Count(b, []byte{'\n'})+1)
	for off := 0; off < len(arena); {
		line := arena[off:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		s, ok := parseMapLine(strings.TrimRight(line, "\r"))
		if !ok && strings.TrimSpace(line) != "" {
			return nil, badFormat(path, int64(off), "a line \"address letter name\" is wanted, not %.60q", line)
		}
		if ok {
			syms = append(syms, s)
		}
		off += len(line) + 1
	}
	if len(syms) == 0 {
		return nil, badFormat(path, 0, "it has no symbols")
	}
	return syms, nil
}

func parseMapLine(line string) (Symbol, bool) {
	hex, rest, ok := strings.Cut(line, " ")
	if !ok || len(rest) < 3 || rest[1] != ' ' || !isLetter(rest[0]) {
		return Symbol{}, false
	}
	addr, ok := parseHex(hex)
	if !ok {
		return Symbol{}, false
	}
	s := Symbol{Addr: addr, Type: rest[0], Name: rest[2:]}
	if i := strings.IndexAny(s.Name, "\t "); i >= 0 {
		mod := strings.TrimSpace(s.Name[i:])
		s.Name = s.Name[:i]
		if len(mod) < 3 || mod[0] != '[' || mod[len(mod)-1] != ']' {
			return Symbol{}, false
		}
		s.Module = mod[1 : len(mod)-1]
	}
	s.Name, s.Module = printable.Name(s.Name), printable.Name(s.Module)
	return s, s.Name != ""
}

// parseHex reads up to 16 hexadecimal digits, with or without 0x.
func parseHex(s string) (x86.Addr, bool) {
	s = strings.TrimPrefix(s, "0x")
	if s == "" || len(s) > 16 {
		return 0, false
	}
	var v x86.Addr
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | x86.Addr(c)
	}
	return v, true
}

func allHidden(syms []Symbol) bool {
	for i := range syms {
		if syms[i].Addr != 0 {
			return false
		}
	}
	return true
}

// splitModules separates the kernel's own symbols from its modules', which
// are taken to reach over the pages that their symbols lie in.
func splitModules(syms []Symbol) ([]Symbol, []*moduleArea) {
	own := syms[:0]
	byName := map[string]*moduleArea{}
	var modules []*moduleArea
	for _, s := range syms {
		if s.Module == "" {
			own = append(own, s)
			continue
		}
		m := byName[s.Module]
		if m == nil {
			m = &moduleArea{name: s.Module}
			byName[s.Module], modules = m, append(modules, m)
		}
		m.symbols = append(m.symbols, s)
	}
	for _, m := range modules {
		m.regions = pageRuns(m.symbols)
		for _, r := range pageRuns(slices.DeleteFunc(slices.Clone(m.symbols), func(s Symbol) bool { return s.Type|0x20 != 't' })) {
			if m.text.Len() == 0 {
				m.text = r
			}
		}
	}
	return own, modules
}

// pageRuns are the runs of pages that hold symbols, at most 64 KiB apart.
func pageRuns(syms []Symbol) []x86.Range {
	sorted := slices.Clone(syms)
	slices.SortFunc(sorted, byAddress)
	var runs []x86.Range
	for _, s := range sorted {
		page := s.Addr &^ (pageSize - 1)
		if n := len(runs); n > 0 && page < runs[n-1].End+64<<10 {
			runs[n-1].End = max(runs[n-1].End, page+pageSize)
			continue
		}
		runs = append(runs, x86.Range{Start: page, End: page + pageSize})
	}
	return runs
}
