package definition

// Kernel is what a definition is checked against.
type Kernel interface {
	// Entry is nil where the place is a function's entry. ENOENT: nothing is
	// known there (or not yet, where the module is not loaded); EINVAL: it is
	// somewhere else in a function.
	Entry(symbol string, offset int64) error
	// Count is how many symbols have the name, in the kernel and in all
	// modules; "module:name" asks in one. Loaded is false where that module is
	// not there.
	Count(symbol string) (n int, loaded bool)
	// Proto is the prototype of a function, where BTF has it. symbol may be
	// "module:name".
	Proto(symbol string) (Proto, bool)
	// Struct is a structure by its name, where BTF has it.
	Struct(name string) (CType, bool)
	// TypeByID is a type by its number in BTF.
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
	// Target is what a pointer points to, Elem the type of an array's
	// elements; false where the type is neither.
	Target() (CType, bool)
	Elem() (CType, bool)
	// Int is the size in bytes of an integer or an enumeration, and its sign.
	Int() (size int, signed, ok bool)
	// Char reports a character type.
	Char() bool
	// Composite reports a structure or union, Member finds a member of it.
	Composite() bool
	Member(name string) (Member, bool)
}

// Member is a member: its offset, and the width of a bitfield (0 for what is
// none), in bits.
type Member struct {
	Type         CType
	Offset, Bits int
}
