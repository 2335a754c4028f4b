// Package userprobes shows that uprobes do not change a program's behaviour: a C program, and the
// functions of libc that it uses, with probes on every instruction, one at a time and all at once.
//
// It exports nothing and must not be imported.
package userprobes
