package kprobes_test

import (
	"encoding/binary"
	"fmt"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// others lets both CPUs run some instructions, in the middle of a change.
func (r *optRun) others() {
	for range r.rng.IntN(6) {
		r.cpuStep(r.rng.IntN(2), false)
	}
}

func (r *optRun) steps(cpu, n int) {
	if t := r.threads[cpu]; t == nil || t.done {
		r.args[cpu] = r.rng.Uint64N(1000)
		r.begin(cpu, r.args[cpu])
	}
	for range n {
		if r.cpuStep(cpu, true) {
			return
		}
	}
}

// cpuStep executes one instruction and compares the handlers that it ran.
// strict is false in the middle of an operation, when the model is not where
// the subsystem is.
func (r *optRun) cpuStep(cpu int, strict bool) bool {
	t := r.threads[cpu]
	if t == nil || t.done {
		return true
	}
	r.ran = r.ran[:0]
	jumped := r.callouts[x86.Addr(t.regs.IP)] != nil
	at, hit := r.hitBy(t)
	done := r.step(cpu)
	if strict && hit {
		want := r.m.wants(at.Sub(r.over), jumped)
		if len(want) != len(r.ran) {
			r.fail("a hit of over+%#x ran %d handlers, not %d", at.Sub(r.over), len(r.ran), len(want))
		} else {
			for i := range want {
				if want[i] != r.ran[i] {
					r.fail("handler %d of over+%#x is another", i, at.Sub(r.over))
				}
			}
		}
	} else if strict && len(r.ran) > 0 {
		r.fail("handlers ran at %#x", t.regs.IP)
	}
	if done {
		if t.err != nil {
			r.fail("cpu %d: %v", cpu, t.err)
		} else if t.regs.AX != r.args[cpu]+overResult {
			r.fail("cpu %d: over(%d) = %d", cpu, r.args[cpu], t.regs.AX)
		}
		r.counts["calls"]++
	}
	return done
}

// hitBy reports whether the next instruction is a hit, and where: an int3 at a
// probe, or the call-out of a detour buffer.
func (r *optRun) hitBy(t *thread) (x86.Addr, bool) {
	ip := x86.Addr(t.regs.IP)
	if r.callouts[ip] != nil {
		frame := r.mem(x86.Addr(t.regs.DI), x86.PtRegsSize)
		at := kprobes.HandleAddr(r.k, binary.LittleEndian.Uint64(frame[120:]))
		r.counts["optimized hits"]++
		return at, at != 0
	}
	if off := ip.Sub(r.over); off >= 0 && off < int64(len(overCode)) && r.mem(ip, 1)[0] == 0xcc {
		r.counts["int3 hits"]++
		return ip, true
	}
	return 0, false
}

// compare compares the subsystem with the model, after every step.
func (r *optRun) compare() error {
	if r.failed != nil {
		return r.failed
	}
	if len(r.torn) > 0 {
		return fmt.Errorf("torn: %s", r.torn[0])
	}
	if err := r.k.Err(); err != nil {
		return err
	}
	if got := r.mem(r.over, len(overCode)); string(got) != string(r.m.text) {
		return fmt.Errorf("text is\n% x, not\n% x", got, r.m.text)
	}
	view := make([]byte, len(overCode))
	if r.k.View().CodeAt(r.over, view); string(view) != overCode {
		return fmt.Errorf("the view shows % x", view)
	}
	for _, off := range r.places {
		if err := r.compareEntry(off); err != nil {
			return fmt.Errorf("over+%#x: %w", off, err)
		}
	}
	return nil
}

func (r *optRun) compareEntry(off int64) error {
	p, e := r.k.Find(r.place(off)), r.m.table[off]
	switch {
	case (p == nil) != (e == nil):
		return fmt.Errorf("in the table: %v, not %v", p != nil, e != nil)
	case p == nil:
		return nil
	case p.Disabled() != e.disabled:
		return fmt.Errorf("disabled: %v, not %v", p.Disabled(), e.disabled)
	case p.Optimized() != e.optimized:
		return fmt.Errorf("OPTIMIZED: %v, not %v", p.Optimized(), e.optimized)
	case r.k.Queue(r.place(off)) != e.list:
		return fmt.Errorf("on list %q, not %q", r.k.Queue(r.place(off)), e.list)
	}
	for _, m := range e.members {
		if m.p.Disabled() != m.disabled {
			return fmt.Errorf("member disabled: %v, not %v", m.p.Disabled(), m.disabled)
		}
	}
	return nil
}

// end removes all probes; then the text must be the original one.
func (r *optRun) end() error {
	for len(r.probes) > 0 {
		r.k.UnregisterKprobe(r.probes[0].p)
		r.probes = r.probes[1:]
	}
	for cpu := range 2 {
		if r.threads[cpu] != nil && !r.threads[cpu].done {
			if err := r.finish(cpu); err != nil {
				return err
			}
		}
	}
	r.adopt()
	if err := r.k.Settle(); err != nil {
		return err
	}
	used, garbage := kprobes.Detours(r.k)
	switch {
	case r.text() != r.clean:
		return fmt.Errorf("the text is not restored: % x", r.mem(r.over, len(overCode)))
	case used != garbage:
		return fmt.Errorf("%d detour buffers are lost", used-garbage)
	case len(r.torn) > 0:
		return fmt.Errorf("torn: %s", r.torn[0])
	}
	return r.k.Err()
}

// adopt removes the jump that a disabled probe has left which was registered where an aggregator
// waited to be removed (TestDisabledProbeRevivesForGood), and in 4.4 the aggregators that were
// undone by force before they could be removed.
func (r *optRun) adopt() {
	if !r.k.Enabled() {
		if err := r.k.SetEnabled(true); err != nil {
			r.fail("enabled: %v", err)
		}
	}
	for _, off := range r.places {
		if r.k.Find(r.place(off)) != nil {
			orphan := &kprobes.Kprobe{Addr: r.place(off)}
			if err := r.k.RegisterKprobe(orphan); err != nil {
				r.fail("adopt: %v", err)
			}
			r.k.UnregisterKprobe(orphan)
		}
	}
}
