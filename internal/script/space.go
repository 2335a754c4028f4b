package script

import "kprobelab/x86"

// Space is the memory to which an address belongs: the kernel's or a program's.
type Space uint8

const (
	// AnySpace is the kernel's memory or the program's; the address decides.
	AnySpace Space = iota
	// KernelSpace is the kernel's memory alone: reading an address of a program is a fault.
	KernelSpace
	// UserSpace is the memory of the current task's program.
	UserSpace
)

// UserEnd is the end of the addresses of programs.
const UserEnd = uint64(x86.UserEnd)

// Read reads memory of a context. False is a fault.
func (s Space) Read(c Context, addr uint64, b []byte) bool {
	if s == KernelSpace && addr < UserEnd {
		return false
	}
	return c.Read(addr, b, s == UserSpace)
}
