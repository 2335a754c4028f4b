package source

import (
	"debug/dwarf"
	"fmt"
	"slices"
)

// Kind is a kind of type.
type Kind int

const (
	Void Kind = iota
	Base
	Pointer
	Struct
	Union
	Array
	Enum
	Function
	Typedef
	// Qualified is const, volatile and their like.
	Qualified
)

// Type is a type of C.
type Type struct {
	Kind Kind
	// Name is the source's, empty for an unnamed one; of a qualifier its word.
	Name string
	// Size is in bytes, 0 where it is not known.
	Size int64
	// Incomplete is for a structure or a union that is declared only, so that its size is not known.
	Incomplete bool
	// Signed is for a signed integer.
	Signed bool
	// Char is for a character's type.
	Char bool
	// Float is for a floating-point number.
	Float bool
	// Variadic is for a function that takes more than its parameters.
	Variadic bool
	// Count is how many elements an array has, 0 where that is not said.
	Count int64

	target  func() *Type
	members func() []Member
	values  func() []Enumerator
	params  func() []Param
}

// Member is a member of a structure or a union.
type Member struct {
	// Name is empty for an unnamed structure or union, whose members are the outer one's.
	Name string
	Type *Type
	// Offset is in bytes. A bitfield has Bits bits from bit Bit on, counted from the lowest one
	// of the word of its type there.
	Offset int64
	Bits   int
	Bit    int
	// Old is a bitfield in the words of DWARF 3.
	Old bool
}

// Enumerator is a name of an enumeration.
type Enumerator struct {
	Name  string
	Value int64
}

// Param is a parameter of a function's type.
type Param struct {
	Name string
	Type *Type
}

var void = &Type{Kind: Void, Name: "void"}

// Target is what a pointer points to, an array has as elements, a function returns, or a
// typedef and a qualifier stand for.
func (t *Type) Target() *Type {
	if t.target == nil {
		return void
	}
	if u := t.target(); u != nil {
		return u
	}
	return void
}

// Members are a structure's or a union's.
func (t *Type) Members() []Member {
	if t.members == nil {
		return nil
	}
	return t.members()
}

// Enumerators are the names of an enumeration.
func (t *Type) Enumerators() []Enumerator {
	if t.values == nil {
		return nil
	}
	return t.values()
}

// Params are a function's parameters.
func (t *Type) Params() []Param {
	if t.params == nil {
		return nil
	}
	return t.params()
}

// Real is the type without typedefs and qualifiers.
func (t *Type) Real() *Type {
	for range maxFollow {
		if t.Kind != Typedef && t.Kind != Qualified {
			break
		}
		t = t.Target()
	}
	return t
}

// Unqualified is the type without qualifiers.
func (t *Type) Unqualified() *Type {
	for range maxFollow {
		if t.Kind != Qualified {
			break
		}
		t = t.Target()
	}
	return t
}

// Composite reports a structure or a union.
func (t *Type) Composite() bool { return t.Kind == Struct || t.Kind == Union }

// Member finds a member by its name, those of unnamed ones in it included.
func (t *Type) Member(name string) (Member, bool) { return t.member(name, 0) }

func (t *Type) member(name string, depth int) (Member, bool) {
	if depth > maxFollow || name == "" {
		return Member{}, false
	}
	for _, m := range t.Members() {
		if m.Name == name {
			return m, true
		}
		if m.Name != "" || m.Type == nil {
			continue
		}
		if in, ok := m.Type.Real().member(name, depth+1); ok {
			in.Offset += m.Offset
			return in, true
		}
	}
	return Member{}, false
}

// String is the type as a person writes it.
func (t *Type) String() string { return t.text(0) }

func (t *Type) text(depth int) string {
	if depth > maxFollow {
		return "…"
	}
	named := func(word string) string {
		if t.Name == "" {
			return word + " {…}"
		}
		return word + " " + t.Name
	}
	switch t.Kind {
	case Pointer:
		return t.Target().text(depth+1) + "*"
	case Array:
		if t.Count == 0 {
			return t.Target().text(depth+1) + "[]"
		}
		return fmt.Sprintf("%s[%d]", t.Target().text(depth+1), t.Count)
	case Struct:
		return named("struct")
	case Union:
		return named("union")
	case Enum:
		return named("enum")
	case Function:
		return "function"
	case Qualified:
		return t.Target().text(depth + 1)
	}
	return t.Name
}

// typeOf is the type of a variable, a member or a function's result; nil where it is
// void.
func (u *Unit) typeOf(n *node) *Type {
	v, at := n.integrate(dwarf.AttrType)
	off, ok := v.(dwarf.Offset)
	if !ok {
		return void
	}
	target := at.unit.node(off)
	if target == nil {
		return void
	}
	return target.asType()
}

// qualifiers are the words of C.
var qualifiers = map[dwarf.Tag]string{
	dwarf.TagConstType: "const", dwarf.TagVolatileType: "volatile", dwarf.TagRestrictType: "restrict", dwarf.TagAtomicType: "_Atomic",
}

// asType is the type that an entry describes.
func (n *node) asType() *Type {
	t := &Type{Name: n.name()}
	t.Size, _ = n.number(dwarf.AttrByteSize)
	t.target = func() *Type { return n.unit.typeOf(n) }
	switch n.Tag {
	case dwarf.TagBaseType:
		enc, _ := n.number(dwarf.AttrEncoding)
		const signed, signedChar, unsignedChar, signedFixed, float, utf = 5, 6, 8, 0xd, 4, 0x10
		t.Kind, t.Signed = Base, enc == signed || enc == signedChar || enc == signedFixed
		t.Char = enc == signedChar || enc == unsignedChar || enc == utf
		t.Float = enc == float
	case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		t.Kind = Pointer
		if t.Size == 0 {
			t.Size = 8
		}
	case dwarf.TagStructType, dwarf.TagClassType:
		t.Kind, t.members, t.Incomplete = Struct, n.memberList, n.Val(dwarf.AttrDeclaration) != nil
	case dwarf.TagUnionType:
		t.Kind, t.members, t.Incomplete = Union, n.memberList, n.Val(dwarf.AttrDeclaration) != nil
	case dwarf.TagArrayType:
		t.Kind = Array
		t.Count = n.count()
		if t.Size == 0 {
			t.Size = t.Count * t.Target().size(0)
		}
	case dwarf.TagEnumerationType:
		t.Kind, t.values = Enum, n.enumerators
		if u := n.unit.typeOf(n); u != void {
			t.Signed = u.Real().Signed
		}
	case dwarf.TagSubroutineType, dwarf.TagSubprogram:
		t.Kind, t.params = Function, n.paramList
		t.Variadic = slices.ContainsFunc(n.children, func(c *node) bool { return c.Tag == dwarf.TagUnspecifiedParameters })
	case dwarf.TagTypedef:
		t.Kind = Typedef
		t.Size = t.size(0)
	case dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType, dwarf.TagSharedType, dwarf.TagAtomicType:
		t.Kind, t.Name = Qualified, qualifiers[n.Tag]
		t.Size = t.size(0)
	default:
		return void
	}
	return t
}

// size is a type's size, which typedefs and qualifiers take from what they stand for.
func (t *Type) size(depth int) int64 {
	if t.Size != 0 || t.Kind != Typedef && t.Kind != Qualified || depth > maxFollow {
		return t.Size
	}
	return t.Target().size(depth + 1)
}

// count is how many elements an array of one or more dimensions has.
func (n *node) count() int64 {
	total := int64(1)
	some := false
	for _, c := range n.children {
		if c.Tag != dwarf.TagSubrangeType {
			continue
		}
		size, ok := c.number(dwarf.AttrCount)
		if !ok {
			if top, has := c.number(dwarf.AttrUpperBound); has {
				size, ok = top+1, true
			}
		}
		if !ok || size < 0 || size > 1<<32 || total > 1<<32 {
			return 0
		}
		total *= size
		some = true
	}
	if !some {
		return 0
	}
	return total
}

func (n *node) memberList() []Member {
	var out []Member
	for _, c := range n.children {
		if c.Tag != dwarf.TagMember {
			continue
		}
		m := Member{Name: c.name(), Type: c.unit.typeOf(c)}
		if n.Tag != dwarf.TagUnionType {
			m.Offset = c.memberOffset()
		}
		if bits, ok := c.number(dwarf.AttrBitSize); ok && bits > 0 && bits <= 64 {
			m.Bits = int(bits)
			m.place(c)
		}
		out = append(out, m)
	}
	return out
}

// place says where a bitfield is: DWARF 4 and later count its bits from the structure's
// start, before that from the highest bit of its word.
func (m *Member) place(c *node) {
	word := m.Type.Real().Size * 8
	if word <= 0 {
		return
	}
	if at, ok := c.number(dwarf.AttrDataBitOffset); ok && at >= 0 {
		m.Offset, m.Bit = at/word*word/8, int(at%word)
	} else if at, ok := c.number(dwarf.AttrBitOffset); ok {
		m.Bit, m.Old = int(word-at)-m.Bits, true
	}
}

// memberOffset is a member's place in its structure.
func (n *node) memberOffset() int64 {
	switch v := n.Val(dwarf.AttrDataMemberLoc).(type) {
	case int64:
		return v
	case []byte:
		ops, known := n.unit.f.ops(n.unit.h, v)
		if known && len(ops) == 1 && ops[0].code == opPlusUconst {
			return ops[0].a
		}
	}
	return 0
}

func (n *node) enumerators() []Enumerator {
	var out []Enumerator
	for _, c := range n.children {
		if v, ok := c.number(dwarf.AttrConstValue); ok && c.Tag == dwarf.TagEnumerator {
			out = append(out, Enumerator{c.name(), v})
		}
	}
	return out
}

func (n *node) paramList() []Param {
	var out []Param
	for _, c := range n.children {
		if c.Tag == dwarf.TagFormalParameter {
			out = append(out, Param{c.name(), c.unit.typeOf(c)})
		}
	}
	return out
}
