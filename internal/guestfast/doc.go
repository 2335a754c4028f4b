// Package guestfast lets guest code run handlers in guest code without a call
// into Go. It is the one kprobes.FastPath: kprobes is whole without it, and with
// it a hit sees the same handlers, registers, order and counts, sooner.
//
// It must not know how a machine runs code, nor decide what a hit does: it
// repeats in machine code (testdata/guest/fastpath.S) what kprobes does in Go,
// for hits that kprobes has shown it once, and leaves all others to kprobes.
//
// # What it costs and gains
//
// A handler in guest code that Go calls is a run of the engine inside a run:
// some 4 microseconds (k-tf with a guest handler in docs/cost.md). Here it is a
// call instruction. An int3 has a gate of the machine. Without it Go would take
// the int3, send the CPU to the handler, and take a call-out after it: two calls
// into Go where a gate needs one. By the floors in docs/cost.md a third more for
// an emulated instruction.
//
// # The words
//
// Every CPU has a page of words at the same offset from its GS base.
//
//	word     value       meaning                                    written by
//	running  0           guest code may run a handler               Leave, guest code
//	         1 (busy)    Go handles a trap or a call-out            Enter
//	         a record    guest code runs a pre or post handler      a gate, guest code
//	         an instance guest code runs a return handler           guest code
//	task     a number    the task that runs                         the machine
//	arg      any         one word from guest code to a call-out,    guest code, call-outs
//	                     or its answer
//
// The machine does not preempt a CPU's task while running is above 1, and no
// other CPU or task runs inside a block of guest code (SteadyBlocks). A block
// is therefore atomic.
//
// # A hit by a jump or by the function tracer
//
//  1. The first hit goes through Go. Hit writes a route: a pair of key and
//     record in a table. The record is written before the key, so a key that is
//     found has its record.
//  2. The next hit looks its key up and, in the same block, puts the record into
//     running if running was 0. Nobody runs in between, so two tasks of a CPU
//     cannot both take it. Without a route, or while running is not 0, the
//     function jumps to its call-out and Go does all of it.
//  3. Guest code makes the frame what the handler is to see, and calls it. A hit
//     inside the handler finds running set and goes to Go: Enter says whose
//     handler runs, and kprobes counts the hit as missed.
//  4. Guest code writes 0 to running in its last block, so that nothing it reads
//     there is taken away before.
//
// # A hit by int3
//
//  1. As above, but the route is a gate of the machine for the int3's address.
//     The machine takes it while running is 0, turns interrupts off and puts the
//     record into running.
//  2. The gate's entry saves the registers and calls the pre handler. It leaves
//     the result in arg and calls out: Go goes on as after its own pre handlers,
//     and writes 0 to running. Interrupts are off until the entry's popfq.
//  3. The int3 that follows the copy has a gate too where a post handler in guest
//     code waits: Go first ends the step, then guest code calls the handler and
//     writes 0 to running.
//
// # A return
//
//  1. A route to a return probe lends guest code all free instances: a list that
//     begins in the record. From then on Go has none. An entry takes the first
//     in one block, so no two CPUs take the same.
//  2. The entry keeps the return address in the instance and puts it at the head
//     of the task's list. Only the task itself touches that list.
//  3. The return finds the newest instance and, in one block, compares its frame
//     and puts it into running if that was 0. It calls the handler, then unlinks
//     the instance and makes it free. Where the frame is another one, or is
//     shared with an older instance, Go does it: Enter has moved all that the
//     task has pending to the list of kprobes before.
//  4. An entry that finds no free instance calls out: Go lends what it has got
//     back meanwhile for a second try, or counts the return as missed.
//
// # Enter and Leave, Change
//
// Enter writes 1 to running, so that whatever guest code runs for Go leaves its
// hits to Go, and Leave puts back what was there. Change removes every route and
// gate first, so no hit takes one any more; then it takes back pending and free
// instances. A handler that guest code runs at that time, on another CPU or under
// the trap that Go handles, keeps its record, its chain and its instance: kprobes
// frees no guest memory meanwhile, chains are not overwritten, and the instance
// comes back with a later Change.
//
// A caller may put guest memory back to what it once was (emu's Restore), with old
// routes and lists in it. Then all routes are wiped and every instance comes back.
package guestfast
