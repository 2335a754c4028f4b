package kprobes

import (
	"kprobelab/optimizer"
)

// tryToOptimize puts an aggregator in the place of a new probe, if it can have
// a detour buffer (try_to_optimize_kprobe). If it cannot, that is no error: the
// probe stays as it is.
func (k *Kprobes) tryToOptimize(p *Kprobe) {
	if k.opt.patcher == nil || p.OnFtrace() {
		return
	}
	o := k.newOptimized(p)
	if o == nil {
		return
	}
	entry := k.makeAggregator(p)
	k.attach(entry, o)
	k.optimize(entry)
}

// prepareOptimized makes a detour buffer for an aggregator if that is possible
// (prepare_optimized_kprobe, and the equivalent part of alloc_aggr_kprobe).
func (k *Kprobes) prepareOptimized(entry *Kprobe) {
	if k.opt.patcher == nil || entry.OnFtrace() {
		return
	}
	if o := k.newOptimized(entry); o != nil {
		k.attach(entry, o)
	}
}

func (k *Kprobes) attach(entry *Kprobe, o *optimized) {
	o.entry = entry
	entry.aggregate.opt = o
}

// newOptimized is arch_prepare_optimized_kprobe: it checks the whole function, takes a slot and
// builds the buffer in it. It returns nil if one of these fails.
func (k *Kprobes) newOptimized(p *Kprobe) *optimized {
	if !optimizer.NewScanner(k.view, k.c).Decide(p.Addr).OK {
		return nil
	}
	s := &k.opt.slots
	page, i, err := s.get()
	if err != nil {
		return nil
	}
	o := &optimized{entry: p, page: page, index: i, handle: uint64(page.n*s.perPage() + i + 1)}
	o.d, err = optimizer.BuildDetour(k.view, p.Addr, page.slotAddr(i), k.c, optimizer.DetourParams{
		OptimizedProbe: o.handle, Callback: k.opt.callback,
	})
	if err == nil {
		err = k.m.PokeText(o.d.Addr, o.d.Code())
	}
	if err != nil {
		s.put(page, i, false)
		return nil
	}
	k.setHandle(o.handle, o)
	return o
}

// freeDetour gives an aggregator's buffer back. The slot is dirty: somebody may
// still be in it (arch_remove_optimized_kprobe).
func (k *Kprobes) freeDetour(entry *Kprobe) {
	o := entry.opt()
	if !o.ready() {
		return
	}
	k.freedObject(entry)
	k.setHandle(o.handle, nil)
	k.opt.slots.put(o.page, o.index, true)
	o.d, o.page = optimizer.Detour{}, nil
}

// setHandle sets the owner of a buffer. The kernel's buffers pass the address of struct
// optimized_kprobe to the callback. That struct is not in guest memory here, so a buffer passes the
// number of its slot instead. A number changes its owner only together with the slot.
func (k *Kprobes) setHandle(h uint64, o *optimized) {
	for h >= uint64(len(k.handles)) {
		k.handles = append(k.handles, nil)
	}
	k.handles[h] = o
}

// killOptimized ends the optimization of code that disappears
// (kill_optimized_kprobe): nothing is written any more. The worker frees an
// unused aggregator that waited for its jump to be undone.
func (k *Kprobes) killOptimized(entry *Kprobe) {
	o := entry.opt()
	if o == nil {
		return
	}
	queued := o.on == &k.opt.unoptimizing || o.on == &k.opt.freeing
	o.unlink()
	entry.Flags &^= FlagOptimized
	k.setPatched(o, false)
	if unused(entry) && queued {
		k.opt.freeing.add(o)
		k.optEvent(OptFreeing, entry, entry.Addr)
	}
	k.freeDetour(entry)
}
