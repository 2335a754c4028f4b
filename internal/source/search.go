package source

import (
	"debug/dwarf"
	"errors"
	"fmt"
)

// search is one search for places.
type search struct {
	f     *File
	where Where
	visit func(*Place) error
	seen  map[visited]bool
	// row is the line for which a place is visited, nil for the table's line of its address; inner:
	// places in the middle of a function's blocks are visited, not at its beginning.
	row   *line
	inner bool
	// left is why copies were left out.
	left error
}

// leave leaves out the copies of a unit from here on, as perf does where a copy has no such offset.
func (s *search) leave(why error) error {
	s.left = why
	return fmt.Errorf("%w: %w", why, ErrSkipCopies)
}

// visited is an address that was visited, with its function or its copy if that matters.
type visited struct {
	addr     uint64
	function string
	copy     dwarf.Offset
}

// byFunction visits the places of a unit's functions. As with names in C, the first
// definition in a unit is the one that is meant.
func (s *search) byFunction(u *Unit) (err error) {
	u.subprograms(func(n *node) bool {
		if !n.matches(s.where.Function) {
			return true
		}
		if !n.defines() {
			if s.where.Folded != nil && n.Val(dwarf.AttrDeclaration) == nil {
				s.where.Folded(n.name())
			}
			return true
		}
		file, no := n.declared()
		if s.where.File != "" && !s.where.files()(file) {
			return true
		}
		switch {
		case s.where.Line != 0:
			err = s.byLine(u, file, no+s.where.Line)
		case n.instance():
			if at, _ := n.entry(); at != 0 {
				err = s.at(u, n, at+s.where.Offset)
			}
		default:
			if err = s.copies(u, n); errors.Is(err, ErrSkipCopies) {
				err = nil
			}
		}
		return err == nil && isGlob(s.where.Function)
	})
	return err
}

// copies visits the instances of a function that is to be inlined: its copies, and its
// own code if it has some.
func (s *search) copies(u *Unit, abstract *node) (err error) {
	u.root.find(func(n *node) turn {
		if !n.instance() || n.Val(dwarf.AttrAbstractOrigin) != abstract.Offset {
			return into
		}
		if n.Tag == dwarf.TagInlinedSubroutine && !s.where.All && n.recursive(abstract) {
			return into
		}
		at, ok := n.entry()
		if !ok || at == 0 {
			return into
		}
		if err = s.at(u, n, at+s.where.Offset); err != nil {
			return stop
		}
		return into
	})
	return err
}

// recursive reports a copy that the compiler gives the function's own line as its call.
func (n *node) recursive(abstract *node) bool {
	cf, cl := constant(n.Val(dwarf.AttrCallFile))
	df, dl := abstract.number(dwarf.AttrDeclFile)
	callLine, _ := constant(n.Val(dwarf.AttrCallLine))
	declLine, _ := abstract.number(dwarf.AttrDeclLine)
	return cl == dl && cf == df && callLine == declLine
}

// byLine visits the places of a line of a file.
func (s *search) byLine(u *Unit, file string, no int) error {
	return u.walkLines(u.root, func(f string, l int, addr uint64) error {
		if l != no || !tail(f, file) {
			return nil
		}
		if rf, rl, ok := u.lineAt(addr); ok && rf == f && rl != l {
			return notFound("%s shares its address with line %d, which is the one to be probed", s.where, rl)
		}
		scope := s.scope(u, addr, file, no)
		if scope == nil {
			return notFound("%s is in no function", s.where)
		}
		return s.at(u, scope, addr)
	})
}

// scope is the function or the copy whose variables are meant at an address: the one that
// was named, or that is declared nearest before the line; otherwise the function that has the code.
func (s *search) scope(u *Unit, addr uint64, file string, no int) (found *node) {
	nearest := int(^uint(0) >> 1)
	for n := u.functionAt(addr); n != nil; n = n.inlinedAt(addr) {
		df, dl := n.declared()
		if file != "" && df != file {
			continue
		}
		if s.where.Function != "" {
			if n.matches(s.where.Function) {
				return n
			}
		} else if dl < no && no-dl < nearest {
			nearest, found = no-dl, n
		}
	}
	if found == nil {
		found = u.functionAt(addr)
	}
	return found
}

// at visits one address.
func (s *search) at(u *Unit, scope *node, addr uint64) error {
	key := visited{addr: addr}
	switch {
	case s.row != nil:
		key.copy = scope.Offset
	case s.where.All:
		key.function = scope.name()
	}
	if s.seen[key] {
		return nil
	}
	fn := scope
	if !scope.defines() {
		if fn = u.functionAt(addr); fn == nil {
			if u.endsAt(addr) {
				return nil // a call that does not return ends the function
			}
			return s.leave(notFound("%s is in no function", s.where))
		}
	}
	if !fn.hasPC(addr) {
		return notFound("%s is outside of the function", s.where)
	}
	if len(s.seen) >= s.where.most() {
		return fmt.Errorf("%s is more than %d places", s.where, s.where.most())
	}
	p := s.f.placeOf(scope, fn, addr)
	if p.inner = s.inner; s.row != nil {
		p.File, p.Line = s.row.file, s.row.no
	}
	if s.where.Return && p.Inlined {
		return notFound("%s: a copy that is inlined does not return", s.where)
	}
	if err := s.visit(p); err != nil {
		return err
	}
	s.seen[key] = true
	return nil
}

// endsAt reports whether a function's code ends at an address.
func (u *Unit) endsAt(addr uint64) (ends bool) {
	u.subprograms(func(n *node) bool {
		high, ok := n.high()
		ends = ok && high == addr
		return !ends
	})
	return ends
}
