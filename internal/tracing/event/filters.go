package event

// Filters is what a release's language of filters has beyond that of 4.4, and what a
// filter asks of the kernel. profile.Tracing has the releases.
type Filters struct {
	// RefuseOpenEnd refuses a filter that ends in an operator.
	RefuseOpenEnd bool
	// Functions: FIELD.function is compared with the bounds of a function.
	Functions bool
	// CPUSets: a value can be a list of CPUs, CPUS{0,2-3}.
	CPUSets bool
	// Stack: stacktrace is a field, which no value equals.
	Stack bool
	// CPUs is the number of possible CPUs.
	CPUs int
	// Lookup is the address of a symbol; nil where no symbols are known.
	Lookup func(name string) (addr uint64, ok bool)
	// Bounds are where the symbol that covers an address begins, and where it ends; nil
	// where no symbols are known.
	Bounds func(addr uint64) (from, to uint64, ok bool)
}
