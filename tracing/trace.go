package tracing

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/ring"
)

// traceText returns the content of the file trace: all records in the buffer of a CPU, or of all
// CPUs. The records stay in the buffer. The head counts the records of all CPUs.
func (a *traceArray) traceText(cpu int) string { return a.bufferText(a.ring, cpu) }

// bufferText returns the same text of any buffer; the snapshot is read by it, too.
func (a *traceArray) bufferText(r *ring.Buffer, cpu int) string {
	var b strings.Builder
	a.traceHead(&b, r)
	overruns := false
	for cpu := range r.CPUs() {
		overruns = overruns || r.Stats(cpu).Overrun > 0
	}
	started := make([]bool, r.CPUs())
	it, buf := r.Iterate(cpu), []byte(nil)
	for n := 0; ; n++ {
		r, ok := it.Next(buf)
		if !ok {
			return b.String()
		}
		b.WriteString(r.LostLine())
		if overruns && !a.options.noAnnotate && !started[r.CPU] && n > 0 {
			fmt.Fprintf(&b, "##### CPU %d buffer started ####\n", r.CPU)
		}
		started[r.CPU] = true
		a.line(&b, &r)
		buf = r.Data
	}
}

// traceNode is the file trace of a CPU, or of all. Truncation empties the buffer.
func (a *traceArray) traceNode(cpu int, clear func() error) *node {
	n := &node{name: "trace", mode: modeWrite, read: func() string { return a.traceText(cpu) }, write: discard, trunc: clear}
	n.open = func(flag int) Handle {
		h := &textHandle{t: a.t, n: n, flag: flag}
		if !a.options.pauseOnTrace || !wants(flag, os.O_RDONLY) {
			return h
		}
		a.paused++
		return &pausingHandle{textHandle: h, a: a}
	}
	return n
}

// pausingHandle stops the trace until it is closed.
type pausingHandle struct {
	*textHandle
	a    *traceArray
	once sync.Once
}

// Close lets the trace go on.
func (h *pausingHandle) Close() error {
	h.once.Do(func() {
		h.t.mu.Lock()
		defer h.t.mu.Unlock()
		h.a.paused--
	})
	return h.textHandle.Close()
}

func (a *traceArray) traceHead(b *strings.Builder, r *ring.Buffer) {
	b.WriteString("# tracer: " + a.tracer + "\n#\n")
	if a.options.noContext {
		return
	}
	in, written := r.Counts()
	fmt.Fprintf(b, "# entries-in-buffer/entries-written: %d/%d   #P:%d\n#\n", in, written, r.CPUs())
	if a.options.noIRQInfo {
		b.WriteString(event.HeadPlain)
		return
	}
	b.WriteString(event.Head(a.t.c))
}

// pipeHandle is trace_pipe: it takes the records out of the buffer as lines.
type pipeHandle struct {
	*consumer
	// rest is the part of a line that did not fit into the last read.
	rest []byte
	buf  []byte
	// seen: something was read. If tracing is off, the file then ends.
	seen bool
}

// newPipe opens it. The tracing's mu must be held.
func newPipe(a *traceArray, cpu int) *pipeHandle {
	h := &pipeHandle{consumer: newConsumer(a, cpu)}
	h.read, h.ended = h.take, h.atEnd
	return h
}

// atEnd: tracing is off and something was read (tracing_wait_pipe), or the
// buffer has gone.
func (h *pipeHandle) atEnd() bool {
	h.a.t.mu.Lock()
	defer h.a.t.mu.Unlock()
	return h.a.closed || !h.a.on && h.seen
}

// take formats records until b is full.
func (h *pipeHandle) take(b []byte) int {
	h.a.t.mu.Lock()
	defer h.a.t.mu.Unlock()
	n := copy(b, h.rest)
	h.rest = h.rest[n:]
	for n < len(b) {
		r, ok := h.a.ring.Consume(h.cpu, h.buf)
		if !ok {
			break
		}
		h.buf = r.Data
		var s strings.Builder
		s.WriteString(r.LostLine())
		h.a.line(&s, &r)
		used := copy(b[n:], s.String())
		h.rest = append(h.rest[:0], s.String()[used:]...)
		n += used
	}
	h.seen = h.seen || n > 0
	return n
}
