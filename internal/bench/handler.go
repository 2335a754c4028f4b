package bench

import (
	"encoding/binary"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// handlers are the probes of a subject, with what counts their hits.
type handlers struct {
	s  *subject
	kp kprobes.Kprobe
	rp kprobes.Kretprobe
	// pre and post are handlers that do nothing, countPre and countReturn ones
	// that count.
	pre, post, countPre, countReturn func()
	hits                             func() uint64
}

func (s *subject) handlers(where string) (*handlers, error) {
	h := &handlers{s: s}
	if where == HandlerGuest {
		return h, h.inGuest()
	}
	h.inGo()
	return h, nil
}

func (h *handlers) inGo() {
	hits := new(uint64)
	h.hits = func() uint64 { return *hits }
	h.pre = func() { h.kp.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 } }
	h.post = func() { h.kp.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) {} }
	h.countPre = func() { h.kp.PreHandler = count(hits) }
	h.countReturn = func() {
		h.rp.Handler = func(*kprobes.Instance, *x86.PtRegs) int { *hits++; return 0 }
	}
}

func count(hits *uint64) kprobes.PreHandler {
	return func(*kprobes.Kprobe, *x86.PtRegs) int { *hits++; return 0 }
}

// guestHandlers are handlers in guest code, in this order. The counters are
// the records' own words.
var guestHandlers = [...][]byte{
	{0x31, 0xc0, opRet},                                     // xor %eax,%eax; ret
	{0x48, 0xff, 0x47, 0x30, 0x31, 0xc0, opRet},             // incq 48(%rdi); xor %eax,%eax; ret
	{0x48, 0x8b, 0x47, 0x10, 0x48, 0xff, 0x40, 0x30, opRet}, // mov 16(%rdi),%rax; incq 48(%rax); ret
}

func (h *handlers) inGuest() error {
	var at [len(guestHandlers)]x86.Addr
	for i, code := range guestHandlers {
		var err error
		if at[i], err = h.s.code("bench_handler", code); err != nil {
			return err
		}
	}
	h.pre = func() { h.kp.PreCode = at[0] }
	h.post = func() { h.kp.PostCode = at[0] }
	h.countPre = func() { h.kp.PreCode, h.hits = at[1], h.counter(&h.kp) }
	h.countReturn = func() { h.rp.HandlerCode, h.hits = at[2], h.counter(&h.rp.KP) }
	h.hits = func() uint64 { return 0 }
	return nil
}

// counter reads a probe's own word.
func (h *handlers) counter(p *kprobes.Kprobe) func() uint64 {
	return func() uint64 {
		var b [8]byte
		if p.Record == 0 || h.s.Machine.ReadMem(p.Record+kprobes.RecordOwn, b[:]) != nil {
			return 0
		}
		return binary.LittleEndian.Uint64(b[:])
	}
}
