package source

// Field is a member of a structure that is to be laid out: a bitfield where Wide is true, of Bits
// bits.
type Field struct {
	Name string
	Type *Type
	Wide bool
	Bits int
}

// Compose lays a structure or a union out as C does (System V ABI, x86-64, 3.1.2).
func Compose(kind Kind, name string, fields []Field) *Type {
	var members []Member
	var at, size, most int64 = 0, 0, 1 // at is in bits
	for _, f := range fields {
		a := f.Type.align(0)
		m := Member{Name: f.Name, Type: f.Type}
		if kind == Union {
			at = 0
		}
		switch unit := 8 * f.Type.Real().Size; {
		case !f.Wide:
			at = roundUp(at, 8*a)
			m.Offset = at / 8
			at += unit
		case f.Bits == 0: // ends the unit
			at = roundUp(at, unit)
			continue
		default:
			if at%unit+int64(f.Bits) > unit {
				at = roundUp(at, unit)
			}
			m.Offset, m.Bit, m.Bits = at/unit*unit/8, int(at%unit), f.Bits
			at += int64(f.Bits)
		}
		most, size = max(most, a), max(size, (at+7)/8)
		if f.Name != "" || f.Type.Real().Composite() {
			members = append(members, m)
		}
	}
	return &Type{Kind: kind, Name: name, Size: roundUp(size, most), members: func() []Member { return members }}
}

func roundUp(n, to int64) int64 {
	if to <= 1 {
		return n
	}
	return (n + to - 1) / to * to
}

// align is the alignment that a type has by the rules; what attributes say otherwise is not known.
func (t *Type) align(depth int) int64 {
	t = t.Real()
	if depth > maxFollow {
		return 1
	}
	switch t.Kind {
	case Array:
		return t.Target().align(depth + 1)
	case Struct, Union:
		most := int64(1)
		for _, m := range t.Members() {
			most = max(most, m.Type.align(depth+1))
		}
		return most
	}
	return min(max(t.Size, 1), 16)
}

// ArrayOf is the type of n of these.
func ArrayOf(t *Type, n int64) *Type {
	return &Type{Kind: Array, Size: n * t.Real().Size, Count: n, target: func() *Type { return t }}
}

// EnumOf is an enumeration.
func EnumOf(name string, values []Enumerator) *Type {
	return &Type{Kind: Enum, Name: name, Size: 4, values: func() []Enumerator { return values }}
}
