// Package kimage is the code under test. It opens a kernel image (ELF or bzImage,
// modules, a live text laid over it) or any x86-64 object, and gives the bytes, the
// symbol, the section and the entries of the kernel's own tables at an address as the
// booted kernel has them, with the text as boot leaves it.
//
// It must not know of emulation or of probes: other packages decide what may be done with the code.
package kimage
