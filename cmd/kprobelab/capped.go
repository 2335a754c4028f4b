package main

import (
	"bufio"
	"fmt"
	"io"

	"kprobelab/internal/session"
	"kprobelab/kprobes"
	"kprobelab/watch"
	"kprobelab/x86"
)

// capped is an output that leaves out what guest code can make endless, hits and
// lines of the log, once so many bytes are written. Calls and counters still come.
type capped struct {
	output
	// buffer goes to written.
	buffer  *bufio.Writer
	written *counter
	most    uint64
	omitted uint64
}

// counter counts what goes through it.
type counter struct {
	w io.Writer
	n uint64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n)
	return n, err
}

// full reports whether an event is left out, and counts it.
func (o *capped) full() bool {
	if o.written.n+uint64(o.buffer.Buffered()) < o.most {
		return false
	}
	o.omitted++
	return true
}

func (o *capped) watched(p *session.Planted, h *watch.Hit, regs *x86.PtRegs) {
	if !o.full() {
		o.output.watched(p, h, regs)
	}
}

func (o *capped) pre(p *session.Planted, at session.Where, regs *x86.PtRegs) {
	if !o.full() {
		o.output.pre(p, at, regs)
	}
}

func (o *capped) post(p *session.Planted, at session.Where, regs *x86.PtRegs) {
	if !o.full() {
		o.output.post(p, at, regs)
	}
}

func (o *capped) returned(p *session.Planted, at session.Where, value uint64, ns int64) {
	if !o.full() {
		o.output.returned(p, at, value, ns)
	}
}

func (o *capped) step(at session.Where, e *kprobes.Event) {
	if !o.full() {
		o.output.step(at, e)
	}
}

func (o *capped) log(from, line string) {
	if !o.full() {
		o.output.log(from, line)
	}
}

func (o *capped) wrote(fd int, b []byte) error {
	if o.full() {
		return nil
	}
	if _, text := o.output.(*textOutput); text || fd == 2 {
		o.written.n += uint64(len(b)) // not by the buffer
	}
	return o.output.wrote(fd, b)
}

// counters says first what is missing.
func (o *capped) counters(list []*session.Planted) {
	if o.omitted > 0 {
		o.output.log("kprobelab", fmt.Sprintf("%d events more are not printed: the output has reached --max-output %d", o.omitted, o.most))
	}
	o.output.counters(list)
}
