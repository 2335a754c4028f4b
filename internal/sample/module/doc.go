// Package module has the kernel's sample modules (samples/kprobes), and those of an article
// of 2007 that many readers know: each is loaded into the guest kernel, plants its probe,
// handles the hits of the tasks there, and is unloaded, with its lines in the kernel's log.
//
// It must not know flags, terminals, or how an event is written; the lines'
// text is package sample's. What needs the machine is built with cgo on
// linux/amd64 only.
package module

import "kprobelab/x86"

// Event is an event in a module's run.
type Event struct {
	// Name is the kind of event: "planted", "refused", "pre", "post", "fault", "return", "log"
	// (guest code or the kernel printed), "times", "unregistered", "missed", "counters".
	Name string
	// Line is the line in the kernel's log; "" if there is none.
	Line string
	// Probe is the event's probe, nil if it has none.
	Probe *Probe
	// At is the event's place and time, nil if it has none.
	At *Place
	// Regs are the registers of a hit; they are valid during the call only.
	Regs *x86.PtRegs
	// Value is the function's result, Duration its virtual time in
	// nanoseconds; of a "return".
	Value    uint64
	Duration int64
	// Err is the refusal.
	Err error
}

// Probe is a module's probe.
type Probe struct {
	// Kind is "kprobe", "kretprobe" or "jprobe".
	Kind   string
	Symbol string
	Addr   x86.Addr
	// Hits counts the runs of its handlers (a kretprobe's: on return); Missed is nmissed.
	Hits, Missed uint64
}

// Place is the place and time of an event.
type Place struct {
	CPU, Task int
	// Comm is the task's name, current->comm.
	Comm string
	// Now is the virtual clock in nanoseconds.
	Now uint64
}

// Options are the choices of a run; the zero value of each is the sample's own.
type Options struct {
	// Symbol is the probed function.
	Symbol string
	// MaxActive is a kretprobe's pool.
	MaxActive int
	// Tasks is the number of tasks, Calls the number of calls that each makes; 0 means the
	// sample's own.
	Tasks, Calls int
	// Seed decides the random choices in what the tasks do.
	Seed int64
}
