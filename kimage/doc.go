// Package kimage is the code under test: it opens a kernel image (ELF or
// bzImage, modules, a live text laid over it) or any x86-64 object, and
// answers as the booted kernel would which bytes, which symbol, which section
// and which of the kernel's own tables stand at an address, with the text as
// boot leaves it.
//
// It must not know of emulation or of probes: it says what is there, and
// others decide what may be done with it.
package kimage
