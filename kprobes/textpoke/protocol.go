package textpoke

// Step is one step of a change.
type Step uint8

// The steps. After a write, every CPU may still execute the bytes that it has fetched before.
const (
	// Announce adds the change to the int3 handler's list: a CPU that executes the int3 continues
	// at the change's landing.
	Announce Step = iota
	// Int3 writes cc at the first byte.
	Int3
	// Sync makes every CPU see the written bytes, and waits until each has.
	Sync
	// Tail writes the bytes after the first.
	Tail
	// First writes the first byte.
	First
	// Withdraw ends the announcement.
	Withdraw
	// Whole writes all bytes at once while no CPU runs, and has every CPU see
	// them (stop_machine).
	Whole
)

var stepNames = [...]string{"announce", "int3", "sync", "tail", "first", "withdraw", "whole"}

// String is a short word for the step.
func (s Step) String() string { return stepNames[s] }

// Protocol is the steps of a change, in their order. A batch takes each step
// for all its addresses before the next.
type Protocol []Step

// The protocols, with the reason why other CPUs are safe at A between two steps:
//
//	Optimize, the int3 of the probe is there already, and no task is inside
//	A+1 to A+4, because the worker waited until every task had scheduled:
//	Announce, Int3, Sync   a CPU that reaches A traps, and continues at the
//	                       jump's target
//	Tail, Sync             after the cc: no CPU fetches it
//	First, Sync            every CPU has seen the tail by now
//	Withdraw
//
//	Undo, e9 rel32 is there:
//	Int3, Sync             a CPU that reaches A traps, and kprobes go through
//	                       the detour (OPTIMIZED is set)
//	Tail, Sync             after the cc: no CPU fetches it
var (
	// Optimize is text_poke_bp with all its steps.
	Optimize = Protocol{Announce, Int3, Sync, Tail, Sync, First, Sync, Withdraw}
	// Undo is arch_unoptimize_kprobe from 5.8 on.
	Undo = Protocol{Int3, Sync, Tail, Sync}
	// UndoAnnounced is text_poke_bp where the new first byte is the int3 itself
	// (4.4).
	UndoAnnounced = Protocol{Announce, Int3, Sync, Tail, Sync, Withdraw}
	// Stopped is stop_machine (to 3.11).
	Stopped = Protocol{Whole}
	// Arm and Disarm write an int3, and the opcode back (text_poke,
	// text_poke_sync).
	Arm    = Protocol{First, Sync}
	Disarm = Protocol{First, Sync}
	// Batch is text_poke_bp_batch for others who change text: jump labels,
	// static calls, the function tracer.
	Batch = Protocol{Announce, Int3, Sync, Tail, Sync, First, Sync, Withdraw}
)
