package registers

import "kprobelab/x86"

// Count is the number of debug registers with an address: DR0 to DR3 (HBP_NUM).
const Count = 4

// Any is every CPU, or no task.
const Any = -1

// Values of bp_type (linux/hw_breakpoint.h).
const (
	Empty   uint32 = 0
	Read    uint32 = 1
	Write   uint32 = 2
	Execute uint32 = 4
	Invalid        = Read | Write | Execute
)

// ExecuteLen is bp_len of Execute: sizeof(long).
const ExecuteLen = 8

// Attr is a request, in the terms of struct perf_event_attr.
type Attr struct {
	Type          uint32 // bp_type
	Addr          x86.Addr
	Len           uint64
	ExcludeKernel bool
	Disabled      bool
}

// Event is a breakpoint of a task, of a CPU, or of a task on one CPU.
type Event struct {
	Attr
	// Task is Any for a CPU's breakpoint, CPU is Any for a breakpoint on all CPUs.
	Task, CPU int
}

// covers reports whether it may need a register of a CPU.
func (e *Event) covers(cpu int) bool { return e.CPU == Any || e.CPU == cpu }
