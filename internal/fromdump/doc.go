// Package fromdump finds in a dump what an engine needs to let its kernel go on: the counters, the
// timer's vector, the registers of a task's user mode, room for the machine's own memory; and keeps
// what both engines count alike: the numbers of tasks, and what a seed varies.
//
// It must not know an engine.
package fromdump
