package run

import (
	"errors"

	"kprobelab"
	"kprobelab/internal/userprobe"
	"kprobelab/kprobes"
	"kprobelab/kprobes/pool"
	"kprobelab/tracing"
	"kprobelab/uprobes"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Event is something that happened: one of the types below.
type Event interface{ event() }

// Sink takes events as they happen. What an event points to holds until Put returns. An error of Put ends the program that has
// written the output of a Wrote; the error of other events is the sink's to keep.
type Sink interface {
	Put(e Event) error
}

// Func is a function as a Sink.
type Func func(e Event) error

// Put implements Sink.
func (f Func) Put(e Event) error { return f(e) }

// Tee gives each event to each sink.
func Tee(sinks ...Sink) Sink {
	return Func(func(e Event) error {
		var err error
		for _, s := range sinks {
			err = errors.Join(err, s.Put(e))
		}
		return err
	})
}

// Probe is the probe or watchpoint that an event is about.
type Probe struct {
	// Kind is kprobe, kretprobe, uprobe, uretprobe or watchpoint.
	Kind string
	// Text is the probe as it was asked for: SYM+0xOFF, or of a uprobe GROUP/EVENT.
	Text string
	// Name is the symbol as the kernel's sample modules print it.
	Name string
	// Addr is the probed address, nil where there is none, as of a uprobe, which has one in each process.
	Addr *x86.Addr
	// Watched is the watchpoint, nil of other kinds.
	Watched *watch.Watchpoint
	// Hits counts the hits whose handlers ran, Missed the missed ones (nmissed). Both are set in Counters. Missed is nil for
	// a watchpoint of a program, which cannot miss a hit.
	Hits   uint64
	Missed *uint64
	// Pool is the account of a kretprobe's instances, in Removed and Counters; nil of other probes.
	Pool *pool.Usage
	// Definition is a uprobe's in the language of uprobe_events; Hazard names the harm that it does although the kernel
	// accepts it, "" for none.
	Definition string
	Hazard     uprobes.Hazard
}

// Returns reports whether the probe is of a function's return.
func (p *Probe) Returns() bool { return p.Kind == "kretprobe" || p.Kind == "uretprobe" }

// Where is the CPU, the task and the time of an event.
type Where struct {
	// CPU and Task are the numbers of a kernel's. Of a program, Task is the thread.
	CPU, Task int
	// PID is the process of a program without a kernel, 0 on a kernel.
	PID int
	// Now is the virtual clock in nanoseconds.
	Now uint64
}

type (
	// Harmful: the kernel accepts the probe, which then does harm. Hazard is the harm's name, Effect its kind, Says a sentence.
	Harmful struct{ Probe, Hazard, Effect, Says string }
	// Started is the first event once the machine is there, and before anything is executed. Before it come
	// Harmful, and the Planted and RefusedProbe of uprobes in a program without a kernel.
	Started struct {
		// Lab is the kernel's machine, nil of a program without a kernel.
		Lab *kprobelab.Lab
		// Name is the image's, or the program's.
		Name  string
		Names Names
	}
	// Planted: a probe is in the text.
	Planted struct{ Probe Probe }
	// RefusedProbe: the kernel refused the probe. Log is the kernel's message in its log or error_log, "" for none.
	RefusedProbe struct {
		Probe Probe
		Err   error
		Log   string
	}
	// Hit: a kprobe's pre handler runs, its post handler, or the handler of a uprobe.
	Hit struct {
		Probe *Probe
		Where Where
		Regs  *x86.PtRegs
		Post  bool
		// Text is the line that the kernel writes to trace about the hit, and Args are the arguments in it; both are empty
		// for a kprobe.
		Text string
		Args []Arg
	}
	// Returned: the handler of a return probe runs.
	Returned struct {
		Probe *Probe
		Where Where
		// Value is the function's return value. Duration is the virtual time since its entry in nanoseconds, -1 if no probe
		// took the time at entry.
		Value    uint64
		Duration int64
		// Regs, Text, Args, and the address To that the function returns to, are a uprobe's.
		Regs *x86.PtRegs
		Text string
		Args []Arg
		To   x86.Addr
	}
	// Accessed: the watchpoint was hit.
	Accessed struct {
		Probe *Probe
		Where Where
		Hit   *watch.Hit
		Regs  *x86.PtRegs
		of    describer
	}
	// Step is one step of what the kernel does at a hit. Number counts from 1 in every hit.
	Step struct {
		Where  Where
		Number int
		// Addr is the address that the step concerns.
		Addr x86.Addr
		// Words are the step in words, Text has its kind before them.
		Words, Text string
		// Regs are the registers after the step, nil where it has none.
		Regs *x86.PtRegs
		// Returns are the events whose return a call begins to wait for, or waits for no more.
		Returns []string
		hit     *kprobes.Event
		user    *userprobe.Event
		of      describer
	}
	// TracingOpened: events of tracing are about to be defined.
	TracingOpened struct{ Tracing *tracing.Tracing }
	// Recorded: an event of tracing was written to the ring buffer.
	Recorded struct{ Record *tracing.Record }
	// Logged is a line of a log: From is kernel, console (of guest code), dmesg (of a booted kernel) or kprobelab.
	Logged struct{ From, Line string }
	// Traced is the content of the file trace at the end.
	Traced struct{ Text string }
	// Called: a call has returned.
	Called struct {
		Task int
		Call string
		// Value is rax, Result the same as a person reads it.
		Value   uint64
		Result  string
		Buffers []Buffer
	}
	// Failed: a call did not return, or a program did not end. Task is -1 of a program, and Err is nil.
	Failed struct {
		Task int
		Call string
		Err  error
	}
	// Wrote: a program has written Data to standard output (FD 1) or standard error (FD 2).
	Wrote struct {
		FD   int
		Data []byte
		// All is whether it is all that the program wrote there, but for the last Lost bytes.
		All  bool
		Lost int
	}
	// Exited: a program has ended.
	Exited struct {
		Program string
		Code    int
	}
	// Removed: a probe is taken away. Its Missed is read for the last time.
	Removed struct{ Probe Probe }
	// Done: the last call or program has ended, and no probe is in the text.
	Done struct{}
	// Counters are the probes' counts, in the order in which they were planted. Text is a program's uprobe_profile, with
	// what became of its system calls.
	Counters struct {
		Probes []Probe
		Text   string
	}
)

// Arg is an argument of an event, as trace has it.
type Arg struct{ Name, Value string }

// Names name addresses and tasks while the machine is there.
type Names struct {
	Place func(x86.Addr) string
	// Task is the process number and the name of a task or thread; nil where the kernel has none.
	Task func(n int) (pid int, comm string)
}

// Buffer is a buffer argument as the call left it.
type Buffer struct {
	// Arg is the argument's position, from 0; Text is the argument as it was written.
	Arg  int
	Text string
	Data []byte
}

func (Harmful) event()       {}
func (Started) event()       {}
func (Planted) event()       {}
func (RefusedProbe) event()  {}
func (Hit) event()           {}
func (Returned) event()      {}
func (Accessed) event()      {}
func (Step) event()          {}
func (TracingOpened) event() {}
func (Recorded) event()      {}
func (Logged) event()        {}
func (Traced) event()        {}
func (Called) event()        {}
func (Failed) event()        {}
func (Wrote) event()         {}
func (Exited) event()        {}
func (Removed) event()       {}
func (Done) event()          {}
func (Counters) event()      {}
