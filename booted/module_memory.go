package booted

import (
	"kprobelab/internal/bounded"
	"kprobelab/machine"
	"kprobelab/x86"
)

// taking is a function that allocates memory. size reads how many bytes it is to allocate; nil: it does not say.
type taking struct {
	name string
	size func(*x86.PtRegs) uint64
	// again: its first argument is memory that it gives back.
	again bool
}

func first(r *x86.PtRegs) uint64  { return r.DI }
func second(r *x86.PtRegs) uint64 { return r.SI }
func third(r *x86.PtRegs) uint64  { return r.DX }
func order(r *x86.PtRegs) uint64  { return 4096 << (r.SI & 31) }
func page(*x86.PtRegs) uint64     { return 4096 }

// takings are the functions that a module calls for memory (include/linux/slab.h, vmalloc.h, percpu.h, gfp.h), 5.10 to
// 7.3. Since 6.10 most have _noprof after their names.
var takings = []taking{
	{"__kmalloc", first, false}, {"__kmalloc_node", first, false}, {"__kmalloc_node_track_caller", first, false}, {"kmalloc_order", first, false}, {"kmalloc_order_trace", first, false},
	{"kmalloc_large", first, false}, {"kmalloc_large_node", first, false}, {"__kmalloc_large", first, false}, {"__kmalloc_large_node", first, false},
	{"kmem_cache_alloc_trace", third, false}, {"kmem_cache_alloc_node_trace", nil, false}, {"kmalloc_trace", third, false}, {"kmalloc_node_trace", nil, false},
	{"__kmalloc_cache", third, false}, {"__kmalloc_cache_node", nil, false}, {"_kmalloc_nolock", first, false}, {"kmalloc_nolock", first, false},
	{"kmem_cache_alloc", nil, false}, {"kmem_cache_alloc_node", nil, false}, {"kmem_cache_alloc_lru", nil, false},
	{"krealloc", second, true}, {"krealloc_node_align", second, true}, {"kmemdup", second, false}, {"kmemdup_nul", nil, false}, {"kstrdup", nil, false}, {"kstrndup", nil, false}, {"kasprintf", nil, false}, {"kvasprintf", nil, false},
	{"kvmalloc_node", first, false}, {"__kvmalloc_node", first, false}, {"vmalloc", first, false}, {"vzalloc", first, false}, {"__vmalloc", first, false}, {"vmalloc_node", first, false}, {"vmalloc_user", first, false},
	{"__alloc_percpu", first, false}, {"__alloc_percpu_gfp", first, false}, {"pcpu_alloc", first, false},
	{"__get_free_pages", order, false}, {"get_free_pages", order, false}, {"get_zeroed_page", page, false},
}

// givings are the functions that give memory back, and which argument is the memory.
var givings = map[string]func(*x86.PtRegs) uint64{
	"kfree": first, "kvfree": first, "vfree": first, "kfree_sensitive": first, "kvfree_sensitive": first, "kmem_cache_free": second, "free_percpu": first, "free_pages": first, "kfree_nolock": first,
	"kvfree_call_rcu": func(r *x86.PtRegs) uint64 {
		if r.SI < 4096 { // to 5.19 an offset in place of the memory
			return r.DI - r.SI
		}
		return r.SI
	},
}

// followMemory notes what code of the module allocates, and what anybody gives back of that.
func (w *moduleWatch) followMemory() {
	for _, f := range takings {
		for _, name := range []string{f.name, f.name + "_noprof"} {
			w.on(name, func(regs *x86.PtRegs) { w.takes(f, regs) })
		}
	}
	for name, memory := range givings {
		w.on(name, func(regs *x86.PtRegs) { w.gives(name, x86.Addr(memory(regs)), regs) })
	}
}

func (w *moduleWatch) takes(f taking, regs *x86.PtRegs) {
	from, own := w.caller(regs)
	if !own {
		return
	}
	a := Allocation{By: f.name, At: w.place(from)}
	if f.size != nil {
		a.Size = f.size(regs)
	}
	old := x86.Addr(regs.DI)
	w.k.executions.onReturn(regs, func(regs *x86.PtRegs) {
		const lastError = ^uint64(4095)
		if regs.AX == 0 || regs.AX >= lastError {
			return
		}
		if f.again {
			delete(w.taken, old)
		}
		a.at = x86.Addr(regs.AX)
		if _, again := w.freed[a.at]; again {
			delete(w.freed, a.at)
			w.lookAtFreed()
		}
		w.took(a)
	})
}

// took remembers an allocation, if there is room.
func (w *moduleWatch) took(a Allocation) {
	if len(w.taken) < bounded.ModuleAllocations {
		w.taken[a.at] = a
	} else {
		w.forgot = true
	}
}

func (w *moduleWatch) gives(by string, at x86.Addr, regs *x86.PtRegs) {
	a, ok := w.taken[at]
	if !ok {
		return
	}
	delete(w.taken, at)
	from, own := w.caller(regs)
	if !own || !w.live() {
		return
	}
	a.By, a.At = by, w.place(from)
	for _, p := range w.order {
		if p.live && p.at >= at && p.at < at+x86.Addr(a.Size) {
			w.fault("freed-probe", "%s frees the struct of its probe at %s while that is registered (%s at %s)", w.name, p.Place, by, a.At)
			return
		}
	}
	w.freed[at] = a
	w.lookAtFreed()
}

// lookAtFreed watches the memory that the module has freed while it has probes, as long as it has some. Watchpoints of the
// user's own stay; nothing is watched then.
func (w *moduleWatch) lookAtFreed() {
	if !w.live() {
		clear(w.freed)
	}
	list := w.freedBytes()
	if len(list) == 0 && !w.watching || !w.watching && w.k.machine.Watching() {
		return
	}
	if w.k.machine.Watch(list, func(hits []machine.WatchHit, regs *x86.PtRegs) { w.accesses(list, hits, regs) }) == nil {
		w.watching = len(list) > 0
	}
}

// freedBytes are the watches of the freed memory.
func (w *moduleWatch) freedBytes() (list []machine.Watch) {
	for at, a := range w.freed {
		size := min(a.Size, bounded.FreedBytes)
		for o := uint64(0); o < size && len(list) < machine.MaxWatches; o += machine.MaxWatch {
			list = append(list, machine.Watch{Addr: at + x86.Addr(o), Len: uint32(min(machine.MaxWatch, size-o)), Kinds: machine.WatchRead | machine.WatchWrite})
		}
	}
	return list
}

// accesses: an instruction has read or written freed memory.
func (w *moduleWatch) accesses(list []machine.Watch, hits []machine.WatchHit, regs *x86.PtRegs) {
	p := w.handler(regs.SP)
	if p == nil || !w.owns(x86.Addr(regs.IP)) {
		return
	}
	at := list[hits[0].Watch].Addr
	for start, a := range w.freed {
		if at >= start && at < start+x86.Addr(a.Size) {
			w.fault("freed-data", "the handler of %s's probe at %s uses memory that the module has freed (%s at %s)", w.name, p.Place, a.By, a.At)
			delete(w.freed, start) // one use is enough: the guest is slow while memory is watched
			w.lookAtFreed()
			return
		}
	}
}
