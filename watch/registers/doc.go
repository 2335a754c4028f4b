// Package registers is the processor's four debug registers, as the kernel shares them out: which
// hardware breakpoint it refuses, with which errno, when it is asked for one by perf_event_open,
// register_wide_hw_breakpoint or ptrace's POKEUSER.
//
// The kernel reserves a register before any CPU has it, by two rules (kernel/events/hw_breakpoint.c):
// a CPU needs room for its own breakpoints and those of whichever task has most of them there, and a
// task's breakpoints need room beside those of each CPU that it may run on. What it looks at, and in
// which order, is the table in checks.go.
//
// It must not know engines, probes or images.
package registers
