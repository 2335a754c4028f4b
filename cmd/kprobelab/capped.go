package main

import (
	"bufio"
	"fmt"
	"slices"

	"kprobelab/internal/session"
	"kprobelab/kprobes"
	"kprobelab/watch"
	"kprobelab/x86"
)

// capped is an output that leaves out what guest code can make endless, hits and
// lines of the log, once so many bytes are written. Calls and counters still come.
type capped struct {
	output
	// buffer goes to the first of written, which have all that is printed, as it is printed.
	buffer  *bufio.Writer
	written []*latch
	most    uint64
	omitted uint64
}

// full reports whether an event is left out, and counts it.
func (o *capped) full() bool {
	if o.bytes() < o.most {
		return false
	}
	o.omitted++
	return true
}

// bytes counts what was printed.
func (o *capped) bytes() uint64 {
	n := uint64(o.buffer.Buffered())
	for _, l := range o.written {
		n += l.n
	}
	return n
}

// pieceSize bounds the bytes of a program that are printed before the bound is looked at again. Control characters make
// them longer.
const pieceSize = 4 << 10

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
	size := pieceSize
	if _, text := o.output.(*textOutput); !text {
		size = max(len(b), 1) // an event is whole
	}
	for piece := range slices.Chunk(b, size) {
		if o.full() {
			return nil
		}
		if err := o.output.wrote(fd, piece); err != nil {
			return err
		}
	}
	return nil
}

// counters says first what is missing.
func (o *capped) counters(list []*session.Planted) {
	if o.omitted > 0 {
		o.output.log("kprobelab", fmt.Sprintf("%d events more are not printed: the output has reached --max-output %d", o.omitted, o.most))
	}
	o.output.counters(list)
}
