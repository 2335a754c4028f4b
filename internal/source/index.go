package source

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
)

// mention are the units whose bytes have a name, in their order. Debian's kernels have no
// index of names, so the name is looked for in .debug_str, and its offsets there in the
// entries: a name may be the end of a longer one, as linkers merge them.
func (f *File) mention(name string) []*header {
	info := f.debug["debug_info"]
	found := map[*header]bool{}
	note := func(at uint64) uint64 {
		h := f.unitAt(at)
		if h == nil {
			return at + 1
		}
		found[h] = true
		return h.end
	}
	word := append([]byte(name), 0)
	each(info, word, func(at uint64) uint64 { return note(at) })
	var offsets []uint32
	each(f.debug["debug_str"], word, func(at uint64) uint64 {
		offsets = append(offsets, uint32(at))
		return at + 1
	})
	f.eachOffset(info, offsets, note)
	if indexes := f.debug["debug_str_offsets"]; len(indexes) > 0 {
		some := false
		f.eachOffset(indexes, offsets, func(at uint64) uint64 { some = true; return uint64(len(indexes)) })
		for i := range f.headers {
			if some && f.headers[i].version >= 5 {
				found[&f.headers[i]] = true
			}
		}
	}
	out := make([]*header, 0, len(found))
	for h := range found {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *header) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	return out
}

// each calls found for each place of a word; found says where to go on.
func each(b, word []byte, found func(at uint64) uint64) {
	for at := uint64(0); at < uint64(len(b)); {
		n := bytes.Index(b[at:], word)
		if n < 0 {
			return
		}
		at = found(at + uint64(n))
	}
}

// few is up to how many offsets each is searched for by itself.
const few = 4

// eachOffset calls found for each place that has one of these as four bytes.
func (f *File) eachOffset(b []byte, offsets []uint32, found func(at uint64) uint64) {
	if len(offsets) <= few {
		for _, o := range offsets {
			each(b, binary.LittleEndian.AppendUint32(nil, o), found)
		}
		return
	}
	// Two bits of a table nearly always exclude four bytes.
	var table [1 << 16]bool
	set := make(map[uint32]bool, len(offsets))
	for _, o := range offsets {
		set[o] = true
		table[uint16(o)] = true
	}
	for at := 0; at+4 <= len(b); {
		if table[uint16(b[at])|uint16(b[at+1])<<8] && set[binary.LittleEndian.Uint32(b[at:])] {
			at = int(found(uint64(at)))
			continue
		}
		at++
	}
}

// functions are the units that have a function whose name matches, as something with code
// or as something to be inlined, in their order.
func (f *File) functions(name string) ([]*header, error) {
	glob := isGlob(name)
	var list []*header
	if glob {
		for i := range f.headers {
			list = append(list, &f.headers[i])
		}
	} else {
		list = f.mention(name)
	}
	var out []*header
	for _, h := range list {
		has := false
		err := f.skim(h, true, func(e *skimmed) {
			if e.tag != dwarf.TagSubprogram || e.declaration || has {
				return
			}
			has = e.indexed || e.name != nil && (glob && matches(name, string(e.name)) || string(e.name) == name)
		})
		if err != nil {
			return nil, err
		}
		if has {
			out = append(out, h)
		}
	}
	return out, nil
}

func isGlob(name string) bool { return bytes.ContainsAny([]byte(name), "*?[") }

func matches(glob, name string) bool {
	// In a shell's patterns ! after an opening bracket negates.
	ok, err := path.Match(strings.ReplaceAll(glob, "[!", "[^"), name)
	return err == nil && ok
}

// Symbol is the symbol that an address is in.
func (f *File) Symbol(addr uint64) (Symbol, bool) { return f.symbols.at(addr) }

// Symbols are the symbols of functions whose name matches, by ascending address; a pattern has to match the best name of an address.
func (f *File) Symbols(name string) []Symbol {
	if !isGlob(name) {
		return f.symbols.named(name)
	}
	var out []Symbol
	for _, s := range f.symbols.list {
		if s.Func && matches(name, s.Name) {
			out = append(out, s)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Start < out[j].Start })
	return out
}

// SymbolsByAnyName returns the symbols of functions with a matching name, by ascending address. Of
// an address with several names, its best name counts if it matches.
func (f *File) SymbolsByAnyName(name string) []Symbol {
	if !isGlob(name) {
		return f.symbols.named(name)
	}
	found := map[int]string{}
	for other, at := range f.symbols.byName {
		if !matches(name, other) {
			continue
		}
		for _, i := range at {
			if had, ok := found[i]; f.symbols.list[i].Func && (!ok || other == f.symbols.list[i].Name || had != f.symbols.list[i].Name && other < had) {
				found[i] = other
			}
		}
	}
	var out []Symbol
	for _, i := range slices.Sorted(maps.Keys(found)) {
		s := f.symbols.list[i]
		s.Name = found[i]
		out = append(out, s)
	}
	return out
}
