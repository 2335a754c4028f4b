// Package x86 holds the words every other package shares: the type of a guest
// virtual address, the register frame in the kernel's layout, and the flag
// bits that the mechanism reads and writes.
//
// It must not know anything else: no instructions, no memory, no probes.
package x86
