// Package source tells, in the words of the source, what a probe can read: the places
// of a function, a line or an inlined copy in a file's code, the variables that can be
// read there, their locations and types.
//
// It reads DWARF, or BTF if there is no DWARF. Opening a file reads its sections and
// the headers of its units; a question reads the units that contain the name in
// question, and the units to which these refer.
//
// It must not know what a probe's definition looks like: internal/perfprobe writes
// those. It knows nothing of flags, images or running code.
package source
