// Package watch is watchpoints: handlers of the accesses that guest code makes to memory, and
// of the execution of an instruction.
//
// A Set has as many as a machine tells of. A handler gets the registers after the instruction
// that made the access, because a data breakpoint is a trap (SDM Vol. 3B, "Debug Exceptions"),
// and those before an instruction that is watched, because that is a fault.
//
// It must not know engines, probes or images.
package watch
