package ctype

import "strings"

// word is the size of a pointer.
const word = 8

// given are parts that were made before the type.
type given struct {
	target  *Type
	members []Member
	values  []Enumerator
}

func (g given) Target() *Type             { return g.target }
func (g given) Members() []Member         { return g.members }
func (g given) Enumerators() []Enumerator { return g.values }
func (g given) Params() []Param           { return nil }

// Field is a member of a structure that Compose lays out: a bitfield of Bits bits if Wide is set.
type Field struct {
	Name string
	Type *Type
	Wide bool
	Bits int
}

// Compose lays out a structure or a union as C does (System V ABI, x86-64, 3.1.2).
func Compose(kind Kind, name string, fields []Field) *Type {
	var members []Member
	var at, size, most int64 = 0, 0, 1 // at is in bits
	w := Search()
	for _, f := range fields {
		a := f.Type.align(w)
		m := Member{Name: f.Name, Type: f.Type}
		if kind == Union {
			at = 0
		}
		switch unit := 8 * f.Type.Size(); {
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
	return &Type{Kind: kind, Name: name, Bytes: roundUp(size, most), Parts: given{members: members}}
}

func roundUp(n, to int64) int64 {
	if to <= 1 {
		return n
	}
	return (n + to - 1) / to * to
}

// PointerTo is a pointer to a type.
func PointerTo(t *Type) *Type { return &Type{Kind: Pointer, Bytes: word, Parts: given{target: t}} }

// ArrayOf is an array of n elements.
func ArrayOf(t *Type, n int64) *Type {
	return &Type{Kind: Array, Bytes: Product(n, t.Size()), Count: n, Parts: given{target: t}}
}

// EnumOf is an enumeration.
func EnumOf(name string, values []Enumerator) *Type {
	return &Type{Kind: Enum, Name: name, Bytes: 4, Parts: given{values: values}}
}

// Integer is an integer's type in the words of C, in any of their orders, nil for a text of other words: debugging
// information has each in one order alone, and with "int" where C leaves it out.
func Integer(text string) *Type {
	count := map[string]int{}
	for _, w := range strings.Fields(text) {
		switch w {
		case "const", "volatile":
		case "signed", "unsigned", "char", "short", "int", "long":
			count[w]++
		default:
			return nil
		}
	}
	t := &Type{Kind: Base, Bytes: 4, Name: text, Signed: count["unsigned"] == 0}
	switch {
	case len(count) == 0:
		return nil
	case count["char"] > 0:
		t.Bytes, t.Char = 1, true
	case count["short"] > 0:
		t.Bytes = 2
	case count["long"] > 0:
		t.Bytes = 8
	}
	return t
}
