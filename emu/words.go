package emu

import "kprobelab/machine"

// What package machine has, by the names that this package's users know.
type (
	// Machine is a guest: memory, CPUs, tasks.
	Machine = machine.Machine
	// Task is a thread of the guest kernel.
	Task = machine.Task
	// Buf is guest memory that outlives a Call.
	Buf = machine.Buf
	// Snapshot is the machine's memory at a moment between runs.
	Snapshot = machine.Snapshot
	// Source is what a machine needs of its image.
	Source = machine.Source
	// Options are the choices of a machine.
	Options = machine.Options
	// Invocation is a function of the guest to call.
	Invocation = machine.Invocation
	// Result is that of one invocation.
	Result = machine.Result
	// User is bytes that are put into user memory for a call.
	User = machine.User
	// Fault is an exception that nobody took.
	Fault = machine.Fault
	// Access is what a page fault was about.
	Access = machine.Access
	// BudgetError is a run that used up its instructions, or its time.
	BudgetError = machine.BudgetError
)

// Sizes of the guest.
const (
	// PageSize is that of a page, in bytes.
	PageSize = machine.PageSize
	// ThreadSize is the size of a task's stack, in bytes.
	ThreadSize = machine.ThreadSize
	// MaxTasks is how many tasks a machine can have alive.
	MaxTasks = machine.MaxTasks
)

// DefaultCPUModel is the model that a machine emulates by default.
const DefaultCPUModel = machine.DefaultCPUModel

// The kinds of access.
const (
	AccessNone  = machine.AccessNone
	AccessRead  = machine.AccessRead
	AccessWrite = machine.AccessWrite
	AccessFetch = machine.AccessFetch
)

// Vectors of exceptions.
const (
	VectorDivide  = machine.VectorDivide
	VectorDebug   = machine.VectorDebug
	VectorInt3    = machine.VectorInt3
	VectorInvalid = machine.VectorInvalid
	VectorDouble  = machine.VectorDouble
	VectorGP      = machine.VectorGP
	VectorPage    = machine.VectorPage
)

// Classes of failure, for errors.Is.
var (
	ErrClosed     = machine.ErrClosed
	ErrNoSymbol   = machine.ErrNoSymbol
	ErrAmbiguous  = machine.ErrAmbiguous
	ErrDeadlock   = machine.ErrDeadlock
	ErrHalted     = machine.ErrHalted
	ErrTaskExited = machine.ErrTaskExited
	ErrAtomic     = machine.ErrAtomic
	ErrBudget     = machine.ErrBudget
	ErrNested     = machine.ErrNested
	ErrShared     = machine.ErrShared
	ErrCrowded    = machine.ErrCrowded
	ErrNoMemory   = machine.ErrNoMemory
	ErrLayout     = machine.ErrLayout
	ErrHandler    = machine.ErrHandler
	ErrEngine     = machine.ErrEngine
	ErrLost       = machine.ErrLost
)

// Invoke is an Invocation by name.
func Invoke(name string, args ...any) Invocation { return machine.Invoke(name, args...) }

// UserString is a NUL-terminated text for a system call.
func UserString(s string) User { return machine.UserString(s) }
