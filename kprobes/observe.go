package kprobes

import "kprobelab/x86"

// EventKind is the kind of a step of a hit.
type EventKind int

// The kinds, in the order of the steps of a hit.
const (
	// EventTrap: a breakpoint of a probe was hit, or the function tracer
	// called.
	EventTrap EventKind = iota
	// EventMissed: it was hit while another probe was being handled.
	EventMissed
	// EventPre: a pre handler is called.
	EventPre
	// EventSkipped: a pre handler returned non-zero.
	EventSkipped
	// EventBoost: execution goes on in the slot, and does not come back to
	// kprobes.
	EventBoost
	// EventStep: execution goes on in the slot, up to the trap after the copy.
	EventStep
	// EventStepped: the trap after the copy.
	EventStepped
	// EventEmulate: the instruction was emulated.
	EventEmulate
	// EventPost: a post handler is called.
	EventPost
	// EventResume: the hit is over.
	EventResume
	// EventFault: the copy faulted.
	EventFault
	// EventInstance: a return probe took an instance and put the trampoline
	// in the place of the return address.
	EventInstance
	// EventNoInstance: a return probe had no free instance.
	EventNoInstance
	// EventInNMI: a return probe does not follow calls whose entry is hit in an
	// NMI, which an int3 counts as.
	EventInNMI
	// EventReturn: the trampoline was reached.
	EventReturn
	// EventReturnHandler: a return probe's handler is called.
	EventReturnHandler
	// EventReturned: the trampoline goes back to the caller.
	EventReturned
	// EventJprobeReturn: a jprobe's handler has ended.
	EventJprobeReturn
	// EventOptimized: the jump of an optimized probe was taken, and its detour
	// buffer calls the handlers.
	EventOptimized
	// EventDetoured: the handlers have run; the detour buffer continues without Go.
	EventDetoured
	// EventDetour: after a breakpoint, execution goes on at the copied
	// instructions in the detour buffer.
	EventDetour
	// EventPoke: the breakpoint of a text poke was hit.
	EventPoke
	// NumEventKinds is the number of kinds.
	NumEventKinds
)

var eventNames = [NumEventKinds]string{
	"trap", "missed", "pre", "skipped", "boost", "step", "stepped", "emulate",
	"post", "resume", "fault", "instance", "no-instance", "no-instance", "return",
	"return-handler", "returned", "jprobe-return",
	"optimized", "detoured", "detour", "poke",
}

// String is a short word for the kind.
func (e EventKind) String() string { return eventNames[e] }

// Event is one step of a hit.
type Event struct {
	// Step counts from 1 in every hit; a nested hit goes on counting.
	Step int
	Kind EventKind
	// Probe is the table entry that was hit, or the member whose handler is
	// called.
	Probe *Kprobe
	// Way is the mechanism by which the CPU reached this step's handler or trap. For a later step
	// it is the way in which the hit began.
	Way  Way
	CPU  int
	Task int
	// Addr is the address that the step concerns: the probed address, the slot, or the address at
	// which execution continues.
	Addr x86.Addr
	// Regs is the frame as it is now, before a handler is called. It is valid
	// during the call only.
	Regs *x86.PtRegs
}

// Observe calls fn at every step of every hit, until it is called with nil.
// fn must not change the registers.
func (k *Kprobes) Observe(fn func(Event)) {
	k.observe = fn
	k.dropAnswers()
}

// event is small enough to be inlined: a hit without an observer pays for the
// nil check only.
func (k *Kprobes) event(cpu *cpuState, kind EventKind, way Way, p *Kprobe, at x86.Addr, regs *x86.PtRegs) {
	if k.observe != nil {
		k.emit(cpu, kind, way, p, at, regs)
	}
}

func (k *Kprobes) emit(cpu *cpuState, kind EventKind, way Way, p *Kprobe, at x86.Addr, regs *x86.PtRegs) {
	cpu.step++
	k.observe(Event{
		Step: cpu.step, Kind: kind, Way: way, Probe: p, CPU: k.m.CPU(), Task: k.m.Task(),
		Addr: at, Regs: regs,
	})
}
