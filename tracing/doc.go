// Package tracing is kprobe events: probes that people define in text, and the files with their
// results. Definitions become kprobes and kretprobes of the kprobes package, hits become records in
// a ring buffer, and records become the lines of the file trace.
//
// It must not know how probes work, nor which machine runs: it registers through package kprobes
// and reads memory through the interface Machine. Nor does it know who calls guest code, mounts the
// files or prints them.
package tracing
