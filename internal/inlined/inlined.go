// Package inlined reads from a file's DWARF into which functions the compiler has
// put the code of others.
//
// It must not know what a kernel or a probe is.
package inlined

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// ErrNone is a file without DWARF.
var ErrNone = errors.New("the file has no debugging information")

// Read lists for each function that was inlined, by name, the functions that have
// its code, in the order of their names. What is inlined into one that is inlined
// itself counts for the function that is there at last.
func Read(path string) (callers map[string][]string, err error) {
	file, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if s, err := file.Stat(); err != nil || !s.Mode().IsRegular() || s.Size() > bounded.InlinedFile {
		return nil, errors.Join(err, ErrNone)
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, ErrNone
	}
	size := uint64(0)
	for _, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".debug_") {
			size += s.Size // unpacked
		}
	}
	if f.Section(".debug_info") == nil || size > bounded.InlinedFile {
		return nil, ErrNone
	}
	d, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := reader{dwarf: d, names: map[dwarf.Offset]string{}, origins: map[dwarf.Offset]dwarf.Offset{}, found: map[string]map[string]bool{}}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r.list(), nil
}

// reader collects over all units: a function and its abstract origin can be in two.
type reader struct {
	dwarf *dwarf.Data
	// names are the functions' by their entries, origins the entries that an entry
	// takes its name from.
	names   map[dwarf.Offset]string
	origins map[dwarf.Offset]dwarf.Offset
	// places are pairs of the function that was inlined and the one that has it.
	places []place
	found  map[string]map[string]bool
}

type place struct{ inlined, in dwarf.Offset }

func (r *reader) read() error {
	entries := r.dwarf.Reader()
	// in is the function with code around each open entry, 0 for none.
	var in []dwarf.Offset
	for {
		e, err := entries.Next()
		if err != nil {
			return err
		}
		if e == nil {
			return nil
		}
		if e.Tag == 0 {
			if len(in) > 0 {
				in = in[:len(in)-1]
			}
			continue
		}
		here := dwarf.Offset(0)
		if len(in) > 0 {
			here = in[len(in)-1]
		}
		switch e.Tag {
		case dwarf.TagSubprogram:
			here = r.function(e)
		case dwarf.TagInlinedSubroutine:
			if origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok && here != 0 {
				r.places = append(r.places, place{origin, here})
			}
		case dwarf.TagCompileUnit, dwarf.TagPartialUnit, dwarf.TagLexDwarfBlock:
		default:
			if e.Children {
				entries.SkipChildren()
			}
			continue
		}
		if e.Children {
			in = append(in, here)
		}
	}
}

// function notes a function's name. It returns its place, 0 where it has no code.
func (r *reader) function(e *dwarf.Entry) dwarf.Offset {
	if name, ok := e.Val(dwarf.AttrName).(string); ok {
		r.names[e.Offset] = name
	} else if origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok {
		r.origins[e.Offset] = origin
	} else if origin, ok := e.Val(dwarf.AttrSpecification).(dwarf.Offset); ok {
		r.origins[e.Offset] = origin
	}
	if e.Val(dwarf.AttrLowpc) == nil && e.Val(dwarf.AttrRanges) == nil {
		return 0
	}
	return e.Offset
}

func (r *reader) name(at dwarf.Offset) string {
	for range bounded.InlinedOrigins {
		if name, ok := r.names[at]; ok {
			return name
		}
		next, ok := r.origins[at]
		if !ok {
			break
		}
		at = next
	}
	return ""
}

func (r *reader) list() map[string][]string {
	for _, p := range r.places {
		inlined, in := r.name(p.inlined), r.name(p.in)
		if inlined == "" || in == "" {
			continue
		}
		if r.found[inlined] == nil {
			r.found[inlined] = map[string]bool{}
		}
		r.found[inlined][in] = true
	}
	out := make(map[string][]string, len(r.found))
	for name, set := range r.found {
		list := make([]string, 0, len(set))
		for in := range set {
			list = append(list, in)
		}
		slices.Sort(list)
		out[name] = list
	}
	return out
}
