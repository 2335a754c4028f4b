package source

import (
	"debug/dwarf"
	"math"
	"slices"

	"kprobelab/internal/bounded"
)

// Listing are the lines of a function or of a file at which a probe can be.
type Listing struct {
	// Function is empty for a file's lines; Path is the file, Base the line that the
	// function's are counted from, 0 for a file.
	Function, Path string
	Base           int
	// From and To are the first and the last line of the request; To is math.MaxInt32 if
	// the end is open.
	From, To int
	// Lines are ascending, and the file's own.
	Lines []int
}

// Lines are the lines from one to another, counted from the function's declaration where w
// names a function; to < 0 is the end. Of several functions or units with the name it is
// the first that has lines.
func (f *File) Lines(w Where, from, to int) (out *Listing, err error) {
	defer guard(&err)
	if f.fromBTF {
		return nil, noDWARF("the lines of " + w.String())
	}
	f.left = bounded.EntriesRead
	units, err := f.candidates(w)
	if err != nil {
		return nil, err
	}
	if to < 0 {
		to = math.MaxInt32
	}
	for _, h := range units {
		u, err := f.unit(h)
		if err != nil {
			return nil, err
		}
		l := &Listing{Function: w.Function, From: from, To: to}
		if w.Function == "" {
			if l.Path, err = f.fileIn(h, w.files()); err != nil {
				return nil, err
			}
			err = l.add(u, u.root)
		} else {
			err = l.function(u, w)
		}
		if err != nil {
			return nil, err
		}
		if len(l.Lines) > 0 {
			slices.Sort(l.Lines)
			l.Lines = slices.Compact(l.Lines)
			return l, nil
		}
	}
	return nil, notFound("the debugging information has no lines of %s", w)
}

// function adds the lines of a unit's function, or of all its copies.
func (l *Listing) function(u *Unit, w Where) (err error) {
	u.subprograms(func(n *node) bool {
		file, no := n.declared()
		if !n.matches(w.Function) || !n.defines() || w.File != "" && !tail(w.File, file) {
			return true
		}
		l.Path, l.Base = file, no
		l.From += no
		if l.To != math.MaxInt32 {
			l.To += no
		}
		if n.instance() {
			err = l.add(u, n)
			return false
		}
		u.root.find(func(c *node) turn {
			if c.instance() && c.Val(dwarf.AttrAbstractOrigin) == n.Offset && (c.Tag != dwarf.TagInlinedSubroutine || !c.recursive(n)) {
				err = l.add(u, c)
			}
			if err != nil {
				return stop
			}
			return into
		})
		return false
	})
	return err
}

// add notes the lines of a function, a copy or a unit.
func (l *Listing) add(u *Unit, of *node) error {
	return u.walkLines(of, func(file string, no int, addr uint64) error {
		if no < l.From || no > l.To || !tail(file, l.Path) {
			return nil
		}
		// The line that lineAt gives for the address has to be this one.
		if rf, rl, ok := u.lineAt(addr); ok && (rl != no || rf != file) {
			return nil
		}
		l.Lines = append(l.Lines, no)
		return nil
	})
}
