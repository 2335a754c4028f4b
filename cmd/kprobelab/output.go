//go:build cgo && linux && amd64

package main

import (
	"kprobelab/internal/lab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// output receives what happens in a run, in order, and shows it.
type output interface {
	planted(p *lab.Planted)
	refused(p lab.Probe, err error)
	pre(p *lab.Planted, at lab.Where, regs *x86.PtRegs)
	post(p *lab.Planted, at lab.Where, regs *x86.PtRegs)
	returned(p *lab.Planted, at lab.Where, value uint64, ns int64)
	step(at lab.Where, e *kprobes.Event)
	// log is a line of the kernel log, which the subsystem or guest code wrote.
	log(from, line string)
	// traced is the file trace.
	traced(text string)
	called(task int, r *lab.Result)
	failed(task int, c *lab.Call, err error)
	unregistered(p *lab.Planted)
	counters(list []*lab.Planted)
	// flush writes what is buffered and returns the first error of writing.
	flush() error
}

var (
	_ output = (*textOutput)(nil)
	_ output = (*jsonOutput)(nil)
)
