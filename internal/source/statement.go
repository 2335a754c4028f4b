package source

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"slices"

	"kprobelab/internal/bounded"
)

// Statements are lines of functions, as SystemTap names them.
type Statements struct {
	// Function is a name or a pattern of names; File has the last parts of a file's path, or a
	// pattern of them.
	Function, File string
	// Lines are the lines, each from one number to another; nil for all from a function's first
	// on, as long as one follows the other in it.
	Lines [][2]int
	// Single: Lines are one number, and each unit that has the functions must have code of it.
	Single bool
	// Relative counts from the line at which the function is declared.
	Relative bool
	// Nearest takes the nearest line with code where a line has none.
	Nearest bool
	// Most bounds the number of places.
	Most int
}

// nearLines is the greatest distance to the nearest line.
const nearLines = 5

// fileRows are a unit's rows of one file, by line and address.
type fileRows []line

// first returns the first row of a line in a function, nil if the line has none.
func (r fileRows) first(of *node, no int) *line {
	for i := r.from(no); i < len(r) && r[i].no == no; i++ {
		if of.hasPC(r[i].addr) {
			return &r[i]
		}
	}
	return nil
}

// from returns the index of the first row of a line, or of the next line that has rows.
func (r fileRows) from(no int) int {
	i, _ := slices.BinarySearchFunc(r, no, func(l line, no int) int { return cmp.Compare(l.no, no) })
	return i
}

// all returns a function's rows, one for each line, from its first line on, up to a line that has
// none.
func (r fileRows) all(of *node, no int) (out []line) {
	for {
		l := r.first(of, no)
		if l == nil {
			return out
		}
		out = append(out, *l)
		next := r.from(no + 1)
		if next == len(r) {
			return out
		}
		no = r[next].no
	}
}

// near returns the nearest lines before and after one that have rows in the functions, 0 if
// there is none.
func (r fileRows) near(list []*node, no int) (before, after int) {
	has := func(no int) bool {
		return slices.ContainsFunc(list, func(n *node) bool { return r.first(n, no) != nil })
	}
	for i := 1; i <= nearLines; i++ {
		if before == 0 && has(no-i) {
			before = no - i
		}
		if after == 0 && has(no+i) {
			after = no + i
		}
	}
	return before, after
}

// nearest returns the nearest of both, the later one if the distances are equal.
func (r fileRows) nearest(list []*node, no int) int {
	before, after := r.near(list, no)
	if after == 0 || before != 0 && no-before < after-no {
		return before
	}
	return after
}

// firstLine is the number of the line with which a function begins: of the last row at its entry, else
// of its first row.
func (u *Unit) firstLine(lines []line, of *node) int {
	entry, _ := of.entry()
	no := 0
	for _, l := range lines {
		if !l.end && l.addr == entry {
			no = l.no
		}
	}
	if no != 0 {
		return no
	}
	for _, l := range lines {
		if !l.end && of.hasPC(l.addr) {
			return l.no
		}
	}
	return 0
}

// statements is one search for statements.
type statements struct {
	*search
	Statements
	files fileRule
}

// NoRows says that functions of a unit have no code for the one line that is wanted; Near are the
// nearest lines before and after it that have code, 0 if there are none.
type NoRows struct {
	File string
	Line int
	Near [2]int
}

func (e *NoRows) Error() string {
	text := fmt.Sprintf("no line records for %s:%d", e.File, e.Line)
	near := ""
	for _, no := range e.Near {
		switch {
		case no == 0:
		case near == "":
			near = fmt.Sprintf(" (try :%d", no)
		default:
			near += fmt.Sprintf(" or :%d", no)
		}
	}
	if near != "" {
		near += ")"
	}
	return text + near
}

// Statements calls visit for each place of the lines: in each function and each copy, the first
// place of the line. A place in several of these is visited for each. At the first unit that has
// no code of the one line it ends with *NoRows.
func (f *File) Statements(w Statements, visit func(*Place) error) (err error) {
	defer guard(&err)
	if f.fromBTF {
		return noDWARF("a line")
	}
	f.left = bounded.EntriesRead
	where := Where{Function: w.Function, File: w.File, Most: w.Most, All: true}
	s := statements{search: &search{f: f, where: where, visit: visit, seen: map[visited]bool{}, inner: true}, Statements: w, files: where.files()}
	var units []*header
	if isGlob(w.Function) {
		units, err = f.unitsOfFile(s.files)
	} else {
		units, err = f.candidates(where)
	}
	if err != nil {
		return err
	}
	for _, h := range units {
		u, err := f.unit(h)
		if err != nil {
			return err
		}
		if err := s.unit(u); err != nil {
			return err
		}
	}
	return nil
}

// unit goes over the files of a unit that are meant.
func (s *statements) unit(u *Unit) error {
	lines, err := u.table()
	if err != nil || len(lines) == 0 {
		return err
	}
	list, files := s.instances(u)
	for _, file := range files {
		var rows fileRows
		for _, l := range lines {
			if !l.end && l.file == file {
				rows = append(rows, l)
			}
		}
		slices.SortStableFunc(rows, func(a, b line) int { return cmp.Or(cmp.Compare(a.no, b.no), cmp.Compare(a.addr, b.addr)) })
		of := slices.DeleteFunc(slices.Clone(list), func(n *node) bool { in, _ := n.declared(); return in != file })
		if err := s.file(u, lines, rows, of, list); err != nil {
			return err
		}
	}
	return nil
}

// instances are the functions and the copies of a unit that are meant, one for each entry and name, and the
// files that declare them. The rest of a function whose beginning is inlined is none.
func (s *statements) instances(u *Unit) (list []*node, files []string) {
	had := map[visited]bool{}
	u.root.find(func(n *node) turn {
		if !n.instance() || !n.matches(s.Function) {
			return into
		}
		entry, _ := n.entry()
		if sym, _ := s.f.Symbol(entry); n.Tag == dwarf.TagSubprogram && isRest(sym.Name) {
			return into
		}
		key := visited{addr: entry, function: n.name()}
		if file, _ := n.declared(); s.files(file) && !had[key] {
			had[key] = true
			list = append(list, n)
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
		return into
	})
	// Functions, then copies.
	slices.SortStableFunc(list, func(a, b *node) int { return cmp.Compare(b.Tag, a.Tag) })
	return list, files
}

// file visits what the functions of one file have of the lines.
func (s *statements) file(u *Unit, lines []line, rows fileRows, of, all []*node) error {
	if len(of) == 0 || len(rows) == 0 {
		return nil
	}
	var found []line
	if s.Lines == nil {
		for _, n := range of {
			found = append(found, rows.all(n, u.firstLine(lines, n))...)
		}
	}
	for _, r := range s.Lines {
		from, to := r[0], r[1]
		if !s.Relative {
			from, to = max(from, rows[0].no-nearLines), min(to, rows[len(rows)-1].no+nearLines)
		}
		for no := from; no <= to; no++ {
			found = append(found, s.line(rows, of, no)...)
		}
	}
	if s.Single && len(found) == 0 {
		return s.noRows(rows, of)
	}
	had := map[uint64]bool{}
	for i := range found {
		s.row = &found[i]
		if had[s.row.addr] {
			continue
		}
		had[s.row.addr] = true
		for _, n := range all {
			if !n.hasPC(s.row.addr) {
				continue
			}
			if err := s.at(u, n, s.row.addr); err != nil {
				return err
			}
		}
	}
	return nil
}

// line are the rows of one line, or of the one that is taken for it.
func (s *statements) line(rows fileRows, of []*node, no int) (found []line) {
	for _, n := range of {
		if l := rows.first(n, s.number(n, no)); l != nil {
			found = append(found, *l)
		}
	}
	if len(found) > 0 || !s.Nearest {
		return found
	}
	near := rows.nearest(of, s.number(of[0], no))
	for _, n := range of {
		if l := rows.first(n, near); l != nil && near != 0 {
			found = append(found, *l)
		}
	}
	return found
}

// number is a line's number in the file, for a function from which it may be counted.
func (s *statements) number(n *node, no int) int {
	if !s.Relative {
		return no
	}
	_, declared := n.declared()
	return declared + no
}

func (s *statements) noRows(rows fileRows, of []*node) error {
	file, _ := of[0].declared()
	at := s.number(of[0], s.Lines[0][0])
	e := &NoRows{File: file, Line: at}
	e.Near[0], e.Near[1] = rows.near(of, at)
	return e
}
