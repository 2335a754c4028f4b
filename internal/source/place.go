package source

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// Where is a place as people say it.
type Where struct {
	// Function is a name, or a pattern of names. File is the end of a file's path, as in perf, or
	// with All the path's last parts or a pattern of them, as in SystemTap.
	Function, File string
	// Line counts from the function's declaration if there is a function, else it is
	// the file's line.
	Line int
	// Offset is in bytes from the function's beginning.
	Offset uint64
	// Return means the function's return.
	Return bool
	// All takes what perf leaves out: copies of a function that are inlined into its own code, and
	// all functions that begin at an address, not the first one only.
	All bool
	// Folded, if not nil, is called for functions that are described and have no code of their own,
	// because the compiler has folded it into another function's.
	Folded func(function string)
	// Most bounds how many places it may be: MaxPlaces if 0.
	Most int
}

func (w Where) most() int {
	if w.Most == 0 {
		return MaxPlaces
	}
	return w.Most
}

func (w Where) String() string {
	s := w.Function
	if w.File != "" && w.Function != "" {
		s += "@"
	}
	s += w.File
	switch {
	case w.Return:
		s += "%return"
	case w.Offset != 0:
		s += fmt.Sprintf("+%d", w.Offset)
	case w.Line != 0:
		s += fmt.Sprintf(":%d", w.Line)
	}
	return s
}

// Place is one place in the code.
type Place struct {
	Addr uint64
	// Symbol and Offset are the address in the symbol table's words; of a file without
	// symbols in the function's.
	Symbol string
	Offset uint64
	// Function is the name of the source's function whose place it is.
	Function string
	// Inlined is for the copy of a function that the compiler has put into another.
	Inlined bool
	// File and Line are the source's.
	File string
	Line int

	scope, fn *node
	// inner: it is a place in the middle of a function's blocks.
	inner bool
	// variables are the parameters that BTF has, if there is no DWARF.
	variables []*Variable
	returns   *ctype.Type
}

// NotFound is a name or a place that the file does not have.
type NotFound struct {
	What string
	// Place is for a function, a file or a line; else it is something at a place.
	Place bool
}

func (e *NotFound) Error() string { return e.What }

func notFound(format string, a ...any) error { return &NotFound{What: fmt.Sprintf(format, a...)} }

// MaxPlaces bounds the places of one name, as perf does.
const MaxPlaces = 128

// ErrSkipCopies, as a visit's error (errors.Is), ends the walk over the copies of one function
// in one unit, but not in other units.
var ErrSkipCopies = errors.New("the other copies of this unit are left out")

// Places calls visit for each place that w means, in the order of the units and of the
// entries in them, each address once. It ends with visit's error.
func (f *File) Places(w Where, visit func(*Place) error) (err error) {
	defer guard(&err)
	if f.fromBTF {
		return f.btfPlaces(w, visit)
	}
	f.left = bounded.EntriesRead
	s := search{f: f, where: w, visit: visit, seen: map[visited]bool{}}
	units, err := f.candidates(w)
	if err != nil {
		return err
	}
	for _, h := range units {
		u, err := f.unit(h)
		if err != nil {
			return err
		}
		if w.Function != "" {
			err = s.byFunction(u)
		} else {
			var name string
			if name, err = f.fileIn(h, w.files()); err == nil {
				err = s.byLine(u, name, w.Line)
			}
		}
		if err != nil {
			return err
		}
	}
	if len(s.seen) == 0 {
		return s.left
	}
	return nil
}

// candidates are the units in which the place may be.
func (f *File) candidates(w Where) ([]*header, error) {
	if w.Function == "" {
		return f.unitsOfFile(w.files())
	}
	units, err := f.functions(w.Function)
	if err != nil || w.File == "" {
		return units, err
	}
	var out []*header
	for _, h := range units {
		if name, err := f.fileIn(h, w.files()); err != nil {
			return nil, err
		} else if name != "" {
			out = append(out, h)
		}
	}
	return out, nil
}

// unitsOfFile are the units that have code or declarations of a file.
func (f *File) unitsOfFile(meant fileRule) ([]*header, error) {
	var out []*header
	for i := range f.headers {
		name, err := f.fileIn(&f.headers[i], meant)
		if err != nil {
			return nil, err
		}
		if name != "" {
			out = append(out, &f.headers[i])
		}
	}
	return out, nil
}

// fileIn is the whole name of the unit's first file that is meant.
func (f *File) fileIn(h *header, meant fileRule) (string, error) {
	r := f.dwarf.Reader()
	r.Seek(dwarf.Offset(h.root))
	root, err := r.Next()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if root == nil || root.Val(dwarf.AttrStmtList) == nil {
		return "", nil
	}
	for _, name := range f.filesOf(root) {
		if name != nil && meant(name.Name) {
			return name.Name, nil
		}
	}
	return "", nil
}

func (f *File) placeOf(scope, fn *node, addr uint64) *Place {
	p := &Place{Addr: addr, Function: scope.name(), scope: scope, fn: fn, Inlined: scope.Tag == dwarf.TagInlinedSubroutine}
	entry, _ := fn.entry()
	p.Symbol, p.Offset = fn.name(), addr-entry
	if sym, ok := f.symbols.at(addr); ok {
		p.Symbol, p.Offset = sym.Name, addr-sym.Start
	}
	p.File, p.Line, _ = fn.unit.lineAt(addr)
	return p
}

// At is the place of an address.
func (f *File) At(addr uint64) (p *Place, err error) {
	defer guard(&err)
	if f.fromBTF {
		return nil, noDWARF("an address")
	}
	f.left = bounded.EntriesRead
	h := f.unitOf(addr)
	if h == nil {
		return nil, notFound("no debugging information covers %#x", addr)
	}
	u, err := f.unit(h)
	if err != nil {
		return nil, err
	}
	fn := u.functionAt(addr)
	if fn == nil {
		return nil, notFound("%#x is in no function", addr)
	}
	scope := fn
	if in := fn.innermost(addr); in != nil {
		scope = in
	}
	return f.placeOf(scope, fn, addr), nil
}

// FunctionAt returns the function whose own code begins at an address, by any name.
func (f *File) FunctionAt(addr uint64) (p *Place, err error) {
	defer guard(&err)
	if f.fromBTF {
		return nil, noDWARF("an address")
	}
	f.left = bounded.EntriesRead
	if h := f.unitOf(addr); h != nil {
		u, err := f.unit(h)
		if err != nil {
			return nil, err
		}
		if fn := u.functionAt(addr); fn != nil {
			if at, ok := fn.entry(); ok && at == addr {
				return f.placeOf(fn, fn, addr), nil
			}
		}
	}
	return nil, notFound("no function begins at %#x", addr)
}

// Outer is the function that has the code, without what is inlined into it.
func (p *Place) Outer() string {
	if p.fn == nil {
		return p.Function
	}
	return p.fn.name()
}

// InOnePiece reports a function whose code begins at one address and is not split.
func (p *Place) InOnePiece() bool { return p.fn != nil && p.fn.Val(dwarf.AttrLowpc) != nil }

// Tail reports the beginning of the rest of a function whose own beginning is inlined: no call by
// the function's name reaches it.
func (p *Place) Tail() bool { return !p.Inlined && p.Offset == 0 && isRest(p.Symbol) }

// isRest reports a symbol that the compiler gives to the rest of a function.
func isRest(symbol string) bool { return strings.Contains(symbol, ".part.") }

// Described reports whether the debugging information has the function whose place it is.
func (p *Place) Described() bool { return p.scope != nil || p.variables != nil || p.returns != nil }

// Declaration returns the file and line at which the source declares the place's function; of an
// assembly function, the line of its first instruction.
func (p *Place) Declaration() (file string, line int) {
	if p.scope == nil {
		return "", 0
	}
	if file, line = p.scope.declared(); file == "" {
		if at, ok := p.scope.entry(); ok {
			file, line, _ = p.scope.unit.rowAt(at)
		}
	}
	return file, line
}

// In reports whether its function is declared in a file, by the last parts of its path or a pattern of them.
func (p *Place) In(file string) bool {
	in, _ := p.Declaration()
	return in != "" && lastParts(file)(in)
}

// InSource is the place in the source's words: the function that has the code, and how far in it.
func (p *Place) InSource() (function string, offset uint64) {
	if p.fn == nil {
		return p.Symbol, p.Offset
	}
	entry, _ := p.fn.entry()
	return p.fn.name(), p.Addr - entry
}

// DeclaredIn is the file that declares it.
func (p *Place) DeclaredIn() string {
	if p.fn == nil {
		return ""
	}
	file, _ := p.fn.declared()
	return file
}
