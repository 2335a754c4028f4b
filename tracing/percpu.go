package tracing

import (
	"sync"

	"kprobelab/errno"
	"kprobelab/internal/tracing/ring"
)

// perCPU are the folders per_cpu/cpuN.
func (a *traceArray) perCPU() []*node {
	var list []*node
	for cpu := range a.ring.CPUs() {
		list = append(list, folder("cpu"+itoa(cpu), func() []*node { return a.cpuNodes(cpu) }))
	}
	return list
}

// cpuNodes are the files of one CPU's buffer.
func (a *traceArray) cpuNodes(cpu int) []*node {
	return []*node{
		a.traceNode(cpu, func() error { a.ring.ResetCPU(cpu); return nil }),
		a.snapshotNode(cpu),
		{name: "trace_pipe", mode: modeRead, open: func(int) Handle { return newPipe(a, cpu) }},
		{name: "trace_pipe_raw", mode: modeRead, open: func(int) Handle { return newRaw(a, cpu) }},
		text("stats", func() string { return a.statsText(cpu) }),
		setting("buffer_size_kb", func() string { return itoa(a.ring.Size(cpu)>>10) + "\n" }, func(s string) error {
			return a.writeSize(cpu, s)
		}),
	}
}

// writeSize sets the size of the buffer of a CPU, or of all, in KiB.
func (a *traceArray) writeSize(cpu int, s string) error {
	v, err := decimal(s)
	switch {
	case err != nil:
		return err
	case v == 0:
		return errno.EINVAL
	case v > ring.MaxSize>>10:
		return errno.ENOMEM
	}
	return a.resize(a.ring, cpu, int(v)<<10)
}

// rawHandle is trace_pipe_raw: it takes the pages out of the buffer as they
// are, one after the other.
type rawHandle struct {
	*consumer
	// page is the page that is being read, from at on. mu protects both.
	mu   sync.Mutex
	page [ring.PageSize]byte
	at   int
}

// newRaw opens it. The tracing's mu must be held.
func newRaw(a *traceArray, cpu int) *rawHandle {
	h := &rawHandle{consumer: newConsumer(a, cpu), at: ring.PageSize}
	h.read, h.ended = h.take, h.gone
	return h
}

func (h *rawHandle) gone() bool {
	h.a.t.mu.Lock()
	defer h.a.t.mu.Unlock()
	return h.a.closed
}

// take reads of one page at most.
func (h *rawHandle) take(b []byte) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == len(h.page) && len(b) > 0 && h.a.ring.ReadPage(h.cpu, &h.page) {
		h.at = 0
	}
	n := copy(b, h.page[h.at:])
	h.at += n
	return n
}
