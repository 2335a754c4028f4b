package source

import (
	"debug/elf"
	"errors"
	"sort"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/systemcall"
)

// layout has the addresses of a file's sections. The sections of a file that still has to be linked
// are all at 0; here they are laid out one after the other, so that each address is one place.
type layout struct{ at []uint64 }

// room is the gap that keeps two sections apart.
const room = 1 << 12

func place(e *elf.File) *layout {
	l := &layout{at: make([]uint64, len(e.Sections))}
	next := uint64(room)
	for i, s := range e.Sections {
		if e.Type != elf.ET_REL {
			l.at[i] = s.Addr
			continue
		}
		if s.Flags&elf.SHF_ALLOC == 0 || s.Size > bounded.SourceFile {
			continue
		}
		l.at[i] = next
		next = (next + s.Size + 2*room) &^ (room - 1)
	}
	return l
}

// base is the address that is added to the symbols of a section.
func (l *layout) base(e *elf.File, section elf.SectionIndex) uint64 {
	if e.Type != elf.ET_REL || int(section) >= len(l.at) {
		return 0
	}
	return l.at[section]
}

// relocate fills in addresses as a linker would. Debugging sections have relocations of
// plain addresses only.
func (l *layout) relocate(e *elf.File, s *elf.Section, b []byte) ([]byte, error) {
	syms, err := e.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	own := uint64(0)
	for i, other := range e.Sections {
		if other == s {
			own = l.at[i]
		}
	}
	for _, r := range e.Sections {
		if r.Type != elf.SHT_RELA || int(r.Info) >= len(e.Sections) || e.Sections[r.Info] != s || r.Size > bounded.DebugSections {
			continue
		}
		rels, err := r.Data()
		if err != nil {
			return nil, err
		}
		for ; len(rels) >= 24; rels = rels[24:] {
			at, info, add := e.ByteOrder.Uint64(rels), e.ByteOrder.Uint64(rels[8:]), e.ByteOrder.Uint64(rels[16:])
			n := info >> 32
			value := add
			if n > 0 {
				if n > uint64(len(syms)) {
					return nil, errors.New("a relocation names no symbol")
				}
				sym := syms[n-1]
				value += sym.Value + l.base(e, sym.Section)
			}
			switch kind := elf.R_X86_64(info & 0xffffffff); kind {
			case elf.R_X86_64_64:
				if at > uint64(len(b)) || uint64(len(b))-at < 8 {
					return nil, errors.New("a relocation is outside of the section")
				}
				e.ByteOrder.PutUint64(b[at:], value)
			case elf.R_X86_64_32, elf.R_X86_64_32S, elf.R_X86_64_PC32:
				if at > uint64(len(b)) || uint64(len(b))-at < 4 {
					return nil, errors.New("a relocation is outside of the section")
				}
				if kind == elf.R_X86_64_PC32 { // in .eh_frame
					value -= at + own
				}
				e.ByteOrder.PutUint32(b[at:], uint32(value))
			}
		}
	}
	return b, nil
}

// Symbol is a name of the file's symbol table.
type Symbol struct {
	Name       string
	Start, End uint64
	bind       elf.SymBind
	Func       bool
}

// symbols are by ascending address, one at each: of several names, the best one.
type symbols struct {
	list   []Symbol
	byName map[string][]int
}

func readSymbols(e *elf.File, l *layout) symbols {
	raw, err := e.Symbols()
	if err != nil && len(segmentsOf(e)) > 0 {
		raw, err = e.DynamicSymbols() // a program may be stripped
	}
	if err != nil {
		return symbols{}
	}
	var list []Symbol
	for _, s := range raw {
		if s.Section == elf.SHN_UNDEF || s.Section >= elf.SHN_LORESERVE || int(s.Section) >= len(e.Sections) || s.Name == "" {
			continue
		}
		sec := e.Sections[s.Section]
		kind := elf.ST_TYPE(s.Info)
		label := kind == elf.STT_NOTYPE && (strings.Contains(sec.Name, "text") || strings.Contains(sec.Name, "data"))
		if sec.Flags&elf.SHF_ALLOC == 0 || kind != elf.STT_FUNC && kind != elf.STT_OBJECT && !label {
			continue
		}
		at := s.Value + l.base(e, s.Section)
		list = append(list, Symbol{Name: s.Name, Start: at, End: at + s.Size, bind: elf.ST_BIND(s.Info), Func: kind == elf.STT_FUNC})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Start < list[j].Start })
	out := symbols{byName: map[string][]int{}}
	for i := 0; i < len(list); {
		best, j := list[i], i+1
		for ; j < len(list) && list[j].Start == list[i].Start; j++ {
			if !best.better(list[j]) {
				best = list[j]
			}
		}
		if best.End == best.Start && j < len(list) {
			best.End = list[j].Start
		}
		for ; i < j; i++ {
			out.byName[list[i].Name] = append(out.byName[list[i].Name], len(out.list))
		}
		out.list = append(out.list, best)
	}
	return out
}

// better reports whether of two names at one address a tool shows this one: sized
// before unsized, strong before weak, global before local, with less underscores
// in front, longer (perf's choose_best_symbol; objdump's is alike).
func (a Symbol) better(b Symbol) bool {
	if sa, sb := a.End > a.Start, b.End > b.Start; sa != sb {
		return sa
	}
	if wa, wb := a.bind == elf.STB_WEAK, b.bind == elf.STB_WEAK; wa != wb {
		return wb
	}
	if ga, gb := a.bind == elf.STB_GLOBAL, b.bind == elf.STB_GLOBAL; ga != gb {
		return ga
	}
	if ua, ub := underscores(a.Name), underscores(b.Name); ua != ub {
		return ua < ub
	}
	if len(a.Name) != len(b.Name) {
		return len(a.Name) > len(b.Name)
	}
	return !systemcall.Alias(a.Name)
}

func underscores(name string) int { return len(name) - len(strings.TrimLeft(name, "_")) }

// at is the symbol whose code or data an address is in.
func (s *symbols) at(addr uint64) (Symbol, bool) {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].Start > addr })
	if i == 0 || addr >= s.list[i-1].End && addr != s.list[i-1].Start {
		return Symbol{}, false
	}
	return s.list[i-1], true
}

// named are the symbols of a name, by ascending address.
func (s *symbols) named(name string) (out []Symbol) {
	for _, i := range s.byName[name] {
		sym := s.list[i]
		sym.Name = name
		out = append(out, sym)
	}
	return out
}
