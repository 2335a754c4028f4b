// Package lab wires the parts of a run together: an image, the machine that
// executes it, and the kprobes subsystem on that machine; and it makes calls
// of guest functions as people write them.
//
// It must not know flags, terminals or how anything is printed. What needs
// the machine is built with cgo on linux/amd64 only; opening an image is
// always there.
package lab
