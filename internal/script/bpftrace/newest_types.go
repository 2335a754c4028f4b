package bpftrace

import "fmt"

// smallest returns the type of a number that the script writes: the smallest signed one that holds it.
func smallest(n *node) *Type {
	for _, size := range [...]int{1, 2, 4, 8} {
		bits := 8*size - 1
		if n.negative && int64(n.num) >= -1<<bits || !n.negative && n.num < 1<<bits {
			return integer(size, true)
		}
	}
	return uint64T
}

// promoted returns the type that holds the values of two types: the larger one; of two signs the signed one that
// holds both, at most int64. Parts of tuples are promoted one by one.
func (t *Type) promoted(o *Type) *Type {
	switch {
	case t.Kind == TupleKind && o.Kind == TupleKind && len(t.Fields) == len(o.Fields):
		var list []*Type
		for i, f := range t.Fields {
			list = append(list, f.promoted(o.Fields[i]))
		}
		made := tuple(list)
		made.Names = t.Names
		return made
	case !t.isInt() || !o.isInt() || t.Made != None || o.Made != None || t.Bool || o.Bool || t.enum():
		return t
	case t.Signed == o.Signed:
		if o.Size > t.Size {
			return o
		}
		return t
	}
	signed, unsigned := t, o
	if o.Signed {
		signed, unsigned = o, t
	}
	return integer(min(max(signed.Size, 2*unsigned.Size), 8), true)
}

// recordText returns the name of a record's type.
func (t *Type) recordText(list []string) string {
	text := "record { "
	for i, name := range t.Names {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf(".%s = %s", name, list[i])
	}
	return text + " }"
}

// cIntegers are C's names of integers that the kernel's types have, too.
var cIntegers = map[string]*Type{
	"uint8_t": integer(1, false), "uint16_t": integer(2, false), "uint32_t": integer(4, false), "uint64_t": integer(8, false),
	"int8_t": integer(1, true), "int16_t": integer(2, true), "int32_t": integer(4, true), "int64_t": integer(8, true),
	"u8": integer(1, false), "u16": integer(2, false), "u32": integer(4, false), "u64": integer(8, false),
	"s8": integer(1, true), "s16": integer(2, true), "s32": integer(4, true), "s64": integer(8, true),
	"size_t": integer(8, false), "pid_t": integer(4, true),
}

// newestNamed returns a type that 0.27 knows by a word, or by typeof(); nil for others.
func (c *checker) newestNamed(ct *typeName) (t *Type, known bool) {
	switch {
	case ct.of != nil:
		t = c.expr(ct.of)
		if t.Kind == None {
			c.unresolved++
			return none, true
		}
		one := *t
		t = &one
	case cIntegers[ct.name] != nil:
		t = cIntegers[ct.name]
	case ct.name == "bool":
		t = boolT
	default:
		return nil, false
	}
	if ct.sized || ct.unsized {
		n := int(min(ct.size, 1<<12))
		t = &Type{Kind: Array, Elem: t, N: n, Size: n * t.Size}
	}
	for range ct.stars {
		t = &Type{Kind: Pointer, Size: 8, Elem: t}
	}
	return t, true
}
