package source

import (
	"debug/dwarf"

	"kprobelab/internal/bounded"
)

// Calls are the calls of a function by its name, in the code of a file.
type Calls struct {
	// Direct are the calls that reach the function's own code. Inlined are the copies
	// of the function in other functions, which no probe on the function sees.
	Direct, Inlined []Call
}

// Call is a call of a function, or a copy in its place.
type Call struct {
	// Caller is the function whose code has it.
	Caller string
}

// Calls counts the calls of a function. Those through a pointer are not among them: they
// reach the function's own code.
func (f *File) Calls(function string) (out *Calls, err error) {
	defer guard(&err)
	if f.fromBTF {
		return nil, noDWARF("the calls of " + function)
	}
	out = &Calls{}
	known := false
	for _, h := range f.mention(function) {
		c := calls{f: f, h: h, name: function, out: out, names: map[uint64]string{}, origins: map[uint64]uint64{}}
		if err := f.skim(h, true, c.note); err != nil {
			return nil, err
		}
		if !c.known {
			continue
		}
		known = true
		if err := f.skim(h, false, c.count); err != nil {
			return nil, err
		}
	}
	if !known {
		return nil, notFound("the debugging information has no function %s", function)
	}
	return out, nil
}

// calls counts in one unit.
type calls struct {
	f     *File
	h     *header
	name  string
	out   *Calls
	known bool
	// names and origins are the unit's functions' names and origins, by the offset of their entries.
	names   map[uint64]string
	origins map[uint64]uint64
	// in is the function that is being passed over.
	in     uint64
	inCode bool
}

func (c *calls) note(e *skimmed) {
	if e.tag != dwarf.TagSubprogram {
		return
	}
	if e.name != nil {
		c.names[e.at] = string(e.name)
		c.known = c.known || string(e.name) == c.name
	} else if e.indexed {
		if u, err := c.f.unit(c.h); err == nil && u.byOff[dwarf.Offset(e.at)] != nil {
			c.names[e.at] = u.byOff[dwarf.Offset(e.at)].name()
			c.known = c.known || c.names[e.at] == c.name
		}
	}
	if e.origin != 0 {
		c.origins[e.at] = e.origin
	}
}

// nameOf returns a function's name, which may be in the entry that it is an instance of.
func (c *calls) nameOf(at uint64) string {
	for range bounded.References {
		if name := c.names[at]; name != "" {
			return name
		}
		at = c.origins[at]
	}
	return ""
}

func (c *calls) count(e *skimmed) {
	if e.depth == 1 {
		c.in, c.inCode = e.at, e.tag == dwarf.TagSubprogram && e.code
	}
	if !c.inCode || e.origin == 0 {
		return
	}
	switch e.tag {
	case dwarf.TagInlinedSubroutine:
		if e.code && c.nameOf(e.origin) == c.name {
			c.out.Inlined = append(c.out.Inlined, Call{c.nameOf(c.in)})
		}
	case tagCall, tagGNUCall:
		if c.nameOf(e.origin) == c.name {
			c.out.Direct = append(c.out.Direct, Call{c.nameOf(c.in)})
		}
	}
}
