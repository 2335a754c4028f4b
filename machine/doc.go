// Package machine is a guest: one address space, CPUs, tasks and their stacks, a scheduler, calls,
// heap, text poking, a virtual clock. An Engine, below it, executes the guest's code: package emu
// has Unicorn, package interp an engine in Go. Both give their machines the same order of events,
// so the same seed makes the same run.
//
// It must not know how an engine works, nor kprobes: its user chooses the receiver of the traps and
// pokes text.
//
// One CPU runs at a time. A seeded scheduler chooses it, so that a run repeats to the byte. A
// Machine is for one goroutine at a time; many machines may run in parallel.
//
// A CPU may execute the old bytes of changed text until its translations of the text are dropped.
// That models a processor's stale instruction fetch, which the kernel's text_poke ends with its
// sync-core IPI: see PokeText, PokeTextNoSync and SyncCore.
package machine
