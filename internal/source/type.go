package source

import (
	"debug/dwarf"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// typeOf returns the type of a variable, a member or a function's result; nil for void.
func (u *Unit) typeOf(n *node) *ctype.Type {
	if target := n.typeNode(); target != nil {
		return target.asType()
	}
	return ctype.None
}

// typeNode is the entry of a variable's or a type's type, nil if it is void.
func (n *node) typeNode() *node {
	v, at := n.integrate(dwarf.AttrType)
	off, ok := v.(dwarf.Offset)
	if !ok {
		return nil
	}
	return at.unit.node(off)
}

// qualifiers are the words of C.
var qualifiers = map[dwarf.Tag]string{
	dwarf.TagConstType: "const", dwarf.TagVolatileType: "volatile", dwarf.TagRestrictType: "restrict", dwarf.TagAtomicType: "_Atomic",
}

// asType is the type that an entry describes. It is made once.
func (n *node) asType() *ctype.Type {
	if n.c == nil {
		n.c = &madeType{}
		n.c.typ = n.makeType()
	}
	return n.c.typ
}

// madeType is a type with the parts that were made so far.
type madeType struct {
	typ     *ctype.Type
	members []ctype.Member
	values  []ctype.Enumerator
	params  []ctype.Param
}

func (n *node) makeType() *ctype.Type {
	t := &ctype.Type{Name: n.name(), Parts: described{n}}
	t.Bytes, _ = n.number(dwarf.AttrByteSize)
	switch n.Tag {
	case dwarf.TagBaseType:
		enc := n.encoding()
		t.Kind, t.Signed = ctype.Base, enc.signed()
		t.Char = enc == signedChar || enc == unsignedChar || enc == utf
		t.Float = enc == float
	case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		t.Kind = ctype.Pointer
		if t.Bytes == 0 {
			t.Bytes = word
		}
	case dwarf.TagStructType, dwarf.TagClassType:
		t.Kind, t.Incomplete = ctype.Struct, n.Val(dwarf.AttrDeclaration) != nil
	case dwarf.TagUnionType:
		t.Kind, t.Incomplete = ctype.Union, n.Val(dwarf.AttrDeclaration) != nil
	case dwarf.TagArrayType:
		t.Kind, t.Count = ctype.Array, n.count()
	case dwarf.TagEnumerationType:
		t.Kind, t.Signed = ctype.Enum, n.signedEnum()
	case dwarf.TagSubroutineType, dwarf.TagSubprogram:
		t.Kind, t.Bytes = ctype.Function, 0
		t.Variadic = slices.ContainsFunc(n.children, func(c *node) bool { return c.Tag == dwarf.TagUnspecifiedParameters })
	case dwarf.TagTypedef:
		t.Kind = ctype.Typedef
	case dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType, dwarf.TagSharedType, dwarf.TagAtomicType:
		t.Kind, t.Name = ctype.Qualified, qualifiers[n.Tag]
	default:
		return ctype.None
	}
	return t
}

// encoding is the encoding of a base type's values (DWARF 5, 7.8, DW_ATE_).
type encoding int64

const (
	float        encoding = 4
	signed       encoding = 5
	signedChar   encoding = 6
	unsignedChar encoding = 8
	signedFixed  encoding = 0xd
	utf          encoding = 0x10
)

func (e encoding) signed() bool { return e == signed || e == signedChar || e == signedFixed }

func (n *node) encoding() encoding {
	e, _ := n.number(dwarf.AttrEncoding)
	return encoding(e)
}

// signedEnum reports whether the type under an enumeration is signed.
func (n *node) signedEnum() bool {
	for range bounded.TypeDepth {
		if n = n.typeNode(); n == nil || n.Tag == dwarf.TagBaseType {
			break
		}
	}
	return n != nil && n.Tag == dwarf.TagBaseType && n.encoding().signed()
}

// described are the parts of a type that an entry describes.
type described struct{ n *node }

func (d described) Target() *ctype.Type             { return d.n.unit.typeOf(d.n) }
func (d described) Members() []ctype.Member         { return kept(&d.n.c.members, d.n.memberList) }
func (d described) Enumerators() []ctype.Enumerator { return kept(&d.n.c.values, d.n.enumerators) }
func (d described) Params() []ctype.Param           { return kept(&d.n.c.params, d.n.paramList) }

// kept is a list that is made once.
func kept[T any](list *[]T, read func() []T) []T {
	if *list == nil {
		*list = read()
	}
	return *list
}

// count returns the number of elements of an array of one or more dimensions.
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

func (n *node) memberList() []ctype.Member {
	var out []ctype.Member
	for _, c := range n.children {
		if c.Tag != dwarf.TagMember {
			continue
		}
		m := ctype.Member{Name: c.name(), Type: c.unit.typeOf(c)}
		if n.Tag != dwarf.TagUnionType {
			m.Offset = c.memberOffset()
		}
		if bits, ok := c.number(dwarf.AttrBitSize); ok && bits > 0 && bits <= 64 {
			m.Bits = int(bits)
			placeBitfield(&m, c)
		}
		out = append(out, m)
	}
	return out
}

// placeBitfield sets the offset of a bitfield: DWARF 4 and later count its bits from the
// structure's start, before that from the highest bit of its word.
func placeBitfield(m *ctype.Member, c *node) {
	word := m.Type.Size() * 8
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

func (n *node) enumerators() []ctype.Enumerator {
	var out []ctype.Enumerator
	for _, c := range n.children {
		if v, ok := c.number(dwarf.AttrConstValue); ok && c.Tag == dwarf.TagEnumerator {
			out = append(out, ctype.Enumerator{Name: c.name(), Value: v})
		}
	}
	return out
}

func (n *node) paramList() []ctype.Param {
	var out []ctype.Param
	for _, c := range n.children {
		if c.Tag == dwarf.TagFormalParameter {
			out = append(out, ctype.Param{Name: c.name(), Type: c.unit.typeOf(c)})
		}
	}
	return out
}
