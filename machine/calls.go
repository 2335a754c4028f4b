package machine

import "kprobelab/x86"

// User is bytes that are put into user memory for a call, and passed by their address, like a
// process's argument of a system call.
type User []byte

// UserString is a NUL-terminated text for a system call.
func UserString(s string) User { return append(User(s), 0) }

// Invocation is a function of the guest to call.
type Invocation struct {
	// Func is its name, or Addr its address where Func is empty.
	Func string
	Addr x86.Addr
	// Args are as for Call.
	Args []any
}

// Invoke is an Invocation by name.
func Invoke(name string, args ...any) Invocation { return Invocation{Func: name, Args: args} }

// Result is the result of one call.
type Result struct {
	Ret uint64
	Err error
}
