package source

import (
	"debug/dwarf"
	"fmt"
	"sort"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// Variable is a variable of the source, as it is at a place.
type Variable struct {
	Name string
	Type *ctype.Type
	// Parameter: it is a function's parameter; Global: it is outside of functions.
	Parameter, Global bool
	Location          Location
	// Readable are the parts of the function, from its entry on, in which the variable has
	// a location of a list.
	Readable [][2]uint64
}

func (p *Place) variable(n *node, global bool) *Variable {
	return &Variable{
		Name: n.name(), Type: n.unit.typeOf(n), Parameter: n.Tag == dwarf.TagFormalParameter, Global: global,
		Location: p.locate(n), Readable: p.readable(n),
	}
}

func isVariable(n *node) bool {
	return n.Tag == dwarf.TagFormalParameter || n.Tag == dwarf.TagVariable
}

// Variables are the parameters and the local variables in scope, in the source's order;
// those too that the compiler has dropped.
func (p *Place) Variables() (out []*Variable, err error) {
	defer guard(&err)
	if p.scope == nil {
		return p.variables, nil
	}
	if p.scope.find(func(n *node) turn {
		if isVariable(n) && n.name() != "" {
			if len(out) == bounded.Variables {
				return stop
			}
			out = append(out, p.variable(n, false))
		}
		if n.hasPC(p.Addr) {
			return into
		}
		return over
	}) != nil {
		return nil, p.tooMany()
	}
	return out, nil
}

// tooMany is the error of a place with more variables than are read.
func (p *Place) tooMany() error {
	return fmt.Errorf("%w: %s has more than %d variables", ErrTooMuch, p.Function, bounded.Variables)
}

// Globals are the variables of the place's unit.
func (p *Place) Globals() (out []*Variable, err error) {
	defer guard(&err)
	if p.scope == nil {
		return nil, nil
	}
	p.unit().root.find(func(n *node) turn {
		if n.Tag == dwarf.TagVariable && n.name() != "" && hasPlace(n) {
			out = append(out, p.variable(n, true))
		}
		return over
	})
	sort.SliceStable(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// hasPlace reports whether an entry says anything of where a variable is.
func hasPlace(n *node) bool {
	return n.Val(dwarf.AttrExternal) != nil || n.Val(dwarf.AttrLocation) != nil || n.Val(dwarf.AttrConstValue) != nil
}

// Variable is the variable of a name that is meant at the place: a local one, or one of
// the unit's. One that the compiler has dropped is found, too, unless a global one has
// its name.
func (p *Place) Variable(name string) (v *Variable, err error) {
	defer guard(&err)
	if p.scope == nil {
		for _, v := range p.variables {
			if v.Name == name {
				return v, nil
			}
		}
		if !p.Described() {
			return nil, noDWARF(name)
		}
		return nil, notFound("%s has no parameter %s", p.Function, name)
	}
	var dropped *node
	if n := p.scope.find(func(n *node) turn {
		if isVariable(n) && n.name() == name {
			if hasPlace(n) {
				return stop
			}
			dropped = n
		}
		if n.hasPC(p.Addr) {
			return into
		}
		return over
	}); n != nil {
		return p.variable(n, false), nil
	}
	if n := p.unit().root.find(func(n *node) turn {
		if isVariable(n) && n.name() == name && hasPlace(n) {
			return stop
		}
		return over
	}); n != nil {
		return p.variable(n, true), nil
	}
	if dropped != nil {
		return p.variable(dropped, false), nil
	}
	return nil, notFound("%s has no variable %s", p.Function, name)
}

// Value is the variable as something to fetch. The error is an *Unreadable where no
// probe can.
func (v *Variable) Value() (Value, error) { return v.at(v.Location) }

// FirstValue is the variable as its location's first operation alone says.
func (v *Variable) FirstValue() (Value, error) {
	if v.Location.First != nil {
		return v.at(*v.Location.First)
	}
	return v.at(v.Location)
}

func (v *Variable) at(l Location) (Value, error) {
	out := Value{Name: v.Name, Type: v.Type}
	switch l.Kind {
	case Register, Memory:
		if l.Reg < 0 || l.Reg >= registers {
			return out, &Unreadable{fmt.Sprintf("%s is in %s, which no probe fetches", v.Name, register(l.Reg))}
		}
		out.Kind, out.Reg = Register, l.Reg
		if l.Kind == Memory {
			for _, at := range append(l.Chain[:len(l.Chain):len(l.Chain)], l.Offset) {
				out.Reads = append(out.Reads, Read{Offset: at})
			}
		}
	case Static:
		out.Kind, out.Symbol, out.Addr, out.Offset = Static, l.Symbol, l.Addr, l.Offset
	case Constant:
		out.Kind, out.Value = Constant, l.Value
	case Bytes:
		out.Kind, out.Bytes = Bytes, l.Bytes
		return out.number()
	case Address:
		of, err := v.at(*l.Of)
		of.Address = true
		return of, err
	case Dropped:
		return out, &Unreadable{v.droppedText()}
	default:
		return out, &Unreadable{v.Name + " is " + l.String() + ", which no probe fetches"}
	}
	return out, nil
}

// droppedText says in which ranges of the function a variable can be read, if anywhere.
func (v *Variable) droppedText() string {
	if len(v.Readable) == 0 {
		return v.Name + " was dropped by the compiler"
	}
	return v.Name + " was dropped by the compiler here; it is kept at " + v.Ranges()
}

// maxRanges is the most ranges that are named.
const maxRanges = 4

// Ranges are the parts of the function in which the variable can be read.
func (v *Variable) Ranges() string {
	s := ""
	for i, r := range v.Readable {
		if i == maxRanges {
			return s + ", …"
		}
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("+%d to +%d", int64(r[0]), int64(r[1]))
	}
	return s
}
