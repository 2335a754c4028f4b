package kimage

import "github.com/cilium/ebpf/btf"

// Type is a C type from the image's BTF, without its qualifiers and typedefs.
// The zero Type is void.
type Type struct{ t btf.Type }

func typeOf(t btf.Type) Type { return Type{btf.UnderlyingType(t)} }

// ProtoTypes are the types of a function's parameters and of its result, and
// whether BTF knows the function; they go with what Proto returns.
func (t *Types) ProtoTypes(name string) (params []Type, ret Type, ok bool) {
	f := t.funcProto(name)
	if f == nil {
		return nil, Type{}, false
	}
	for _, p := range f.Params {
		params = append(params, typeOf(p.Type))
	}
	return params, typeOf(f.Return), true
}

// Target is what a pointer points to, and whether the type is one.
func (t Type) Target() (Type, bool) {
	p, ok := t.t.(*btf.Pointer)
	if !ok {
		return Type{}, false
	}
	return typeOf(p.Target), true
}

// Int is the size in bytes of an integer or an enumeration, and whether it is
// signed; ok is false for other types.
func (t Type) Int() (size int, signed, ok bool) {
	switch u := t.t.(type) {
	case *btf.Int:
		return int(u.Size), u.Encoding == btf.Signed, true
	case *btf.Enum:
		return int(u.Size), true, true
	}
	return 0, false, false
}

// Char reports a character type: a byte that is not signed, for a kernel's char
// has no sign, or char itself.
func (t Type) Char() bool {
	u, ok := t.t.(*btf.Int)
	return ok && u.Size == 1 && (u.Encoding != btf.Signed || u.Name == "char")
}

// Elem is the type of an array's elements, and whether the type is an array.
func (t Type) Elem() (Type, bool) {
	a, ok := t.t.(*btf.Array)
	if !ok {
		return Type{}, false
	}
	return typeOf(a.Type), true
}

// Composite reports a structure or union.
func (t Type) Composite() bool {
	switch t.t.(type) {
	case *btf.Struct, *btf.Union:
		return true
	}
	return false
}

// Size is the type's size in bytes, 0 where it has none.
func (t Type) Size() int {
	if t.t == nil {
		return 0
	}
	n, err := btf.Sizeof(t.t)
	if err != nil {
		return 0
	}
	return n
}

// Member is a member of a structure or union.
type Member struct {
	Type Type
	// Offset is in bits from the start, Bits the width of a bitfield, 0 for
	// what is none.
	Offset, Bits int
}

// Member finds a member of a structure or union, those of unnamed ones in it
// included.
func (t Type) Member(name string) (Member, bool) { return member(t.t, name, 0) }

func member(t btf.Type, name string, depth int) (Member, bool) {
	var list []btf.Member
	switch u := t.(type) {
	case *btf.Struct:
		list = u.Members
	case *btf.Union:
		list = u.Members
	}
	for _, m := range list {
		if m.Name == name && name != "" {
			return Member{Type: typeOf(m.Type), Offset: int(m.Offset), Bits: int(m.BitfieldSize)}, true
		}
		if m.Name != "" || depth > maxTypeDepth {
			continue
		}
		if in, ok := member(btf.UnderlyingType(m.Type), name, depth+1); ok {
			in.Offset += int(m.Offset)
			return in, true
		}
	}
	return Member{}, false
}

// Struct finds a structure by its name, of several the first one.
func (t *Types) Struct(name string) (Type, bool) {
	for i := range t.specs {
		for _, found := range t.named(i, name) {
			if s, ok := found.(*btf.Struct); ok {
				return Type{s}, true
			}
		}
	}
	return Type{}, false
}

// TypeByID is a type of the kernel's BTF, without its modules', by its number
// there.
func (t *Types) TypeByID(id int) (Type, bool) {
	if len(t.specs) == 0 || id < 1 {
		return Type{}, false
	}
	found, err := t.specs[0].TypeByID(btf.TypeID(id))
	if err != nil {
		return Type{}, false
	}
	return typeOf(found), true
}
