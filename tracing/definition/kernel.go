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
}

// Proto is a function's prototype.
type Proto struct {
	Params []Param
	Ret    Param
}

// Param is a parameter, or a result.
type Param struct {
	Name string
	// Size in bytes, 0 for void.
	Size            int
	Signed, Pointer bool
	// Integer is true for integers and enumerations, whose type is inferred.
	Integer bool
}
