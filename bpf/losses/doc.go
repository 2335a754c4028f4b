// Package losses counts what becomes of each call of a function that a BPF program of a tool in the guest probes: a ledger
// by stage, with the cause of each difference.
//
// The guest's own code is observed while the engine executes it: the entries of the kernel's handlers, of the programs and of the
// helpers, and their returns. The guest is as without it. What cannot be observed is told as unknown, never guessed.
//
// It must not know command lines, nor where a kernel comes from.
package losses
