package host

import "kprobelab/internal/source"

// Kernel is what scripts of every language are resolved with. Its fields may be nil: what needs them is then refused by
// name.
type Kernel struct {
	// Source is the debugging information, or BTF.
	Source *source.File
	// Functions are the functions whose names fit a pattern, with their addresses; Tracepoints are tracepoints.
	Functions   func(pattern string) []Function
	Tracepoints func(pattern string) []Tracepoint
	// Program is a file of programs' code; nil where no programs run.
	Program func(file string) (*Program, error)
	// HZ is how many jiffies a second has.
	HZ int64
}
