package kprobes

import "kprobelab/x86"

// Digest calls add with all state that decides the subsystem's later behaviour, except the state of
// DigestHits and DigestCPUs; id numbers the probes. Two machines that are otherwise equal and have
// the same three digests behave equally from then on.
func (k *Kprobes) Digest(id func(*Kprobe) uint64, add func(uint64)) {
	d := digest{id, add}
	sum := uint64(0) // of what has no order
	d.flag(k.disarmed)
	d.flag(k.opt.allowed)
	for _, l := range []*optList{&k.opt.optimizing, &k.opt.unoptimizing, &k.opt.freeing} {
		add(uint64(l.n))
		for o := l.head; o != nil; o = o.next {
			d.probe(o.entry)
			d.jump(o.entry)
		}
	}
	k.table.all(d.jump)
	k.table.all(d.site)
	d.flag(k.ftrace.killed)
	for at, held := range k.ftrace.patched {
		if held {
			sum += uint64(at)
		}
	}
	add(sum)
	d.worker(&k.opt.worker)
	k.opt.text.Digest(add)
	if !k.opt.poke.Done() {
		k.opt.poke.Digest(add)
	}
	d.slots(&k.slots)
	d.slots(&k.opt.slots)
}

// DigestCPUs calls add with the hits that each CPU handles, the instances of return probes and the
// calls that they follow, and the modules' states.
func (k *Kprobes) DigestCPUs(id func(*Kprobe) uint64, add func(uint64)) {
	d := digest{id, add}
	for i := range k.cpus {
		d.control(&k.cpus[i].control)
		if k.cpus[i].current != nil {
			d.control(&k.cpus[i].prev)
		}
	}
	for _, m := range k.mods {
		add(uint64(m.state))
	}
	for _, i := range k.kret.pending {
		add(1)
		for ; i != nil; i = i.next {
			d.name(k.entryProbe(i))
			add(uint64(i.RetAddr))
			add(uint64(i.frame))
		}
	}
	k.table.all(func(p *Kprobe) {
		for _, m := range k.members(p) {
			d.instances(m)
		}
	})
}

// DigestHits calls add with the state that a hit keeps from one of its steps to the next: the table
// and the probes.
func (k *Kprobes) DigestHits(id func(*Kprobe) uint64, add func(uint64)) {
	d := digest{id, add}
	k.table.all(d.probe)
	for _, o := range k.handles {
		if o == nil {
			add(0)
			continue
		}
		add(uint64(o.entry.Addr))
	}
}

type digest struct {
	id  func(*Kprobe) uint64
	add func(uint64)
}

func (d *digest) flag(on bool) {
	n := uint64(0)
	if on {
		n = 1
	}
	d.add(n)
}

// name is a probe's id and its place; an aggregator has no id.
func (d *digest) name(p *Kprobe) {
	if p == nil {
		d.add(0)
		return
	}
	d.add(d.id(p)<<48 ^ uint64(p.Addr))
}

func (d *digest) probe(p *Kprobe) {
	d.name(p)
	d.add(uint64(p.Flags)<<8 | uint64(p.opcode))
	d.place(p.ool)
	d.pool(p)
	a := p.aggregate
	if a == nil {
		return
	}
	d.flag(a.post)
	d.flag(a.brk)
	d.add(uint64(len(a.members)))
	for _, m := range a.members {
		d.name(m)
		d.add(uint64(m.Flags))
		d.pool(m)
	}
	if o := a.opt; o != nil {
		d.add(uint64(o.d.Addr))
		d.add(uint64(o.d.Size))
	}
}

// pool adds whether a return probe has instances, and whether they were freed.
func (d *digest) pool(p *Kprobe) {
	if p.kret != nil {
		d.flag(p.kret.pool != nil)
		d.flag(p.kret.pool != nil && p.kret.pool.freed)
	}
}

// instances adds the number of free instances of a return probe.
func (d *digest) instances(p *Kprobe) {
	if p.kret == nil || p.kret.pool == nil {
		return
	}
	n := uint64(0)
	for i := p.kret.pool.free; i != nil; i = i.next {
		n++
	}
	d.add(n)
}

// jump adds the bytes that a jump has replaced, if the probe has a jump.
func (d *digest) jump(p *Kprobe) {
	if o := p.opt(); o != nil {
		d.add(uint64(o.saved[0])<<24 | uint64(o.saved[1])<<16 | uint64(o.saved[2])<<8 | uint64(o.saved[3]))
		d.flag(o.patched)
		d.flag(o.queued())
	}
}

// site adds which of the tracer's two registrations arms a probe on a fentry site.
func (d *digest) site(p *Kprobe) {
	switch {
	case p.ft == nil:
	case p.ft.ops == nil:
		d.add(0)
	default:
		d.add(uint64(p.ft.ops.trampoline))
	}
}

func (d *digest) place(o *outOfLine) {
	at := x86.Addr(0)
	if o != nil {
		at = o.Addr
	}
	d.add(uint64(at))
}

func (d *digest) control(c *control) {
	d.name(c.current)
	d.flag(c.status&(HitSS|Reenter) != 0)
	if c.current != nil {
		d.add(uint64(c.status) ^ c.oldFlags<<8 ^ c.savedFlags<<32)
		d.place(c.ool)
	}
}

func (d *digest) worker(w *worker) {
	d.flag(w.scheduled)
	d.flag(w.undone)
	d.add(uint64(w.phase))
	if w.op != nil {
		d.name(w.op.entry)
	}
	for _, h := range w.grace.holdouts {
		d.add(uint64(h.task)<<32 | h.switches)
	}
}

func (d *digest) slots(c *slotCache) {
	for _, pg := range c.pages {
		d.add(uint64(pg.addr))
		for i := range pg.clean {
			d.add(pg.clean[i])
			d.add(pg.dirty[i])
		}
	}
}
