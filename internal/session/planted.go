package session

import (
	"kprobelab/internal/callsyntax"
	"kprobelab/kprobes"
	"kprobelab/kprobes/pool"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Planted is a probe in the text, and its counts.
type Planted struct {
	callsyntax.Probe
	// Name is the symbol as the sample modules print it: the requested one, or the
	// symbol that covers the address.
	Name string
	// At is the probed address.
	At x86.Addr
	// Hits counts the runs of the probe's handlers (for a return probe, the returns of
	// the function).
	Hits uint64
	// Missed is nmissed: hits without a handler, because another probe was
	// being handled or no instance was free. Unplant sets it.
	Missed uint64
	// Pool is the account of a return probe's instances, nil if the Lab keeps none. Unplant sets it.
	Pool *pool.Usage

	// Watched is the watchpoint, nil for a probe; Place is the place of its request.
	Watched *watch.Watchpoint
	Place   watch.Place

	plant plant
}

// plant is a registered probe of either kind, to be taken away again.
type plant struct {
	kp *kprobes.Kprobe
	rp *kprobes.Kretprobe
}

// String names it as the command line does.
func (p *Planted) String() string {
	if p.Watched != nil {
		return p.Place.String()
	}
	return p.Probe.String()
}

// Kind is "kprobe", "kretprobe" or "watchpoint".
func (p *Planted) Kind() string {
	if p.Watched != nil {
		return "watchpoint"
	}
	if p.Return {
		return "kretprobe"
	}
	return "kprobe"
}

// Optimized reports whether it is a kprobe that is, or is about to be, a jump.
func (p *Planted) Optimized() bool { return p.plant.kp != nil && p.plant.kp.Optimized() }

// Where is the place and time of an event.
type Where struct {
	// CPU and Task are their numbers.
	CPU, Task int
	// Now is the virtual clock in nanoseconds.
	Now uint64
}

// Handlers receive a probe's hits, on the CPU that made them; regs is valid
// during the call only.
type Handlers struct {
	Pre, Post func(p *Planted, at Where, regs *x86.PtRegs)
	// Returned gets the function's return value and the virtual time since
	// its entry in nanoseconds, -1 in kernels without entry handlers.
	Returned func(p *Planted, at Where, value uint64, ns int64)
	// Watched gets what an instruction did to a watchpoint's bytes.
	Watched func(p *Planted, h *watch.Hit, regs *x86.PtRegs)
}
