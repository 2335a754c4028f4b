package main

import (
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/session"
	"kprobelab/kprobes"
	"kprobelab/watch"
	"kprobelab/x86"
)

// output receives what happens in a run, in order, and shows it.
type output interface {
	planted(p *session.Planted)
	refused(p callsyntax.Probe, err error)
	notWatched(p watch.Place, err error)
	pre(p *session.Planted, at session.Where, regs *x86.PtRegs)
	post(p *session.Planted, at session.Where, regs *x86.PtRegs)
	returned(p *session.Planted, at session.Where, value uint64, ns int64)
	watched(p *session.Planted, h *watch.Hit, regs *x86.PtRegs)
	step(at session.Where, e *kprobes.Event)
	// log is a line of the kernel log, which the subsystem or guest code wrote.
	log(from, line string)
	// traced is the file trace.
	traced(text string)
	called(task int, r *session.Result)
	failed(task int, c *session.Call, err error)
	// wrote is what a program wrote to standard output (1) or standard error (2).
	wrote(fd int, b []byte) error
	// exited is the end of a program; a negative code is of one that has not come
	// to its end.
	exited(program string, code int)
	unregistered(p *session.Planted)
	counters(list []*session.Planted)
	// flush writes what is buffered and returns the first error of writing.
	flush() error
}

var (
	_ output = (*textOutput)(nil)
	_ output = (*jsonOutput)(nil)
)
