package event

// Filters holds the features of a release's filter language that 4.4 does not have, and the facts
// about the kernel that a filter needs. profile.Tracing has the releases.
type Filters struct {
	// RefuseOpenEnd refuses a filter that ends in an operator.
	RefuseOpenEnd bool
	// Functions: FIELD.function is compared with the bounds of a function.
	Functions bool
	// CPUSets: a value can be a list of CPUs, CPUS{0,2-3}.
	CPUSets bool
	// Stack: stacktrace is a field, which no value equals.
	Stack bool
	// NoTasks: the running task is unknown, so comm and common_pid cannot be compared.
	NoTasks bool
	// CPUs is the number of possible CPUs.
	CPUs int
	// Lookup is the address of a symbol; nil where no symbols are known.
	Lookup func(name string) (addr uint64, ok bool)
	// Bounds returns the beginning and the end of the symbol that covers an address; nil
	// if no symbols are known.
	Bounds func(addr uint64) (from, to uint64, ok bool)
}
