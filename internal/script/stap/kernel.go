package stap

import (
	"kprobelab/internal/script/host"
)

// Kernel answers which functions, variables and types a kernel has. Probes are resolved with it. Its
// fields may be nil: a probe that needs such a field is refused by name.
type Kernel struct {
	host.Kernel
	// HasLines: Source is debugging information, not only BTF.
	HasLines bool
	// Initmem reports an address in code that the kernel frees after it has booted: .init.text, and the built-in .exit.text.
	Initmem func(addr uint64) bool
	// Syscalls are the names of the system calls that the kernel has.
	Syscalls []string
	// Exported reports whether other files can use a function.
	Exported func(name string) bool
	// Constant returns the value of an enumerator.
	Constant func(name string) (int64, bool)
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
