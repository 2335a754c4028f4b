package host

import "kprobelab/internal/script"

// System is the machine at a hit, as the functions of a language's library read it.
type System interface {
	script.Context
	// Probe returns the probe whose handler runs.
	Probe() *Probe
	// Task returns a number of the running task; Comm appends the task's name to dst.
	Task(what TaskWord) int64
	Comm(dst []byte) []byte
	CPU() int
	// Now is the time since boot, Wall since 1970, both in nanoseconds.
	Now() uint64
	Wall() uint64
	// Symbol returns the symbol around an address of the kernel, with its size and the address's offset in it.
	Symbol(addr uint64) (name, module string, offset, size uint64, ok bool)
	// Nearest returns the last symbol of code at or before an address, however far away. If several symbols have
	// one address it returns the last one in the kernel's list.
	Nearest(addr uint64) (name string, offset uint64, ok bool)
	// UserSymbol returns the function around an address of the process pid, and its file. probed: a probe of a
	// program has seen the address, so the process need not run any more.
	UserSymbol(pid int64, probed bool, addr uint64) (name, file string, offset uint64, ok bool)
	// Stack returns the address of the probe and the return addresses from there outwards. stap walks by DWARF
	// first: that part has the first exact addresses. Where DWARF ends stap lets the kernel walk: that part has the
	// other addresses, and begins again with the last exact one. The slice is valid until the next call.
	Stack() (frames []uint64, exact int)
	// Callchain returns the stack that perf finds for a BPF program: the kernel's, or with user the program's. It
	// has at most most addresses, and is valid until the next call.
	Callchain(user bool, most int) []uint64
	// Exit ends the script after the handler, with a code.
	Exit(code int64)
	// Log prints a line for the user, not for the script's output.
	Log(line string)
	// Target returns the process ID of the program of -c, 0 if it is not known.
	Target() int64
	HZ() int64
	// Address returns the address of the probe that was hit. If the probe has no address it returns that of the
	// interrupted instruction, or 0 if there are no registers. User reports whether the hit interrupted a program,
	// and not the kernel.
	Address() uint64
	User() bool
}

// TaskWord selects a number of a task, such as its process ID.
type TaskWord uint8

const (
	TaskStruct TaskWord = iota
	PID
	TID
	PPID
	UID
	EUID
	GID
	EGID
	TaskWords
)
