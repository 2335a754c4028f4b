// Package x86 holds the words every other package shares: the type of a guest
// virtual address, the register frame in the kernel's layout, the flag bits
// that the mechanism reads and writes, and the few bytes that it writes into
// text.
//
// It must not know anything else: it decodes nothing, has no memory, and knows
// no probes.
package x86
