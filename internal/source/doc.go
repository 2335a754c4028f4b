// Package source answers in the words of the source what a probe can see: where a
// function, a line or an inlined copy is in a file's code, which variables can be
// read there, where they are, and of what type.
//
// It reads DWARF, or BTF where there is no more. Opening a file reads its sections
// and the headers of its units; a question reads the units that have the name in
// it, and those that they refer to.
//
// It must not know what a probe's definition looks like: internal/perfprobe writes
// those. It knows nothing of flags, images or running code.
package source
