// Package registers is the processor's four debug registers, as the kernel shares them out: which
// hardware breakpoint it refuses, with which errno, when perf_event_open,
// register_wide_hw_breakpoint or ptrace's POKEUSER request one.
//
// The kernel reserves a register before any CPU has it, by two rules
// (kernel/events/hw_breakpoint.c): a CPU needs room for its own breakpoints and for the breakpoints
// of the task that has most of them there; and a task's breakpoints need room in addition to the
// breakpoints of each CPU on which it may run. The checks and their order are the table in
// checks.go.
//
// It must not know engines, probes or images.
package registers
