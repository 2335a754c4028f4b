package host

import "kprobelab/internal/source"

// Kernel answers what probes and variables of a script mean, in every language. Its fields may be nil: a script that
// needs such a field is refused by name.
type Kernel struct {
	// Source is the kernel's debugging information, or its BTF.
	Source *source.File
	// Functions returns the functions whose names fit a pattern, with their addresses. Tracepoints does the same for tracepoints.
	Functions   func(pattern string) []Function
	Tracepoints func(pattern string) []Tracepoint
	// Program reads a program's file; nil if the guest runs no programs.
	Program func(file string) (*Program, error)
	// HZ is the number of jiffies a second.
	HZ int64
	// CPUs is the number of processors, 0 if it is not known.
	CPUs int
}
