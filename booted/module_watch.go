package booted

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// moduleWatch follows a module while the guest runs: the calls by which it registers and unregisters probes, its
// handlers, and the memory that it takes and gives back. The guest is as without it.
type moduleWatch struct {
	k      *Kernel
	name   string
	layout *moduleLayout
	// memory holds the module's own pieces, from the call of its init on.
	memory []x86.Range
	// probes are the registered and refused probes by their struct kprobe, in order.
	probes map[x86.Addr]*watchedProbe
	order  []*watchedProbe
	// inside are the handlers that run, by task.
	inside map[x86.Addr][]handlerFrame
	// taken is the memory that the module has, freed the memory that it gave back while it had probes.
	taken map[x86.Addr]Allocation
	freed map[x86.Addr]Allocation
	// forgot: there was more memory than is remembered.
	forgot bool
	// watching: accesses to freed memory are reported.
	watching bool
	faults   []Fault
	// ended: the module is unloaded; after counts the handlers that began since.
	ended bool
	after uint64
}

// watchedProbe is a kprobe, or a kretprobe and its kprobe.
type watchedProbe struct {
	ModuleProbe
	// returned is the struct kretprobe, 0 for a kprobe.
	returned x86.Addr
	// address is the probed instruction.
	address x86.Addr
	// live: it is registered.
	live bool
}

// handlerFrame is a handler that runs.
type handlerFrame struct {
	probe *watchedProbe
	stack uint64
}

// Fault is something that a module did and must not do.
type Fault struct {
	// Rule names the kind: registered-twice, blacklisted, refused, sleeps, unregisters-inside, freed-probe, freed-data.
	Rule string
	// Text is a sentence about it.
	Text string
}

// Allocation is memory that a module took.
type Allocation struct {
	// By is the kernel's function, At the place in the module, as its name and an offset.
	By, At string
	// Size is in bytes, 0 if the call does not say it.
	Size uint64

	at x86.Addr
}

// watchModule begins to follow a module, before it is loaded.
func (k *Kernel) watchModule(name string) *moduleWatch {
	w := &moduleWatch{k: k, name: name, layout: k.moduleLayout(), probes: map[x86.Addr]*watchedProbe{}, inside: map[x86.Addr][]handlerFrame{},
		taken: map[x86.Addr]Allocation{}, freed: map[x86.Addr]Allocation{}}
	if !w.layout.known {
		return w
	}
	w.on("do_init_module", w.begins)
	w.on("free_module", w.ends)
	w.on("register_kprobe", w.registers)
	w.on("register_kretprobe", w.registersReturn)
	for _, f := range []string{"kprobe", "kprobes", "kretprobe", "kretprobes"} {
		w.on("unregister_"+f, func(regs *x86.PtRegs) { w.unregisters(f, regs) })
	}
	w.on("schedule", w.schedules)
	w.on("oops_begin", func(*x86.PtRegs) { w.dies() })
	w.on("do_exit", func(*x86.PtRegs) { w.dies() })
	w.followMemory()
	return w
}

// on calls fn when a function of the kernel is entered, if the kernel has it.
func (w *moduleWatch) on(function string, fn func(*x86.PtRegs)) {
	if at := w.k.image.Lookup(function); len(at) == 1 {
		w.k.executions.on(at[0].Addr, fn)
	}
}

// begins: the kernel is about to call the module's init.
func (w *moduleWatch) begins(regs *x86.PtRegs) {
	module := x86.Addr(regs.DI)
	if w.k.kernelString(module+w.layout.name, 64) == w.name {
		w.memory = w.k.ranges(w.layout, module)
	}
}

// ends: the kernel is about to free the module. The counts of its probes can still be read.
func (w *moduleWatch) ends(regs *x86.PtRegs) {
	if w.k.kernelString(x86.Addr(regs.DI)+w.layout.name, 64) == w.name {
		w.count()
	}
}

func (w *moduleWatch) owns(at x86.Addr) bool {
	for _, r := range w.memory {
		if r.Contains(at) {
			return true
		}
	}
	return false
}

// caller is the place in the module that has called the function that is entered.
func (w *moduleWatch) caller(regs *x86.PtRegs) (x86.Addr, bool) {
	to := w.k.pointer(x86.Addr(regs.SP))
	return to, w.owns(to)
}

// place names an address of the module.
func (w *moduleWatch) place(at x86.Addr) string {
	for i, r := range w.memory {
		if r.Contains(at) {
			if i == 0 {
				return fmt.Sprintf("%s+%#x", w.name, uint64(at-r.Start))
			}
			return fmt.Sprintf("%s (part %d)+%#x", w.name, i+1, uint64(at-r.Start))
		}
	}
	return at.String()
}

func (w *moduleWatch) fault(rule, format string, args ...any) {
	f := Fault{rule, fmt.Sprintf(format, args...)}
	for _, known := range w.faults {
		if known == f {
			return
		}
	}
	if len(w.faults) < bounded.ChangedPlaces {
		w.faults = append(w.faults, f)
	}
}

// registersReturn: register_kretprobe(rp).
func (w *moduleWatch) registersReturn(regs *x86.PtRegs) {
	at := x86.Addr(regs.DI)
	if _, own := w.caller(regs); !own && !w.owns(w.k.pointer(at+w.layout.returned)) {
		return
	}
	p := w.probe(at + w.layout.probe)
	if !p.live { // registered twice: it keeps what it has
		p.returned, p.Return = at, true
	}
	w.answers(regs, p)
}

// registers: register_kprobe(p).
func (w *moduleWatch) registers(regs *x86.PtRegs) {
	at := x86.Addr(regs.DI)
	p, known := w.probes[at]
	_, own := w.caller(regs)
	if !known && !own && !w.owns(w.k.pointer(at+w.layout.pre)) && !w.owns(w.k.pointer(at+w.layout.post)) {
		return
	}
	if p == nil {
		p = w.probe(at)
	}
	if p.returned == 0 || own {
		w.answers(regs, p)
	}
	if !p.live {
		w.follow(p)
	}
}

// probe is the watched probe of a struct kprobe.
func (w *moduleWatch) probe(at x86.Addr) *watchedProbe {
	p := w.probes[at]
	if p != nil && (p.live || p.refused()) {
		return p
	}
	p = &watchedProbe{}
	p.at = at
	if len(w.order) < bounded.GuestProbes {
		w.probes[at] = p
		w.order = append(w.order, p)
	}
	return p
}

func (p *watchedProbe) refused() bool { return p.Errno != 0 }

// answers notes what the kernel answers to a registration.
func (w *moduleWatch) answers(regs *x86.PtRegs, p *watchedProbe) {
	w.k.executions.onReturn(regs, func(regs *x86.PtRegs) {
		err := errno.Errno(-int32(regs.AX))
		if err == 0 {
			p.live, p.Errno = true, 0
			p.address = w.k.pointer(p.at + w.layout.addr)
			p.Place = w.k.machine.Symbolize(p.address)
			return
		}
		if p.live {
			w.fault("registered-twice", "%s registers its probe at %s, which is registered: %v", w.name, p.Place, err)
			return
		}
		p.Errno = err
		p.Place = w.wanted(p.at)
		if err == errno.EINVAL {
			if _, black := w.k.image.Blacklisted(w.wantedAt(p.at)); black {
				w.fault("blacklisted", "the kernel refuses the probe of %s at %s, which is on its list of places without probes (/sys/kernel/debug/kprobes/blacklist): %v", w.name, p.Place, err)
				return
			}
		}
		w.fault("refused", "the kernel refuses the probe of %s at %s: %v", w.name, p.Place, err)
	})
}

// wanted is the place that a struct kprobe asks for.
func (w *moduleWatch) wanted(at x86.Addr) string {
	offset := w.k.word(at + w.layout.offset)
	if name := w.k.pointer(at + w.layout.symbol); name != 0 {
		return fmt.Sprintf("%s+%#x", w.k.kernelString(name, 128), offset)
	}
	return w.k.machine.Symbolize(w.k.pointer(at + w.layout.addr).Add(int64(offset)))
}

// wantedAt is the address of that place, 0 if no symbol has the name.
func (w *moduleWatch) wantedAt(at x86.Addr) x86.Addr {
	to := w.k.pointer(at + w.layout.addr)
	if name := w.k.pointer(at + w.layout.symbol); name != 0 {
		list := w.k.image.Lookup(w.k.kernelString(name, 128))
		if len(list) == 0 {
			return 0
		}
		to = list[0].Addr
	}
	return to + x86.Addr(w.k.word(at+w.layout.offset))
}

// follow counts the hits of a probe by the executions of its handlers.
func (w *moduleWatch) follow(p *watchedProbe) {
	handler := w.k.pointer(p.at + w.layout.pre)
	if handler == 0 {
		handler = w.k.pointer(p.at + w.layout.post)
	}
	p.Counted = handler != 0 && w.k.executions.on(handler, func(regs *x86.PtRegs) {
		if x86.Addr(regs.DI) == p.at && w.probes[p.at] == p {
			p.Hits++
			w.enters(p, regs)
		}
	})
	if post := w.k.pointer(p.at + w.layout.post); post != 0 && post != handler {
		w.k.executions.on(post, func(regs *x86.PtRegs) {
			if x86.Addr(regs.DI) == p.at && w.probes[p.at] == p {
				w.enters(p, regs)
			}
		})
	}
	if p.returned == 0 {
		return
	}
	returned := func(count bool) func(*x86.PtRegs) {
		return func(regs *x86.PtRegs) {
			if w.k.kretprobeOf(w.layout, x86.Addr(regs.DI)) != p.returned {
				return
			}
			if count {
				p.Returns++
			}
			w.enters(p, regs)
		}
	}
	if at := w.k.pointer(p.returned + w.layout.returned); at != 0 {
		w.k.executions.on(at, returned(true))
	}
	if at := w.k.pointer(p.returned + w.layout.entered); at != 0 {
		w.k.executions.on(at, returned(false))
	}
}

// enters: a handler begins.
func (w *moduleWatch) enters(p *watchedProbe, regs *x86.PtRegs) {
	if w.ended {
		w.after++
	}
	task := w.k.machine.RunningTask()
	w.inside[task] = append(w.inside[task], handlerFrame{p, regs.SP})
	w.k.executions.onReturn(regs, func(regs *x86.PtRegs) {
		list := w.inside[task]
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].stack == regs.SP-8 {
				w.inside[task] = list[:i]
				break
			}
		}
		if len(w.inside[task]) == 0 {
			delete(w.inside, task)
		}
	})
}

// handler is the handler that the running task is in, at a stack of now; nil without one.
func (w *moduleWatch) handler(stack uint64) *watchedProbe {
	list := w.inside[w.k.machine.RunningTask()]
	if len(list) == 0 {
		return nil
	}
	const stackSize = 16 << 10 // THREAD_SIZE
	f := list[len(list)-1]
	if stack > f.stack || f.stack-stack > stackSize {
		return nil
	}
	return f.probe
}

func (w *moduleWatch) schedules(regs *x86.PtRegs) {
	if p := w.handler(regs.SP); p != nil {
		w.fault("sleeps", "the handler of %s's probe at %s sleeps", w.name, p.Place)
	}
}

// dies: the running task does not return from what it does.
func (w *moduleWatch) dies() {
	task := w.k.machine.RunningTask()
	delete(w.inside, task)
	w.k.executions.forget(task)
}

// unregisters: unregister_kprobe(p), unregister_kprobes(list, n) and the same of kretprobes.
func (w *moduleWatch) unregisters(what string, regs *x86.PtRegs) {
	list := []x86.Addr{x86.Addr(regs.DI)}
	if what == "kprobes" || what == "kretprobes" {
		list = nil
		for i := range min(int(int32(regs.SI)), 512) {
			list = append(list, w.k.pointer(x86.Addr(regs.DI)+8*x86.Addr(i)))
		}
	}
	var ours []*watchedProbe
	for _, at := range list {
		if what == "kretprobe" || what == "kretprobes" {
			at += w.layout.probe
		}
		if p := w.probes[at]; p != nil {
			ours = append(ours, p)
		}
	}
	if len(ours) == 0 {
		return
	}
	if p := w.handler(regs.SP); p != nil {
		w.fault("unregisters-inside", "the handler of %s's probe at %s unregisters the probe at %s", w.name, p.Place, ours[0].Place)
	}
	w.k.executions.onReturn(regs, func(*x86.PtRegs) {
		for _, p := range ours {
			if p.live {
				w.countOf(p)
			}
			p.live = false
		}
		w.lookAtFreed()
	})
}

// count reads the missed hits of the registered probes.
func (w *moduleWatch) count() {
	for _, p := range w.order {
		if p.live {
			w.countOf(p)
		}
	}
}

func (w *moduleWatch) countOf(p *watchedProbe) {
	p.Missed = uint64(w.k.pointer(p.at + w.layout.missed))
	if p.returned != 0 {
		p.Exhausted = uint64(w.k.word(p.returned + w.layout.exhausted))
	}
}

// live reports whether the module has a registered probe.
func (w *moduleWatch) live() bool {
	for _, p := range w.order {
		if p.live {
			return true
		}
	}
	return false
}
