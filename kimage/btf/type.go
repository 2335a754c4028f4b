package btf

import "kprobelab/internal/ctype"

// Type is a C type from BTF, without its qualifiers and typedefs.
// The zero Type is void.
type Type struct{ t *ctype.Type }

func typeOf(t *ctype.Type) Type {
	if t = t.Real(); t.Kind == ctype.Void {
		return Type{}
	}
	return Type{t}
}

// is reports a type of a kind that is described whole.
func (t Type) is(k ctype.Kind) bool { return t.t != nil && t.t.Kind == k && !t.t.Incomplete }

// ProtoTypes returns the types of a function's parameters and of its result, which
// match Proto's; false if BTF does not have the function.
func (t *Types) ProtoTypes(name string) (params []Type, ret Type, ok bool) {
	f, ok := t.function(name)
	if !ok {
		return nil, Type{}, false
	}
	for _, p := range f.Proto.Params() {
		params = append(params, typeOf(p.Type))
	}
	if f.Proto.Variadic {
		params = append(params, Type{})
	}
	return params, typeOf(f.Proto.Target()), true
}

// Target returns the type that a pointer points to; false if the type is no pointer.
func (t Type) Target() (Type, bool) {
	if !t.is(ctype.Pointer) {
		return Type{}, false
	}
	return typeOf(t.t.Target()), true
}

// Int is the size in bytes of an integer or an enumeration, and whether it is
// signed; ok is false for other types.
func (t Type) Int() (size int, signed, ok bool) {
	switch {
	case t.is(ctype.Base) && !t.t.Float:
		return int(t.t.Bytes), t.t.Signed, true
	case t.is(ctype.Enum):
		return int(t.t.Bytes), true, true
	}
	return 0, false, false
}

// Char reports a character type: a byte that is not signed, for a kernel's char
// has no sign, or char itself.
func (t Type) Char() bool {
	return t.is(ctype.Base) && !t.t.Float && t.t.Bytes == 1 && (!t.t.Signed || t.t.Name == "char")
}

// Elem is the type of an array's elements, and whether the type is an array.
func (t Type) Elem() (Type, bool) {
	if !t.is(ctype.Array) {
		return Type{}, false
	}
	return typeOf(t.t.Target()), true
}

// Composite reports a structure or union.
func (t Type) Composite() bool { return t.is(ctype.Struct) || t.is(ctype.Union) }

// Size is the type's size in bytes, 0 if it has none.
func (t Type) Size() int {
	if t.t == nil {
		return 0
	}
	return int(t.t.Size())
}

// Member is a member of a structure or union.
type Member struct {
	Type Type
	// Offset is in bits from the start; Bits is the width of a bitfield, 0 if it is no bitfield.
	Offset, Bits int
}

// Member finds a member of a structure or union, also in its unnamed members.
func (t Type) Member(name string) (Member, bool) {
	if !t.Composite() {
		return Member{}, false
	}
	m, ok := t.t.Member(name)
	if !ok {
		return Member{}, false
	}
	return Member{Type: typeOf(m.Type), Offset: int(m.Offset)*8 + m.Bit, Bits: m.Bits}, true
}

// Struct finds a structure by its name, of several the first one.
func (t *Types) Struct(name string) (Type, bool) {
	for _, b := range t.files {
		for found := range b.Named(name) {
			if one := (Type{found}); one.is(ctype.Struct) {
				return one, true
			}
		}
	}
	return Type{}, false
}

// TypeByID is a type of the kernel's BTF, without its modules', by its number
// there.
func (t *Types) TypeByID(id int) (Type, bool) {
	if len(t.files) == 0 || id < 1 || !t.files[0].Has(id) {
		return Type{}, false
	}
	return typeOf(t.files[0].Type(id)), true
}
