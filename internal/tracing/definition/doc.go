// Package definition reads the language of kprobe_events: a line of text
// becomes a Definition, with a small program for each argument that says how
// to fetch it (kernel/trace/trace_probe.c, struct fetch_insn). A refusal is an
// *Error with the errno, the message and the place of the caret that the
// kernel would log.
//
// It must not know registered probes, memory, or records: it asks a Kernel which
// symbols and types there are, and nothing else. It changes nothing.
package definition
