package host

import "kprobelab/internal/script"

// System is what functions of a language ask of the machine while a handler runs.
type System interface {
	script.Context
	// Probe is the one whose handler runs.
	Probe() *Probe
	// Task is something of the task that runs, Comm its name.
	Task(what TaskWord) int64
	Comm(dst []byte) []byte
	CPU() int
	// Now is the time since boot, Wall since 1970, both in nanoseconds.
	Now() uint64
	Wall() uint64
	// Symbol is the symbol that has an address.
	Symbol(addr uint64) (name, module string, offset, size uint64, ok bool)
	// Nearest is the last symbol of code at or before an address, however far away: of several at one address
	// the last one that the kernel lists.
	Nearest(addr uint64) (name string, offset uint64, ok bool)
	// UserSymbol is the function of a process that has an address, and its file; probed is for an address that a
	// probe of a program has seen.
	UserSymbol(pid int64, probed bool, addr uint64) (name, file string, offset uint64, ok bool)
	// Stack are the addresses of the functions that are being called, of the probe first, as two ways find
	// them one after the other: exact of them the first way, and those from its last on the second. They are
	// good until the next call.
	Stack() (frames []uint64, exact int)
	// Callchain is the stack that perf finds for a BPF program, of the kernel or of the program:
	// at most so many addresses. It is good until the next call.
	Callchain(user bool, most int) []uint64
	// Exit ends the script after the handler, with a code.
	Exit(code int64)
	// Log prints a line for the user, not for the script's output.
	Log(line string)
	// Target is the process of -c.
	Target() int64
	HZ() int64
	// Address is where the probe was hit; User says that the program itself was interrupted.
	Address() uint64
	User() bool
}

// TaskWord is something that a task has.
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
