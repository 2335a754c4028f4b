package losses

import (
	"slices"

	"kprobelab/kprobes/pool"
	"kprobelab/x86"
)

// entry is a kretprobe's entry handler that runs.
type entry struct {
	pool  *returns
	items []item
	regs  x86.PtRegs
	got   bool
}

// instance is a return instance in use, or one that a call wanted and that the pool did not have.
type instance struct {
	at    x86.Addr
	pool  *returns
	task  *task
	items []item
	regs  x86.PtRegs
	// done: the function has returned, and the kernel is about to put the instance back.
	done bool
	// lacked: the pool had none. held: the call has not returned.
	lacked, held bool
}

// returns is the pool of return instances of a kretprobe.
type returns struct {
	pool.Account[x86.Addr]
	rp x86.Addr
}

func (w *Watch) followReturns() {
	w.on("pre_handler_kretprobe", w.entersReturnProbe)
	node := w.l["kretprobe_instance.node"]
	rethook := w.on("rethook_hook", func(regs *x86.PtRegs) {
		at := x86.Addr(regs.DI)
		w.takes(at, w.o.Pointer(w.o.Pointer(at+w.l["rethook_node.rethook"])+w.l["rethook.data"]))
	})
	if !rethook {
		node = 0
		w.on("arch_prepare_kretprobe", func(regs *x86.PtRegs) {
			w.takes(x86.Addr(regs.DI), w.o.Pointer(x86.Addr(regs.DI)+w.l["kretprobe_instance.rp"]))
		})
	}
	w.on("kretprobe_dispatcher", func(regs *x86.PtRegs) {
		at := x86.Addr(regs.DI)
		i := w.taken[at+node]
		if i == nil {
			w.dispatches(w.task(), regs, regs, 0, nil)
			return
		}
		items := slices.Clone(i.items)
		for n := range i.items {
			i.items[n].open = false
		}
		i.done = true
		w.dispatches(w.task(), regs, &i.regs, i.pool.rp+w.l["kretprobe.kp"], items)
	})
	w.on("kretprobe_rethook_handler", func(regs *x86.PtRegs) {
		if i := w.taken[x86.Addr(regs.DI)]; i != nil {
			i.done = true
		}
	})
	for _, f := range []string{"rethook_trampoline_handler", "trampoline_handler"} {
		w.on(f, func(regs *x86.PtRegs) {
			t := w.task()
			w.onReturn(regs, func(*x86.PtRegs) {
				for _, i := range slices.Clone(t.instances) {
					if i.done {
						w.release(i)
					}
				}
			})
		})
	}
}

// entersReturnProbe: pre_handler_kretprobe(kp, regs).
func (w *Watch) entersReturnProbe(regs *x86.PtRegs) {
	t, kp := w.task(), x86.Addr(regs.DI)
	rp := kp - w.l["kretprobe.kp"]
	e := &entry{pool: w.pool(rp), items: t.itemsOf(kp), regs: *regs}
	frame := x86.Addr(regs.SI)
	if n := len(t.frames); n > 0 {
		e.regs = t.frames[n-1].regs
	}
	t.entries = append(t.entries, e)
	missed := w.o.Word(rp + w.l["kretprobe.nmissed"])
	sp := uint64(w.o.Pointer(frame + w.l["pt_regs.sp"]))
	w.onReturn(regs, func(*x86.PtRegs) {
		for i := len(t.entries) - 1; i >= 0; i-- {
			if t.entries[i] == e {
				t.entries = t.entries[:i]
				break
			}
		}
		if e.got {
			return
		}
		cause := NoInstance
		if w.o.Word(rp+w.l["kretprobe.nmissed"]) != missed {
			cause = PoolEmpty
			e.pool.Missed++
			i := &instance{pool: e.pool, task: t, regs: e.regs, lacked: true}
			w.holds(i)
			w.onReturn(&x86.PtRegs{SP: sp}, func(*x86.PtRegs) { w.release(i) })
		}
		w.loseItems(e.items, calls, cause, t.at, &e.regs)
	})
}

// takes: an instance is taken for the entry that is handled.
func (w *Watch) takes(at, rp x86.Addr) {
	t := w.task()
	if len(t.entries) == 0 {
		return
	}
	e := t.entries[len(t.entries)-1]
	if e.got || e.pool.rp != rp {
		return
	}
	e.got = true
	if before := w.taken[at]; before != nil { // another processor has put it back, and its handler has not returned
		w.release(before)
	}
	i := &instance{at: at, pool: e.pool, task: t, items: e.items, regs: e.regs}
	w.taken[at] = i
	if sp := x86.Addr(i.regs.SP); w.replaced[sp] == 0 {
		w.replaced[sp] = w.o.Pointer(sp)
	}
	w.holds(i)
}

// holds: one more instance is in use or wanted.
func (w *Watch) holds(i *instance) {
	i.held = true
	i.task.instances = append(i.task.instances, i)
	i.pool.Enter(i.task.at, i.lacked, func() Place { return w.place(i.task.at, &i.regs) })
}

// release: an instance is in the pool again, or a call that wanted one has returned.
func (w *Watch) release(i *instance) {
	if !i.held {
		return
	}
	i.held = false
	i.pool.Leave(i.task.at, i.lacked)
	if w.taken[i.at] == i {
		delete(w.taken, i.at)
	}
	if !i.lacked {
		delete(w.replaced, x86.Addr(i.regs.SP))
	}
	t := i.task
	if n := slices.Index(t.instances, i); n >= 0 {
		t.instances = slices.Delete(t.instances, n, n+1)
	}
}

// pool is the pool of a struct kretprobe.
func (w *Watch) pool(rp x86.Addr) *returns {
	at := w.o.Pointer(rp + w.l["kretprobe.kp"] + w.l["kprobe.addr"])
	name := w.probeName(at)
	if p := w.pools[rp]; p != nil && p.Probe == name {
		return p
	}
	p := &returns{rp: rp}
	p.Probe, p.MaxActive = name, int(int32(w.o.Word(rp+w.l["kretprobe.maxactive"])))
	w.pools[rp] = p
	w.order = append(w.order, p)
	return p
}
