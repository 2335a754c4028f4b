// Package emu is the machine: one guest address space, CPUs (an engine of
// Unicorn each), tasks and their stacks, traps, text poking, a virtual clock.
//
// It must not know kprobes: who receives the traps, and why text is poked, is
// the caller's affair. It is the only package that uses cgo.
//
// One CPU runs at a time, chosen by a seeded scheduler, so that a run repeats
// to the byte. A Machine is for one goroutine at a time; many machines may
// run in parallel.
//
// A CPU sees changed text only after its translations are dropped, which
// stands for the stale instruction fetch that the kernel's text_poke ends
// with its sync-core IPI: see PokeText, PokeTextNoSync and SyncCore.
//
// What the machine does otherwise than a processor:
//   - Exceptions do not push a frame on the guest's stack; the receiver of
//     traps gets one from the host. There is no IDT, and no interrupt ever
//     arrives.
//   - There are no page tables: a page is mapped or not, with its
//     protections, on every CPU alike.
//   - syscall and sysenter raise #UD, hlt ends the run, and ports other than
//     the hypercalls' read as zero.
//   - A write to debug register 7 raises #UD, with the registers as they were
//     before its block: hardware breakpoints would crash the engine.
//   - The trap flag is still set in the saved flags when #DB arrives; the
//     receiver clears it, or the next instruction is stepped too.
package emu
