package losses

import (
	"slices"

	"kprobelab/errno"
	"kprobelab/x86"
)

// ring is a ring buffer, or the perf buffer of a CPU.
type ring struct {
	// queue are the records that the tool has not read, by their position.
	queue []*record
	// samples are the reserved records of a ring buffer by their address.
	samples map[x86.Addr]*record
	// position returns how far the tool has read; false if that cannot be known.
	position func() (uint64, bool)
}

// record is a record of a program.
type record struct {
	ring *ring
	e    *execution
	a    *account
	// end is a position that the tool passes when it reads the record.
	end             uint64
	submitted, gone bool
}

func (w *Watch) followBuffers() {
	if w.l.has("bpf_ringbuf.consumer_pos", "bpf_ringbuf.producer_pos", "bpf_ringbuf.mask", "bpf_ringbuf.data", "bpf_ringbuf_map.rb") {
		w.on("__bpf_ringbuf_reserve", w.reserves)
		sample := func(regs *x86.PtRegs) x86.Addr { return x86.Addr(regs.DI) }
		dynamic := func(regs *x86.PtRegs) x86.Addr { return w.o.Pointer(x86.Addr(regs.DI) + w.l["bpf_dynptr_kern.data"]) }
		w.on("bpf_ringbuf_submit", func(regs *x86.PtRegs) { w.submits(w.reserved(sample(regs))) })
		w.on("bpf_ringbuf_discard", func(regs *x86.PtRegs) { w.discards(w.reserved(sample(regs))) })
		w.on("bpf_ringbuf_submit_dynptr", func(regs *x86.PtRegs) { w.submits(w.reserved(dynamic(regs))) })
		w.on("bpf_ringbuf_discard_dynptr", func(regs *x86.PtRegs) { w.discards(w.reserved(dynamic(regs))) })
		w.on("bpf_ringbuf_output", func(regs *x86.PtRegs) {
			e := w.running()
			if e == nil {
				return
			}
			n := len(e.reserved)
			w.onReturn(regs, func(regs *x86.PtRegs) {
				if int32(regs.AX) == 0 && len(e.reserved) > n {
					w.submits(e.reserved[n])
				}
			})
		})
		w.on("ringbuf_map_free", func(regs *x86.PtRegs) {
			at := w.o.Pointer(x86.Addr(regs.DI) + w.l["bpf_ringbuf_map.rb"])
			if r := w.rings[at]; r != nil {
				w.ringEnds(r)
				delete(w.rings, at)
			}
		})
	}
	if w.l.has("perf_event.rb", "perf_buffer.head", "perf_buffer.user_page", "perf_event_mmap_page.data_tail") {
		for _, f := range []string{"bpf_perf_event_output", "bpf_perf_event_output_tp", "bpf_perf_event_output_raw_tp", "bpf_event_output"} {
			w.on(f, w.outputs)
		}
		w.on("perf_event_output", func(regs *x86.PtRegs) {
			if e := w.running(); e != nil {
				e.event = x86.Addr(regs.DI)
			}
		})
		w.on("rb_free", func(regs *x86.PtRegs) {
			if r := w.rings[x86.Addr(regs.DI)]; r != nil {
				w.ringEnds(r)
				delete(w.rings, x86.Addr(regs.DI))
			}
		})
	}
}

// reserves: __bpf_ringbuf_reserve(ring, size).
func (w *Watch) reserves(regs *x86.PtRegs) {
	e := w.running()
	if e == nil {
		return
	}
	at, size := x86.Addr(regs.DI), regs.SI
	w.onReturn(regs, func(regs *x86.PtRegs) {
		e.a.n[wanted]++
		if regs.AX == 0 {
			cause := RingFull
			if size+8 > uint64(w.o.Pointer(at+w.l["bpf_ringbuf.mask"]))+1 {
				cause = "larger than the ring buffer"
			}
			e.ringFull++
			w.lose(e.a, wanted, cause, e.task.at, &e.regs)
			return
		}
		r := w.ring(at)
		mask := uint64(w.o.Pointer(at + w.l["bpf_ringbuf.mask"]))
		head, off := uint64(w.o.Pointer(at+w.l["bpf_ringbuf.producer_pos"])), regs.AX-8-uint64(at+w.l["bpf_ringbuf.data"])
		one := &record{ring: r, e: e, a: e.a, end: head - (head-off)&mask + 8}
		r.samples[x86.Addr(regs.AX)] = one
		e.reserved = append(e.reserved, one)
	})
}

// ring is the ring buffer at an address.
func (w *Watch) ring(at x86.Addr) *ring {
	r := w.rings[at]
	if r == nil {
		r = &ring{samples: map[x86.Addr]*record{}}
		r.position = func() (uint64, bool) {
			over, has := w.l["bpf_ringbuf.overwrite_mode"]
			return uint64(w.o.Pointer(at + w.l["bpf_ringbuf.consumer_pos"])), !has || w.o.Byte(at+over) == 0
		}
		w.rings[at] = r
	}
	return r
}

// reserved is the record that was reserved at an address, by the program that runs.
func (w *Watch) reserved(at x86.Addr) *record {
	for _, r := range w.rings {
		if one := r.samples[at]; one != nil {
			return one
		}
	}
	return nil
}

// submits: a record is submitted.
func (w *Watch) submits(r *record) {
	if r == nil || r.submitted || r.gone {
		return
	}
	r.submitted = true
	r.e.records++
	r.a.n[submitted]++
	for at, one := range r.ring.samples {
		if one == r {
			delete(r.ring.samples, at)
		}
	}
	w.queue(r)
}

func (w *Watch) discards(r *record) {
	if r == nil || r.submitted || r.gone {
		return
	}
	r.gone = true
	r.e.discarded++
	w.lose(r.a, wanted, Discarded, r.e.task.at, &r.e.regs)
	for at, one := range r.ring.samples {
		if one == r {
			delete(r.ring.samples, at)
		}
	}
}

// queue adds a submitted record, and counts the ones that the tool has read by now.
func (w *Watch) queue(r *record) {
	q := r.ring
	i := len(q.queue)
	for i > 0 && q.queue[i-1].end > r.end {
		i--
	}
	q.queue = slices.Insert(q.queue, i, r)
	r.e = nil
	w.reads(q)
}

// reads counts the records that the tool has read.
func (w *Watch) reads(q *ring) {
	at, ok := q.position()
	n := 0
	for ; n < len(q.queue) && (!ok || int64(at-q.queue[n].end) >= 0); n++ {
		a := q.queue[n].a
		if ok {
			a.n[read]++
		} else {
			a.unread = "the buffer is overwritten, and does not say what was read"
		}
	}
	q.queue = q.queue[n:]
}

// ringEnds: nobody reads the buffer any more.
func (w *Watch) ringEnds(q *ring) {
	w.reads(q)
	for _, r := range q.queue {
		w.lose(r.a, submitted, Unread, 0, nil)
	}
	q.queue = nil
}

// outputs: bpf_perf_event_output(…), and its kinds.
func (w *Watch) outputs(regs *x86.PtRegs) {
	e := w.running()
	if e == nil {
		return
	}
	e.event = 0
	w.onReturn(regs, func(regs *x86.PtRegs) {
		e.a.n[wanted]++
		if err := errno.Errno(-int32(regs.AX)); err != 0 {
			cause := PerfFull
			if err != errno.ENOSPC {
				cause = PerfOther + ": " + err.Error()
				e.perfOther++
			} else {
				e.perfFull++
			}
			w.lose(e.a, wanted, cause, e.task.at, &e.regs)
			return
		}
		e.records++
		e.a.n[submitted]++
		rb := w.o.Pointer(e.event + w.l["perf_event.rb"])
		if e.event == 0 || rb == 0 {
			e.a.unread = "the buffer of its records was not seen"
			return
		}
		w.queue(&record{ring: w.perf(rb), a: e.a, end: uint64(w.o.Pointer(rb + w.l["perf_buffer.head"])), submitted: true})
	})
}

// perf is the perf buffer at an address.
func (w *Watch) perf(at x86.Addr) *ring {
	r := w.rings[at]
	if r == nil {
		r = &ring{}
		r.position = func() (uint64, bool) {
			page := w.o.Pointer(at + w.l["perf_buffer.user_page"])
			return uint64(w.o.Pointer(page + w.l["perf_event_mmap_page.data_tail"])), w.o.Word(at+w.l["perf_buffer.overwrite"]) == 0
		}
		w.rings[at] = r
	}
	return r
}

// mapUpdates are the functions of maps that the verifier makes a program's call of bpf_map_update_elem, bpf_map_push_elem.
var mapUpdates = []string{
	"bpf_map_update_elem", "bpf_map_push_elem",
	"htab_map_update_elem", "htab_lru_map_update_elem", "htab_percpu_map_update_elem", "htab_lru_percpu_map_update_elem",
	"__htab_percpu_map_update_elem", "__htab_lru_percpu_map_update_elem", "array_map_update_elem", "trie_update_elem",
	"queue_stack_map_push_elem", "bloom_map_push_elem",
}

func (w *Watch) followMaps() {
	for _, f := range mapUpdates {
		w.on(f, w.updates)
	}
}

// updates: a program puts an element into a map.
func (w *Watch) updates(regs *x86.PtRegs) {
	e := w.running()
	if e == nil || !w.inProgram(w.o.Pointer(x86.Addr(regs.SP))) {
		return
	}
	w.onReturn(regs, func(regs *x86.PtRegs) {
		switch err := errno.Errno(-int32(regs.AX)); err {
		case 0:
			e.stored++
		case errno.E2BIG, errno.ENOMEM:
			e.mapFull++
		default:
			e.mapRefused++
		}
	})
}
