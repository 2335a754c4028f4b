package kimage

import (
	"slices"
	"strings"

	"kprobelab/x86"
)

// elfSymbol is one line of an ELF symbol table, with the fields that relocation and
// nm's letter need.
type elfSymbol struct {
	name  string
	info  byte
	shndx uint16
	value uint64
	size  uint64
}

func (s *elfSymbol) binding() byte { return s.info >> 4 }
func (s *elfSymbol) kind() byte    { return s.info & 15 }

// Special section indexes, bindings and types (System V ABI, "Symbol Table").
const (
	shnUndef  = 0
	shnAbs    = 0xfff1
	shnCommon = 0xfff2

	stbLocal = 0
	stbWeak  = 2

	sttObject  = 1
	sttSection = 3
	sttFile    = 4
)

// symbolTable returns the file's .symtab, or .dynsym if that is stripped, with its
// strings; nil if there is neither.
func (f *elfFile) symbolTable() (*elfSection, []byte) {
	for _, typ := range []uint32{shtSymtab, shtDynsym} {
		for i := range f.shdrs {
			s := &f.shdrs[i]
			if s.typ == typ && s.size >= symSize && int(s.link) < len(f.shdrs) {
				return s, f.content(&f.shdrs[s.link])
			}
		}
	}
	return nil, nil
}

// symbols reads the whole symbol table, the null symbol at index 0 included.
func (f *elfFile) symbols() []elfSymbol {
	t, strs := f.symbolTable()
	if t == nil {
		return nil
	}
	return readSymbols(f.content(t), strs)
}

func readSymbols(b, strs []byte) []elfSymbol {
	// One string for all names: each is a piece of it.
	arena := string(strs)
	syms := make([]elfSymbol, 0, len(b)/symSize)
	for ; len(b) >= symSize; b = b[symSize:] {
		syms = append(syms, elfSymbol{
			name: cstring(arena, le.Uint32(b)), info: b[4], shndx: le.Uint16(b[6:]), value: le.Uint64(b[8:]), size: le.Uint64(b[16:]),
		})
	}
	return syms
}

// kallsymsOf makes of an ELF symbol table what the kernel's build would make
// of it: its symbols with nm's letters, by address, aliases in kallsyms'
// order. addr gives a symbol's address and its section.
func kallsymsOf(syms []elfSymbol, addr func(*elfSymbol) (x86.Addr, *Section)) []Symbol {
	list := make([]Symbol, 0, len(syms))
	for i := range syms {
		s := &syms[i]
		if s.shndx == shnUndef || s.name == "" || s.kind() == sttSection || s.kind() == sttFile || strings.HasPrefix(s.name, ".L") {
			continue
		}
		at, in := addr(s)
		if in == nil && s.shndx != shnAbs {
			continue
		}
		list = append(list, Symbol{Name: s.name, Addr: at, Type: letter(s, in)})
	}
	slices.SortStableFunc(list, kallsymsOrder)
	return list
}

// letter is nm's letter of a symbol.
func letter(s *elfSymbol, in *Section) byte {
	if s.binding() == stbWeak {
		if s.kind() == sttObject {
			return 'V'
		}
		return 'W'
	}
	var c byte
	switch {
	case in == nil || isPerCPU(in):
		return 'A'
	case in.Exec:
		c = 't'
	case in.zero:
		c = 'b'
	case in.Write:
		c = 'd'
	default:
		c = 'r'
	}
	if s.binding() != stbLocal {
		c -= 'a' - 'A'
	}
	return c
}

// kallsymsOrder sorts as the kernel's table generator does (scripts/kallsyms):
// by address; of aliases, weak ones last, then names that a linker script
// provides, then those with more leading underscores; else as they come.
func kallsymsOrder(a, b Symbol) int {
	if a.Addr != b.Addr {
		return byAddress(a, b)
	}
	if d := order(a.weak()) - order(b.weak()); d != 0 {
		return d
	}
	if d := order(scriptProvided(a.Name)) - order(scriptProvided(b.Name)); d != 0 {
		return d
	}
	return underscores(a.Name) - underscores(b.Name)
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

func (s Symbol) weak() bool { return s.Type == 'w' || s.Type == 'W' }

// scriptProvided guesses, as the generator does, whether a linker script made
// the symbol: __start_*, __stop_*, __end_*, and names ending in _start or _end
// with two leading underscores.
func scriptProvided(name string) bool {
	rest, ok := strings.CutPrefix(name, "__")
	if !ok {
		return false
	}
	return strings.HasPrefix(rest, "start_") || strings.HasPrefix(rest, "stop_") || strings.HasPrefix(rest, "end_") ||
		strings.HasSuffix(rest, "_start") || strings.HasSuffix(rest, "_end")
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

func isPerCPU(s *Section) bool { return s.Name == ".data..percpu" }
