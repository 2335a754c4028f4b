// Package transparent runs a program with uprobes on its instructions, and says what a run shows
// from outside and in memory, to be compared with a run without probes.
//
// It must not know who compares.
package transparent
