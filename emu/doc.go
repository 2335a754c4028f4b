// Package emu makes machines (package machine) whose guest code runs on Unicorn: an
// engine of it for each CPU, memory, traps, and kernels that go on from a dump.
//
// It must not know kprobes, tasks or calls. It is the only package that uses cgo.
//
// Where the machine differs from a processor:
//   - Exceptions do not push a frame on the guest's stack; the receiver of
//     traps gets a frame from the host. There is no IDT, and no interrupt ever
//     arrives.
//   - There are no page tables: a page is mapped or not, with its
//     protections, on every CPU alike.
//   - syscall and sysenter raise #UD, hlt ends the run, and ports other than
//     the hypercalls' read as zero.
//   - A write to debug register 7 raises #UD, with the registers as they were
//     before its block: hardware breakpoints would crash the engine.
//   - The trap flag is still set in the saved flags when #DB arrives; unless
//     the receiver clears it, the next instruction is stepped too.
//
// A kernel that has booted (a Source with a Core) is different: it has page tables, an
// IDT, a user mode, interrupts, tasks and debug registers of its own. booted.go says how.
//
// # A hit, from the hook to Go and back
//
// The engine translates guest code block by block (up to the next branch) and
// runs the translations. It leaves them only through hooks, all of them C
// functions in shim_hooks.c:
//
//	on_fill      an address is not in the TLB: is the page mapped?
//	on_block     a block begins: count it, or end the run before it
//	on_translated  a block was translated: is there room for more?
//	on_code      the same for each instruction (Options.EveryInstruction)
//	on_intr      int3, #DB, and every other exception but two
//	on_invalid   #UD
//	on_out       a hypercall; ports.h has the ports
//	on_syscall   syscall, sysenter: #UD
//
// A page fault has no hook: on_fill refuses the page, and the run ends.
//
// A probe's int3 goes this way, all inside one run of the engine, because to end
// a run and start another costs more than the hit:
//
//  1. The engine meets the int3 and calls on_intr. RIP is one past the int3.
//  2. on_intr adds Options.TrapCost to the clock. If the host has
//     answered this int3 already (AnswerInt3), it changes the registers
//     accordingly and is done; no call into Go.
//  3. kpl_read_regs takes 18 registers out of the engine, in one call, into a
//     kpl_regs on the C stack. That struct is laid out as x86.PtRegs.
//  4. kplTrap is the one call into Go. It finds the engine by its number, and
//     machine.Host calls the receiver's Int3 with a pointer to those registers.
//  5. The receiver runs handlers and changes the registers. A handler may call
//     guest code: a run inside the hook, on the same engine.
//     enter_go and leave_go keep what such a run would overwrite.
//  6. Back in C, kpl_change_regs writes the registers that changed into the
//     engine, RIP last, and on_intr returns. The engine goes on at RIP.
//
// Single-stepping is a second hit: the receiver sets the trap flag in step 5,
// and after one instruction on_intr is called for #DB. If the receiver says that
// a trap is not its own, the trap ends the run as a fault.
//
// Two kinds of hit are no traps: the detour buffer of an optimized probe and the
// trampoline of a kretprobe call a stub (Callout). They push the registers as a
// frame on the guest's stack themselves. The stub is an out to KPL_PORT_CALLOUT
// and a ret; on_out finds the frame by rdi and calls kplCallout with a pointer
// into guest memory. No register has to be moved.
//
// on_out is called in the middle of a block, where the engine can neither stop
// nor change RIP. So whatever has to end the run leaves its reason there, and
// on_block ends the run before the next block.
//
// A function that the host called returns to a stub, too: KPL_PORT_RETURN ends
// the run (machine/stubs.go). All other ends of a run, faults among them, are decided in
// Go: (*cpu).start says why the run ended, run of package machine what follows.
//
// A Go panic never passes through C: each call from C into Go recovers it,
// records it as the run's error, and asks the engine to stop (machine/host.go).
package emu
