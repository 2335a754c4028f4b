package explore

import (
	"slices"

	"kprobelab/kprobes"
)

// shared hashes the state that tasks share. all covers the text, the old text that CPUs may have
// fetched, the subsystem and the holder of the mutex; hits covers the values that a handler may
// keep in a variable, changes the values that an action may keep.
func (r *run) shared() (all, changes, hits uint64) {
	w := r.w
	w.k.DigestHits(r.id, func(v uint64) { hits = mix(hits, v) })
	changes = hits
	w.k.Digest(r.id, func(v uint64) { changes = mix(changes, v) })
	h := mix(changes, hashBytes(w.mem0[:w.end]))
	for i := range w.cpus {
		c := &w.cpus[i]
		sum := uint64(c.pending)
		for _, s := range c.stale {
			sum += mix(uint64(s.at), uint64(s.b)) | 1
		}
		h = mix(h, sum)
	}
	w.k.DigestCPUs(r.id, func(v uint64) { h = mix(h, v) })
	for _, p := range r.probes {
		h = mix(h, uint64(p.kp.Flags)<<16|uint64(p.missed())<<32|uint64(p.hits)<<1|uint64(p.returns)<<24)
		if r.freed[p.kp] {
			h = mix(h, 1)
		}
	}
	for _, s := range r.slots {
		h = mix(h, uint64(s))
	}
	for _, m := range w.s.Modules {
		bits := uint64(1)
		for i, on := range []bool{r.going[m.Name], w.gone[m.Name], w.unlabelled == m.Name, r.refs == m.Name} {
			if on {
				bits |= 2 << i
			}
		}
		h = mix(h, bits)
	}
	if r.text != nil {
		h = mix(h, uint64(r.text.n+100))
	}
	if r.holder != nil {
		h = mix(h, uint64(r.holder.n+1))
	}
	return h, changes, hits
}

// id numbers the scenario's probes from 1.
func (r *run) id(kp *kprobes.Kprobe) uint64 {
	for i, p := range r.probes {
		if p.kp == kp {
			return uint64(i + 1)
		}
	}
	return 0
}

// remember updates the hashes after a task's step. The values that a task keeps in
// variables of Go, inside a handler or an action, follow from the shared state that it
// has read since the beginning of the handler or action.
func (r *run) remember(t *task, kind string) {
	shared, changes, hits := r.shared()
	if t != nil {
		switch {
		case t.trapped+t.preempt > 0:
			t.local = mix(t.local, hashString(kind))
			if r.touches(varProbe) {
				t.local = mix(t.local, hits)
			}
		case !t.calling && (r.holder == t || t.waitsUnlocked):
			t.local = mix(mix(t.local, hashString(kind)), changes)
		default:
			t.local = 0
		}
		t.own = t.hashOwn()
	}
	r.state = shared
	for _, o := range r.tasks {
		r.state = mix(mix(r.state, o.own), o.steady())
	}
}

func (r *run) touches(v int) bool {
	return slices.ContainsFunc(r.touched, func(t touch) bool { return t.v == v })
}

// hashOwn returns the hash of the task's own state.
func (t *task) hashOwn() uint64 {
	h := mix(t.local, uint64(t.action)<<32|uint64(t.trapped)<<16|uint64(t.preempt)<<8)
	h = mix(mix(h, hashString(t.wait.kind)), uint64(t.wait.at))
	flags := uint64(0)
	for i, on := range []bool{t.done, t.begun, t.calling, t.inExec, t.exited} {
		if on {
			flags |= 1 << i
		}
	}
	h = mix(h, flags|uint64(len(t.asked))<<8|t.calls<<16)
	h = mix(h, uint64(t.traps)<<32|uint64(t.detours)<<16|uint64(t.pokes))
	if !t.calling {
		return h
	}
	for _, v := range words(&t.regs) {
		h = mix(h, *v)
	}
	if base := uint64(stackSize*(t.n+1)) - 64; t.regs.SP >= uint64(stackBase) {
		if sp := t.regs.SP - uint64(stackBase); sp <= base {
			h = mix(h, hashBytes(t.w.stack[sp:base]))
		}
	}
	for _, p := range t.w.run.probes {
		h = mix(h, uint64(t.call.hits[p])<<8|uint64(t.call.passes[p.at])<<16|uint64(t.call.missed[p.at])<<24|uint64(t.call.returns[p])<<32|uint64(t.call.posts[p])<<40)
	}
	return h
}

// steady has two bits for each probe: nothing has changed it since the call under way
// began, and it was on then.
func (t *task) steady() uint64 {
	bits := uint64(0)
	if !t.calling {
		return bits
	}
	for i, p := range t.w.run.probes {
		if t.call.epochs[p] == p.epoch {
			bits |= 1 << (2 * i)
		}
		if t.call.on[p] {
			bits |= 2 << (2 * i)
		}
	}
	return bits
}
