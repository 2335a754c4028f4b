// Package module is the kernel's sample modules (samples/kprobes), and those of
// an article of 2007 that many readers know: each is loaded into the guest
// kernel, plants its probe, sees what the tasks there do, and is unloaded,
// with the lines that it has in the kernel's log.
//
// It must not know flags, terminals, or how an event is written; the lines'
// text is package sample's. What needs the machine is built with cgo on
// linux/amd64 only.
package module

import "kprobelab/x86"

// Event is what a module has to say.
type Event struct {
	// Name is what happened: "planted", "refused", "pre", "post", "fault",
	// "return", "log" (guest code or the kernel printed), "times",
	// "unregistered", "missed", "counters".
	Name string
	// Line is the line in the kernel's log; empty where there is none.
	Line string
	// Probe is the probe that it is about, nil for none.
	Probe *Probe
	// At is where it happened, nil for none.
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
	// Hits is how often its handlers ran (a kretprobe's: on return), and
	// Missed is nmissed.
	Hits, Missed uint64
}

// Place is where and when something happened.
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
	// Tasks is how many tasks there are, Calls how many calls each makes.
	Tasks, Calls int
	// Seed decides what is left to chance in what the tasks do.
	Seed int64
}
