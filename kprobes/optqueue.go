package kprobes

import (
	"kprobelab/optimizer"
	"kprobelab/x86"
)

// optimize queues an aggregator to become a jump, or takes it off the queue to
// be undone (optimize_kprobe, docs/spec 4.6). It does nothing where something
// forbids it.
func (k *Kprobes) optimize(p *Kprobe) {
	o := p.opt()
	if !o.ready() || !k.opt.allowed || p.Disabled() || k.disarmed {
		return
	}
	// A jprobe's handler, like a post_handler, needs the int3.
	if p.hasPost() || p.hasBreak() || k.neighbour(o) != nil {
		return
	}
	if k.beside[p.Addr] || k.foreign(o) {
		k.hold(p)
		return
	}
	wasOptimized := p.Optimized()
	if wasOptimized && (k.c.Optimize.ClearedWhenQueued || o.on != &k.opt.unoptimizing) {
		return
	}
	k.point(PointFlags, p)
	p.Flags |= FlagOptimized
	switch {
	case o.on == &k.opt.unoptimizing:
		o.unlink()
		k.optEvent(OptKept, p, p.Addr)
	case o.on != nil:
		k.printk("WARNING: optimize_kprobe: " + k.name(p) + " is still to be freed")
	default:
		k.opt.optimizing.add(o)
		k.optEvent(OptQueued, p, p.Addr)
		k.kick()
	}
}

// neighbour is the probe in the region that a jump would run over, nil for
// none (arch_check_optimized_kprobe).
func (k *Kprobes) neighbour(o *optimized) *Kprobe {
	for i := 1; i < o.d.Size; i++ {
		n := k.table.lookup(o.entry.Addr.Add(int64(i)))
		if n != nil && !k.passive(n) {
			return n
		}
	}
	return nil
}

// passive reports whether the probe does not change its text.
func (k *Kprobes) passive(n *Kprobe) bool {
	if k.c.Optimize.EnabledNeighboursOnly {
		return n.Disabled()
	}
	return disarmedEntry(n)
}

// covering is get_optimized_kprobe: it returns the probe whose jump would run over an address, nil
// if there is none.
func (k *Kprobes) covering(a x86.Addr) *Kprobe {
	if k.opt.patcher == nil {
		return nil
	}
	for i := 1; i < optimizer.MaxRegion; i++ {
		p := k.table.lookup(a.Add(int64(-i)))
		if p == nil {
			continue
		}
		if o := p.opt(); o.ready() && !disarmedEntry(p) && o.within(a) {
			return p
		}
		if k.c.Optimize.FirstProbeEndsSearch {
			return nil
		}
	}
	return nil
}

// unoptimize takes a jump back, or has the worker do it (unoptimize_kprobe).
// With force it is done now.
func (k *Kprobes) unoptimize(p *Kprobe, force bool) {
	o := p.opt()
	if o == nil || disarmedEntry(p) {
		return
	}
	if k.c.Optimize.ClearedWhenQueued {
		k.unoptimize44(p, o, force)
		return
	}
	switch {
	case !p.Optimized():
	case o.on == &k.opt.unoptimizing:
		if force {
			k.unoptimizeNow(p, o)
			o.unlink()
			k.opt.freeing.add(o)
			k.optEvent(OptFreeing, p, p.Addr)
		}
	case o.on != nil:
		k.dequeue(p, o)
	case force:
		k.unoptimizeNow(p, o)
	default:
		k.queueUnoptimize(p, o)
	}
}

// unoptimize44 is the same in 4.4, where OPTIMIZED goes at once.
func (k *Kprobes) unoptimize44(p *Kprobe, o *optimized, force bool) {
	switch {
	case !p.Optimized():
		if force && o.on != nil {
			o.unlink()
			k.unoptimizeNow(p, o)
		}
	case o.on != nil:
		k.dequeue(p, o)
	case force:
		k.point(PointFlags, p)
		p.Flags &^= FlagOptimized
		k.unoptimizeNow(p, o)
	default:
		k.point(PointFlags, p)
		p.Flags &^= FlagOptimized
		k.queueUnoptimize(p, o)
	}
}

func (k *Kprobes) dequeue(p *Kprobe, o *optimized) {
	o.unlink()
	k.point(PointFlags, p)
	p.Flags &^= FlagOptimized
	k.optEvent(OptDequeued, p, p.Addr)
}

func (k *Kprobes) queueUnoptimize(p *Kprobe, o *optimized) {
	k.opt.unoptimizing.add(o)
	k.optEvent(OptQueuedUndo, p, p.Addr)
	k.kick()
}

// unoptimizeNow is force_unoptimize_kprobe: the caller writes the int3 back,
// with the same steps as the worker.
func (k *Kprobes) unoptimizeNow(p *Kprobe, o *optimized) {
	k.optEvent(OptForced, p, p.Addr)
	if k.c.Optimize.FlagClearedFirst {
		p.Flags &^= FlagOptimized
	}
	k.startUnpatch(o)
	for k.pokeStep() {
	}
	k.point(PointFlags, p)
	p.Flags &^= FlagOptimized
	k.setPatched(o, false)
	if k.c.Optimize.ClearedWhenQueued && p.Disabled() {
		k.writeOpcode(p) // it is on no list: the worker will not come
	}
}
