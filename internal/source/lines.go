package source

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"io"
	"slices"

	"kprobelab/internal/bounded"
)

// maxTables bounds the rows of all tables that a file keeps. Tables of units that were not used
// last are read again.
const maxTables = 2 * bounded.Lines

// line is a row of the table of lines.
type line struct {
	addr      uint64
	file      string
	no        int
	stmt, end bool
}

// table is the unit's table of lines by ascending address; an end comes before what
// begins there.
func (u *Unit) table() (lines []line, err error) {
	if u.read {
		return u.lines, nil
	}
	defer guard(&err)
	r, err := u.f.dwarf.LineReader(u.root.Entry)
	if err != nil {
		return nil, fmt.Errorf("%w: lines: %w", ErrDamaged, err)
	}
	u.read = true
	if r == nil {
		return nil, nil
	}
	var e dwarf.LineEntry
	for {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			u.lines = nil
			return nil, fmt.Errorf("%w: lines: %w", ErrDamaged, err)
		}
		if len(u.lines) == bounded.Lines {
			u.lines = nil
			return nil, fmt.Errorf("%w: lines: a unit has more than %d", ErrDamaged, bounded.Lines)
		}
		l := line{addr: e.Address, no: e.Line, stmt: e.IsStmt, end: e.EndSequence}
		if e.File != nil {
			l.file = e.File.Name
		}
		u.lines = append(u.lines, l)
	}
	slices.SortStableFunc(u.lines, func(a, b line) int {
		if c := cmp.Compare(a.addr, b.addr); c != 0 || a.end == b.end {
			return c
		}
		if a.end {
			return -1
		}
		return 1
	})
	u.f.keep(u)
	return u.lines, nil
}

// keep keeps a unit's table, and drops the tables of other units if they are too large together.
func (f *File) keep(u *Unit) {
	f.tables = append(f.tables, u)
	for f.rows += len(u.lines); f.rows > maxTables && f.tables[0] != u; f.tables = f.tables[1:] {
		old := f.tables[0]
		f.rows -= len(old.lines)
		old.lines, old.read = nil, false
	}
}

// files are the names of the unit's files by their numbers.
func (u *Unit) files() []*dwarf.LineFile { return u.f.filesOf(u.root.Entry) }

func (f *File) filesOf(root *dwarf.Entry) (files []*dwarf.LineFile) {
	var err error
	defer guard(&err)
	r, err := f.dwarf.LineReader(root)
	if err != nil || r == nil {
		return nil
	}
	return r.Files()
}

// fileName is the name of a file by its number.
func (u *Unit) fileName(v any) string {
	i, ok := constant(v)
	if files := u.fileList(); ok && i >= 0 && i < int64(len(files)) && files[i] != nil {
		return files[i].Name
	}
	return ""
}

func (u *Unit) fileList() []*dwarf.LineFile {
	if u.names == nil {
		u.names = u.files()
	}
	return u.names
}

// declared returns the file and line of an entry's declaration.
func (n *node) declared() (file string, no int) {
	v, at := n.integrate(dwarf.AttrDeclFile)
	if at != nil {
		file = at.unit.fileName(v)
	}
	i, _ := n.number(dwarf.AttrDeclLine)
	return file, int(i)
}

// called returns the file and line of the call that an inlined copy replaces.
func (n *node) called() (file string, no int) {
	v, at := n.integrate(dwarf.AttrCallFile)
	if at != nil {
		file = at.unit.fileName(v)
	}
	i, _ := constant(n.Val(dwarf.AttrCallLine))
	return file, int(i)
}

// lineAt is the line of an address: the declaration's at a function's entry, elsewhere
// the first row there that begins a statement.
func (u *Unit) lineAt(addr uint64) (file string, no int, ok bool) {
	if fn := u.functionAt(addr); fn != nil {
		if at, ok := fn.entry(); ok && at == addr {
			file, no = fn.declared()
			return file, no, no != 0
		}
	}
	return u.rowAt(addr)
}

// rowAt returns the row for an address in the table of lines.
func (u *Unit) rowAt(addr uint64) (file string, no int, ok bool) {
	lines, err := u.table()
	if err != nil || len(lines) == 0 {
		return "", 0, false
	}
	i, _ := slices.BinarySearchFunc(lines, addr, func(l line, a uint64) int { return cmp.Compare(l.addr, a) })
	if i == len(lines) || lines[i].addr != addr {
		if i--; i < 0 {
			return "", 0, false
		}
	}
	// The first of the rows at this address or before it, then on to a statement.
	for ; i < len(lines) && lines[i].addr <= addr; i++ {
		if lines[i].stmt {
			return lines[i].file, lines[i].no, lines[i].no != 0 && lines[i].file != ""
		}
	}
	return "", 0, false
}

// atLine is called for a line that has code.
type atLine func(file string, no int, addr uint64) error

// walkLines goes over the lines of a unit, or of a function or copy without what is
// inlined there: the rows of the table that begin a statement, and where functions and
// copies begin, which the table does not have.
func (u *Unit) walkLines(of *node, visit atLine) error {
	lines, err := u.table()
	if err != nil {
		return err
	}
	whole := of == u.root
	file, no := of.declared()
	for _, l := range lines {
		if l.end || !l.stmt {
			continue
		}
		if !whole && !of.owns(l, file, no) {
			continue
		}
		if err := visit(l.file, l.no, l.addr); err != nil {
			return err
		}
	}
	if !whole {
		return of.walkEntries(false, visit)
	}
	u.subprograms(func(n *node) bool {
		err = n.walkEntries(true, visit)
		return err == nil
	})
	return err
}

// owns reports whether a row belongs to a function itself, declared at file and no, and not to
// an inlined copy in it: the line of a call belongs to the function, and so does recursion.
func (n *node) owns(l line, file string, no int) bool {
	if !n.hasPC(l.addr) {
		return false
	}
	in := n.innermost(l.addr)
	if in == nil {
		return true
	}
	if f, at := in.called(); f != "" && f == file && at == l.no {
		return true
	}
	f, at := in.declared()
	return at == no && f == file
}

// walkEntries visits the first lines of a function, and of the functions that are inlined into it.
func (n *node) walkEntries(deep bool, visit atLine) (err error) {
	if file, no := n.declared(); file != "" && no != 0 {
		if at, ok := n.entry(); ok {
			if err := visit(file, no, at); err != nil {
				return err
			}
		}
	}
	n.find(func(c *node) turn {
		if c.Tag != dwarf.TagInlinedSubroutine {
			return into
		}
		at, ok := c.entry()
		file, no := c.called()
		if ok && file != "" && no > 0 {
			if err = visit(file, no, at); err != nil {
				return stop
			}
		}
		if !deep {
			return over
		}
		if at != 0 {
			if file, no := c.declared(); file != "" && no != 0 {
				if err = visit(file, no, at); err != nil {
					return stop
				}
			}
		}
		return into
	})
	return err
}
