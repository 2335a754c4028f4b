package source

import (
	"debug/dwarf"
	"fmt"
	"slices"

	"kprobelab/internal/bounded"
)

// Inlined lists for each function that was inlined, by name, the functions that have its code, in the order of their
// names. What is inlined into a function that is inlined itself counts for the function that is there at last.
func (f *File) Inlined() (callers map[string][]string, err error) {
	return f.inlinedWithin(bounded.InlinedNotes)
}

// inlinedWithin is Inlined with so many bytes for notes.
func (f *File) inlinedWithin(most int) (callers map[string][]string, err error) {
	defer guard(&err)
	if f.fromBTF {
		return nil, noDWARF("inlined functions")
	}
	// A function and its abstract origin can be in two units.
	n := inlined{f: f, names: map[uint64]string{}, origins: map[uint64]uint64{}, places: map[inlinedPlace]bool{}, left: most}
	for i := range f.headers {
		n.h, n.in = &f.headers[i], n.in[:0]
		if err := f.skim(n.h, false, n.note); err != nil {
			return nil, err
		}
		if n.left < 0 {
			return nil, fmt.Errorf("%w: its functions and the places of their copies take more than %d bytes", ErrTooMuch, most)
		}
	}
	return n.list(), nil
}

// inlined collects over all units.
type inlined struct {
	f *File
	h *header
	// names are the functions' by their entries, origins the entries that an entry takes its name from.
	names   map[uint64]string
	origins map[uint64]uint64
	places  map[inlinedPlace]bool
	// in has the function with code around each open entry, 0 if there is none.
	in []uint64
	// left counts down the bytes that may be noted.
	left int
}

// inlinedPlace is a function that was inlined, and the one that has it.
type inlinedPlace struct{ inlined, in uint64 }

// noteSize is about what a note takes beside its text.
const noteSize = 64

func (n *inlined) note(e *skimmed) {
	if e.depth > bounded.UnitDepth {
		return
	}
	for len(n.in) <= e.depth {
		n.in = append(n.in, 0)
	}
	here := uint64(0)
	if e.depth > 0 {
		here = n.in[e.depth-1]
	}
	if n.left >= 0 {
		switch e.tag {
		case dwarf.TagSubprogram:
			here = n.function(e)
		case dwarf.TagInlinedSubroutine:
			if p := (inlinedPlace{e.origin, here}); e.origin != 0 && here != 0 && !n.places[p] {
				n.places[p] = true
				n.left -= noteSize
			}
		}
	}
	n.in[e.depth] = here
}

// function notes a function's name. It returns its offset, 0 if it has no code.
func (n *inlined) function(e *skimmed) uint64 {
	name := string(e.name)
	if e.indexed {
		if u, err := n.f.unit(n.h); err == nil && u.byOff[dwarf.Offset(e.at)] != nil {
			name = u.byOff[dwarf.Offset(e.at)].name()
		}
	}
	n.left -= noteSize + len(name)
	switch {
	case name != "":
		n.names[e.at] = name
	case e.origin != 0:
		n.origins[e.at] = e.origin
	}
	if !e.code {
		return 0
	}
	return e.at
}

func (n *inlined) name(at uint64) string {
	for range bounded.References {
		if name := n.names[at]; name != "" {
			return name
		}
		at = n.origins[at]
	}
	return ""
}

func (n *inlined) list() map[string][]string {
	out := map[string][]string{}
	for p := range n.places {
		inlined, in := n.name(p.inlined), n.name(p.in)
		if inlined != "" && in != "" {
			out[inlined] = append(out[inlined], in)
		}
	}
	for name, list := range out {
		slices.Sort(list)
		out[name] = slices.Compact(list)
	}
	return out
}
