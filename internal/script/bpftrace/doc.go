// Package bpftrace is the language of bpftrace 0.23.2: it reads scripts, checks their types,
// resolves their probes on a kernel, and compiles them to the program of package script.
//
// It must not know how a probe is planted, a machine, or an engine.
package bpftrace
