// Package userprobes shows that uprobes change nothing of what a program does: a C program, and
// the functions of libc that it uses, with probes on every instruction, one at a time and all at once.
//
// It exports nothing and must not be imported.
package userprobes
