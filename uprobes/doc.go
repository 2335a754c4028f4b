// Package uprobes decides what becomes of an instruction of a program under a uprobe:
// refused, emulated, or executed from the XOL area, out of line; and what has to be put
// right after that. It is the part of the kernel that is in arch/x86/kernel/uprobes.c
// (arch_uprobe_analyze_insn), for the release that a profile describes.
//
// It must not know programs, files or processes: it gets the bytes of one instruction.
//
// The rules were read off the answers of kernels' own code: images from 5.10 to 7.3 are asked
// about the same instructions by package selfcheck, and say the same (TestUprobesAgainstImage).
package uprobes
