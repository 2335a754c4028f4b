// Package userprobe plants uprobes and uretprobes in a process, as kernel/events/uprobes.c does: an
// int3 in the process's own copy of the page, the instruction emulated or executed from the XOL
// area, a trampoline in place of a return address, reference counters. Package uprobes decides how
// an instruction is treated. Its events follow uprobe_events: definitions, the lines of trace,
// uprobe_profile.
//
// It must not know what the handlers do, nor command lines.
package userprobe
