package stap

import (
	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
)

// Kernel is what probes are resolved with. Its fields may be nil: what needs them is then
// refused by name.
type Kernel struct {
	// Source is the debugging information, or BTF.
	Source *source.File
	// HasLines says that Source is more than BTF.
	HasLines bool
	// Functions are the functions whose names fit a pattern, with their addresses.
	Functions func(pattern string) []Function
	// Initmem reports an address in what the kernel frees when it has booted: .init.text, and .exit.text of what is built in.
	Initmem func(addr uint64) bool
	// Tracepoints are the kernel's, by their names.
	Tracepoints func(pattern string) []Tracepoint
	// Syscalls are the names of the system calls that the kernel has.
	Syscalls []string
	// Exported reports whether other files can use a function.
	Exported func(name string) bool
	// Constant is the value of a name of an enumeration.
	Constant func(name string) (int64, bool)
	// Program is a file of programs' code; nil where no programs run.
	Program func(file string) (*host.Program, error)
	// HZ is how many jiffies a second has.
	HZ int64
}

// What the package shares with the other languages.
type (
	Function   = host.Function
	Tracepoint = host.Tracepoint
	Probe      = host.Probe
	ProbeKind  = host.ProbeKind
	Watched    = host.Watched
	System     = host.System
	TaskWord   = host.TaskWord
)

const (
	Begin  = host.Begin
	End    = host.End
	Error  = host.Error
	Never  = host.Never
	Timer  = host.Timer
	Call   = host.Call
	Return = host.Return
	Trace  = host.Trace
	Data   = host.Data
	User   = host.User

	TaskStruct = host.TaskStruct
	PID        = host.PID
	TID        = host.TID
	PPID       = host.PPID
	UID        = host.UID
	EUID       = host.EUID
	GID        = host.GID
	EGID       = host.EGID
	TaskWords  = host.TaskWords
)
