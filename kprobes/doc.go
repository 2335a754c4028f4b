// Package kprobes is the subsystem: it plants probes in the text of a machine
// and runs their handlers when the machine traps, as kernel/kprobes.c and
// arch/x86/kernel/kprobes do. Registration, aggregate probes, the hit path,
// re-entry and its counters, and return probes are here.
//
// It must not know how a machine works: no Unicorn, no cgo, no trace formats.
// It drives a Machine through the interface it declares, and reads code
// through a kimage.View.
//
// A probe's life:
//
//	              RegisterKprobe            EnableKprobe
//	(none) ------------------------> armed <------------ disabled
//	   ^                              | ------------------->  |
//	   |       UnregisterKprobe       |     DisableKprobe     |
//	   +------------------------------+-----------------------+
//	                                  |     its module goes
//	                                  v
//	                                 gone (to be unregistered, nothing else)
//
// A hit, in the status words of the kernel; every CPU has one:
//
//	int3 at A --> HIT_ACTIVE --pre_handler returned 0--> HIT_SS --trap--> HIT_SSDONE --> none
//	                  |                                (or emulated,          post_handler
//	                  |                                 or boosted: none at once)
//	                  +--pre_handler returned non-zero--> none
//
//	int3 at B while any of these is under way --> REENTER: B's instruction is
//	executed, its handlers are not, its Nmissed grows; then the outer hit goes
//	on. A third level cannot be saved: it is the kernel's BUG, a *Bug here.
//
// A hit of a probe that is a jump (opt*.go; allowed by InitOptprobes, done by
// Settle) has no trap:
//
//	jmp at A --> detour buffer --> HIT_ACTIVE --> none --> the copied instructions
//
// Handlers are functions in Go, or guest code (PreCode, PostCode, HandlerCode,
// EntryCode), which Go calls (guest.go).
//
// The subsystem is not safe for concurrent use: a machine runs one CPU at a
// time, and registration happens between runs or in a handler.
package kprobes
