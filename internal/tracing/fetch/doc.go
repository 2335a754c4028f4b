// Package fetch executes what a definition's arguments were read into: a hit's
// values go into a record (process_fetch_insn, store_trace_args), and a record's
// values into a line of trace. Events of the kernel and of programs have the same
// programs; where memory, symbols and the task come from is their Source.
//
// It must not know probes, nor how a record gets into a buffer.
package fetch
