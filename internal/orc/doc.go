// Package orc walks a kernel's stack by the tables that objtool made of its code, as
// the kernel's own ORC unwinder does (arch/x86/kernel/unwind_orc.c).
//
// It must not know whose stack it is, nor how memory is read.
package orc
