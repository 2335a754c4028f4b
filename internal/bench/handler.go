package bench

import (
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// handlers are the probes of a subject, with the counters of their hits.
type handlers struct {
	kp   kprobes.Kprobe
	rp   kprobes.Kretprobe
	hits uint64
}

// pre and post are handlers that do nothing.
func (h *handlers) pre()  { h.kp.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 } }
func (h *handlers) post() { h.kp.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) {} }

// countPre and countReturn are handlers that count.
func (h *handlers) countPre() { h.kp.PreHandler = count(&h.hits) }
func (h *handlers) countReturn() {
	h.rp.Handler = func(*kprobes.Instance, *x86.PtRegs) int { h.hits++; return 0 }
}

func count(hits *uint64) kprobes.PreHandler {
	return func(*kprobes.Kprobe, *x86.PtRegs) int { *hits++; return 0 }
}
