// Package uprobes decides how the kernel treats an instruction of a program under a uprobe: it is
// refused, emulated, or executed from the XOL area, out of line; and which corrections follow. It
// is the part of the kernel in arch/x86/kernel/uprobes.c (arch_uprobe_analyze_insn), for the
// release that a profile describes.
//
// It must not know programs, files or processes: it gets the bytes of one instruction.
//
// The rules were derived from the answers of kernels' own code: package selfcheck runs the code of
// images from 5.10 to 7.3 on the same instructions, with the same results
// (TestUprobesAgainstImage).
package uprobes
