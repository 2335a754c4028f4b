// Package ctype has the types of C: their sizes, members and names. It reads BTF; package source
// makes types of DWARF, and the script languages define their own.
//
// A type is made one level at a time: its parts are made at their first use. A file may describe
// types that lead to themselves, so code that follows one type to another stops at the bounds of
// package bounded.
//
// It must not know what the types are for.
package ctype

import "kprobelab/internal/bounded"

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

// Type is a type of C. Two types of one file are the same if their addresses are.
type Type struct {
	Kind Kind
	// Name is the source's, empty for an unnamed type; a qualifier's is its word.
	Name string
	// Bytes is the size that the source gives, 0 if it gives none. Size is the type's size.
	Bytes int64
	// Incomplete is set if a structure or a union is declared only, so that its size is not known.
	Incomplete bool
	// Signed is set for a signed integer.
	Signed bool
	// Char is set for a character's type.
	Char bool
	// Float is set for a floating-point number.
	Float bool
	// Variadic is set if a function takes more than its parameters.
	Variadic bool
	// Count is the number of an array's elements, 0 if it is not given.
	Count int64
	// ID is the type's number in BTF, 0 for a type of another source.
	ID int
	// Parts returns the other types. It is nil if there are none.
	Parts Parts
}

// Parts are the types that a type is made of. The lists must not be changed.
type Parts interface {
	// Target is the type that a pointer points to, an array has as elements, a function returns, or a typedef and a
	// qualifier stand for; nil is void.
	Target() *Type
	// Members are the members of a structure or a union.
	Members() []Member
	// Enumerators are the names of an enumeration.
	Enumerators() []Enumerator
	// Params are the parameters of a function.
	Params() []Param
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
	// Old is set for a bitfield in the words of DWARF 3.
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

// None is void.
var None = &Type{Kind: Void, Name: "void"}

// Endless is the type at the end of a chain of more than bounded.TypeDepth types: it has no size and no parts.
var Endless = &Type{Kind: Void, Name: "…"}

// Target is the type that a pointer points to, an array has as elements, a function returns, or a
// typedef and a qualifier stand for.
func (t *Type) Target() *Type {
	if t.Parts != nil {
		if u := t.Parts.Target(); u != nil {
			return u
		}
	}
	return None
}

// Members are the members of a structure or a union.
func (t *Type) Members() []Member {
	if t.Parts == nil || !t.Composite() {
		return nil
	}
	return t.Parts.Members()
}

// Enumerators are the names of an enumeration.
func (t *Type) Enumerators() []Enumerator {
	if t.Parts == nil || t.Kind != Enum {
		return nil
	}
	return t.Parts.Enumerators()
}

// Params are the parameters of a function.
func (t *Type) Params() []Param {
	if t.Parts == nil || t.Kind != Function {
		return nil
	}
	return t.Parts.Params()
}

// Signature is the parameters of a function, of a pointer to one, or of a typedef of these.
func (t *Type) Signature() []Param {
	t = t.Real()
	if t.Kind == Pointer {
		t = t.Target().Real()
	}
	return t.Params()
}

// Real is the type without typedefs and qualifiers.
func (t *Type) Real() *Type { return t.past(Typedef, Qualified) }

// Unqualified is the type without qualifiers.
func (t *Type) Unqualified() *Type { return t.past(Qualified, Qualified) }

// past follows a chain of two kinds to its end.
func (t *Type) past(a, b Kind) *Type {
	for range bounded.TypeDepth {
		if t.Kind != a && t.Kind != b {
			return t
		}
		t = t.Target()
	}
	return Endless
}

// Composite reports a structure or a union.
func (t *Type) Composite() bool { return t.Kind == Struct || t.Kind == Union }

// Size is the size in bytes, 0 if it is not known. Typedefs and qualifiers have the size of the type that they stand for,
// an array that of its elements.
func (t *Type) Size() int64 {
	total := int64(1)
	for range bounded.TypeDepth {
		switch {
		case t.Bytes != 0:
			return Product(total, t.Bytes)
		case t.Kind == Array:
			total = Product(total, t.Count)
		case t.Kind != Typedef && t.Kind != Qualified:
			return 0
		}
		t = t.Target()
	}
	return 0
}

// Product multiplies two sizes. It is 0 if that is more than any memory has.
func Product(a, b int64) int64 {
	const most = 1 << 47
	if a <= 0 || b <= 0 || a > most/b {
		return 0
	}
	return a * b
}

// align is the alignment that a type has by the rules (System V ABI, x86-64, 3.1.2); an attribute that says otherwise is not known.
func (t *Type) align(w *Walk) int64 {
	if !w.Enter() {
		return 1
	}
	defer w.Leave()
	t = t.Real()
	switch t.Kind {
	case Array:
		return t.Target().align(w)
	case Struct, Union:
		most := int64(1)
		for _, m := range t.Members() {
			most = max(most, m.Type.align(w))
		}
		return most
	}
	return min(max(t.Size(), 1), 16)
}
