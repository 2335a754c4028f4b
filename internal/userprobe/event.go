package userprobe

import (
	"kprobelab/internal/process"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// EventKind is the kind of a step of a hit.
type EventKind int

// The steps.
const (
	// EventTrap is the int3 of a probe; EventGone the int3 of a probe that was removed.
	EventTrap EventKind = iota
	EventGone
	// EventHandler is before a consumer's handler.
	EventHandler
	// EventRemoved: no consumer wants this process, and its int3 goes.
	EventRemoved
	// EventInstance: the trampoline takes the place of the return address; EventMissed: it does not.
	EventInstance
	EventMissed
	// EventOptimized: the nop has become a call; EventCall is the system call that the call led to, EventCallEnd its end.
	EventOptimized
	EventCall
	EventCallEnd
	// EventEmulated: the kernel has emulated the instruction.
	EventEmulated
	// EventCopy: the copy in the XOL area comes next; EventNoSlot: another thread has to free a slot first.
	EventCopy
	EventNoSlot
	// EventStepped is the trap after the copy; EventLostStep an int3 that is taken for it.
	EventStepped
	EventLostStep
	// EventAborted: the copy has faulted, or a signal kills.
	EventAborted
	// EventReturn: a function has returned to the trampoline. EventReturnHandler is before a
	// consumer's handler, EventUnwound a call that has never returned, EventReturned the end of the
	// return.
	EventReturn
	EventReturnHandler
	EventUnwound
	EventReturned
	// EventResume: the program goes on.
	EventResume

	NumEventKinds
)

var eventNames = [NumEventKinds]string{
	"trap", "gone", "handler", "removed", "instance", "missed", "optimized", "call", "call end", "emulated", "copy", "no slot", "stepped",
	"lost step", "aborted", "return", "return handler", "unwound", "returned", "resume",
}

// String is the kind's word in JSON.
func (k EventKind) String() string { return eventNames[k] }

// Event is a step of a hit.
type Event struct {
	Kind EventKind
	// Step numbers the steps of a hit of one thread, from 1.
	Step int
	// PID and TID are the numbers of the process and the thread.
	PID, TID int
	// Addr is the probe's address; for a return, the function's.
	Addr x86.Addr
	// File and Offset are the probe's place, Analysis the analysis of its instruction; nil without
	// a probe.
	File     *process.File
	Offset   uint64
	Analysis *uprobes.Analysis
	// Consumer is the consumer whose handler runs.
	Consumer *Consumer
	// Slot is the address of the copy.
	Slot x86.Addr
	// Regs are the registers after the step.
	Regs *x86.PtRegs
}

// tell reports a step to OnEvent. The first step of a hit begins it.
func (k *Probes) tell(kind EventKind, u *uprobe, at x86.Addr, regs *x86.PtRegs) {
	if k.OnEvent == nil {
		return
	}
	k.event(&Event{Kind: kind, Addr: at, Regs: regs}, u)
}

// tellHandler reports a consumer's handler.
func (k *Probes) tellHandler(kind EventKind, u *uprobe, c *Consumer, at x86.Addr, regs *x86.PtRegs) {
	if k.OnEvent == nil {
		return
	}
	k.event(&Event{Kind: kind, Addr: at, Regs: regs, Consumer: c}, u)
}

// tellCopy reports the copy in a slot.
func (k *Probes) tellCopy(u *uprobe, at, slot x86.Addr, regs *x86.PtRegs) {
	if k.OnEvent == nil {
		return
	}
	k.event(&Event{Kind: EventCopy, Addr: at, Regs: regs, Slot: slot}, u)
}

func (k *Probes) event(e *Event, u *uprobe) {
	t := k.task()
	switch e.Kind {
	case EventTrap, EventGone, EventCall, EventReturn:
		t.told = 0
	}
	t.told++
	e.Step, e.PID, e.TID = t.told, k.p.PID(), k.p.TID()
	if u != nil {
		e.File, e.Offset, e.Analysis = u.file, u.offset, &u.analysis
	}
	k.OnEvent(e)
}
