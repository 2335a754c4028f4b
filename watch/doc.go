// Package watch is watchpoints: handlers of the accesses that guest code makes to memory, and
// of the execution of an instruction.
//
// A Set has as many watchpoints as the machine can report. A handler gets the registers after the
// instruction that made the access, because a data breakpoint is a trap (SDM Vol. 3B, "Debug
// Exceptions"). For a watched instruction it gets the registers before it, because that is a fault.
//
// It must not know engines, probes or images.
package watch
