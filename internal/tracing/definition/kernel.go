package definition

// Kernel answers which symbols and types the kernel has. Definitions are checked
// against it.
type Kernel interface {
	// Entry is nil where the place is a function's entry. ENOENT: nothing is
	// known there (or not yet, where the module is not loaded); EINVAL: it is
	// somewhere else in a function.
	Entry(symbol string, offset int64) error
	// Count counts the symbols with this name in the kernel and in all modules;
	// "module:name" counts in one module. loaded is false if that module is not
	// loaded.
	Count(symbol string) (n int, loaded bool)
	// Proto returns a function's prototype, false if BTF does not have it. symbol
	// may be "module:name".
	Proto(symbol string) (Proto, bool)
	// Struct returns a structure by its name, false if BTF does not have it.
	Struct(name string) (CType, bool)
	// TypeByID returns the type with this number in BTF, false if there is none.
	TypeByID(id int) (CType, bool)
}

// Proto is a function's prototype.
type Proto struct {
	Params []Param
	// Ret is nil for a function that returns nothing.
	Ret CType
}

// Param is a parameter.
type Param struct {
	Name string
	Type CType
}

// CType is a C type without qualifiers and typedefs.
type CType interface {
	// Target returns the type that a pointer points to; false if this type is no
	// pointer. Elem returns the type of an array's elements; false if this type
	// is no array.
	Target() (CType, bool)
	Elem() (CType, bool)
	// Int returns the size in bytes of an integer or an enumeration, and its
	// sign; ok is false for other types.
	Int() (size int, signed, ok bool)
	// Char reports a character type.
	Char() bool
	// Composite reports a structure or union, Member finds a member of it.
	Composite() bool
	Member(name string) (Member, bool)
}

// Member is a member of a structure or union. Offset and Bits are in bits; Bits is
// the width of a bitfield, 0 for other members.
type Member struct {
	Type         CType
	Offset, Bits int
}
