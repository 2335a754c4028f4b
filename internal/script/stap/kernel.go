package stap

import (
	"kprobelab/internal/script/host"
)

// Kernel is what probes are resolved with. Its fields may be nil: what needs them is then
// refused by name.
type Kernel struct {
	host.Kernel
	// HasLines says that Source is more than BTF.
	HasLines bool
	// Initmem reports an address in what the kernel frees when it has booted: .init.text, and .exit.text of what is built in.
	Initmem func(addr uint64) bool
	// Syscalls are the names of the system calls that the kernel has.
	Syscalls []string
	// Exported reports whether other files can use a function.
	Exported func(name string) bool
	// Constant is the value of a name of an enumeration.
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
