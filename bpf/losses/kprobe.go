package losses

import (
	"slices"

	"kprobelab/x86"
)

// Handlers of a hit.
const (
	byFtrace = iota
	byBreakpoint
	byJump
)

// event is a trace event whose programs trace_call_bpf runs.
type event struct {
	// probes are the struct kprobe of a kprobe event; none: it is another event.
	probes   []x86.Addr
	kind     string
	name     string
	accounts []*account
}

func (w *Watch) followKprobes() {
	at := func(regs *x86.PtRegs) x86.Addr { return w.o.Pointer(x86.Addr(regs.DI)+w.l["pt_regs.ip"]) - 1 }
	w.on("kprobe_ftrace_handler", func(regs *x86.PtRegs) { w.handles(regs, x86.Addr(regs.DI), byFtrace) })
	w.on("kprobe_int3_handler", func(regs *x86.PtRegs) { w.handles(regs, at(regs), byBreakpoint) })
	w.on("optimized_callback", func(regs *x86.PtRegs) {
		w.handles(regs, w.o.Pointer(x86.Addr(regs.DI)+w.l["optimized_kprobe.kp"]+w.l["kprobe.addr"]), byJump)
	})
	w.on("kprobes_inc_nmissed_count", func(*x86.PtRegs) { w.missed() })
	w.on("kprobe_dispatcher", func(regs *x86.PtRegs) {
		t, kp := w.task(), x86.Addr(regs.DI)
		items := t.itemsOf(kp)
		at := regs
		if n := len(t.frames); n > 0 {
			at = &t.frames[n-1].regs
		}
		w.dispatches(t, regs, at, kp, items)
	})
	w.on("trace_call_bpf", w.callsPrograms)
	w.on("perf_event_attach_bpf_prog", w.attaches)
	w.on("perf_event_detach_bpf_prog", func(regs *x86.PtRegs) { w.detaches(x86.Addr(regs.DI)) })
	w.on("perf_event_free_bpf_prog", func(regs *x86.PtRegs) { w.detaches(x86.Addr(regs.DI)) })
}

// attaches: perf_event_attach_bpf_prog(event, prog, cookie).
func (w *Watch) attaches(regs *x86.PtRegs) {
	key, prog := x86.Addr(regs.DI), w.programs[x86.Addr(regs.SI)]
	if prog == nil {
		return
	}
	e := w.event(w.o.Pointer(key + w.l["perf_event.tp_event"]))
	var list []*account
	for _, kp := range e.probes {
		at := w.o.Pointer(kp + w.l["kprobe.addr"])
		a := &account{prog: prog, kind: e.kind, name: w.probeName(at), kp: kp, key: key}
		w.probe(at, a)
		list = append(list, a)
	}
	if len(e.probes) == 0 {
		list = append(list, &account{prog: prog, kind: e.kind, name: e.name, key: key, unknown: e.unknown()})
	}
	w.onReturn(regs, func(regs *x86.PtRegs) {
		if regs.AX != 0 {
			return
		}
		for _, a := range list {
			a.attached = true
			w.kernelMissed(a)
			if a.missed != nil {
				a.missedBefore = *a.missed
			}
			w.accounts = append(w.accounts, a)
			e.accounts = append(e.accounts, a)
		}
	})
}

// unknown says why the calls before a program's gate are not known.
func (e *event) unknown() string {
	if e.kind == "tracepoint" {
		return ""
	}
	return "calls of a program's function are not counted"
}

// detaches: perf_event_detach_bpf_prog(event).
func (w *Watch) detaches(key x86.Addr) {
	for _, a := range w.accounts {
		if a.key == key && a.attached {
			w.detach(a)
			w.kernelMissed(a)
			w.compare(a)
		}
	}
}

// detach ends an account: calls that a program at their return waits for do not have it any more.
func (w *Watch) detach(a *account) {
	a.attached = false
	for _, i := range w.taken {
		for n := range i.items {
			if it := &i.items[n]; it.open && it.a == a {
				it.open = false
				w.lose(a, calls, Inside, i.task.at, &i.regs)
			}
		}
	}
	if !w.entersWithProgram {
		return // the trampolines of such kernels run the program all the same
	}
	for _, t := range w.tasks {
		t.inside = slices.DeleteFunc(t.inside, func(c *call) bool {
			if c.a == a {
				w.lose(a, calls, Inside, t.at, &c.regs)
			}
			return c.a == a
		})
	}
}

// compare compares the kernel's own count of missed hits with the ones of the ledger.
func (w *Watch) compare(a *account) {
	if a.missed == nil {
		return
	}
	ours := uint64(0)
	for _, l := range a.lost[calls] {
		if l.cause == Running || l.cause == Nested || l.cause == PoolEmpty {
			ours += l.n
		}
	}
	if ours != *a.missed {
		w.note("%s at %s: the kernel counts %d missed hits, the ledger %d", a.prog.name, a.name, *a.missed, ours)
	}
}

// kernelMissed reads the kernel's own count of missed hits since the program was attached.
func (w *Watch) kernelMissed(a *account) {
	if a.kp == 0 || !w.l.has("kprobe.nmissed") {
		return
	}
	n := uint64(w.o.Pointer(a.kp + w.l["kprobe.nmissed"]))
	if a.kind == "kretprobe" && w.l.has("kretprobe.nmissed") {
		n += uint64(w.o.Word(a.kp - w.l["kretprobe.kp"] + w.l["kretprobe.nmissed"]))
	}
	n -= a.missedBefore
	a.missed = &n
}

// event reads a trace_event_call.
func (w *Watch) event(at x86.Addr) *event {
	if e := w.events[at]; e != nil {
		return e
	}
	e := &event{kind: "tracepoint"}
	w.events[at] = e
	funcs := w.o.Pointer(at + w.l["trace_event_call.event"] + w.l["trace_event.funcs"])
	for name, kind := range map[string]string{"kprobe_funcs": "kprobe", "kretprobe_funcs": "kretprobe", "uprobe_funcs": "uprobe"} {
		if f, ok := w.o.Lookup(name); ok && f == funcs {
			e.kind = kind
		}
	}
	switch e.kind {
	case "tracepoint":
		e.name = w.eventName(w.o.Pointer(at + w.l["trace_event_call.name"]))
	case "uprobe":
		e.name = "a program's function"
	default:
		head := at - w.l["trace_probe_event.call"] + w.l["trace_probe_event.probes"]
		for node, n := w.o.Pointer(head), 0; node != head && node != 0 && n < 128; node, n = w.o.Pointer(node), n+1 {
			tk := node - w.l["trace_probe.list"] - w.l["trace_kprobe.tp"]
			e.probes = append(e.probes, tk+w.l["trace_kprobe.rp"]+w.l["kretprobe.kp"])
		}
	}
	return e
}

// eventName is the name of an event, or of its struct tracepoint.
func (w *Watch) eventName(at x86.Addr) string {
	word := func(s string) bool {
		for _, c := range s {
			if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return false
			}
		}
		return len(s) > 1
	}
	if s := w.o.String(at, 64); word(s) {
		return s
	}
	return w.o.String(w.o.Pointer(at+w.l["tracepoint.name"]), 64)
}

// handles: a handler of kprobes is entered for a hit.
func (w *Watch) handles(regs *x86.PtRegs, at x86.Addr, how int) {
	if w.places[at] == nil {
		return
	}
	t := w.task()
	h := t.take(func(h *hit) bool { return h.place.at == at && h.items[0].a.kp != 0 })
	if h == nil {
		return
	}
	h.how = how
	t.frames = append(t.frames, h)
	w.onReturn(regs, func(*x86.PtRegs) {
		for i := len(t.frames) - 1; i >= 0; i-- {
			if t.frames[i] == h {
				t.frames = t.frames[:i]
				break
			}
		}
		for i := range h.items {
			if it := &h.items[i]; it.open {
				it.open = false
				cause := FtraceAgain
				if how != byFtrace || w.disabled(it.a) {
					cause = Disabled
				}
				w.lose(it.a, calls, cause, t.at, &h.regs)
			}
		}
	})
}

// missed: kprobes_inc_nmissed_count.
func (w *Watch) missed() {
	t := w.task()
	if len(t.frames) == 0 {
		return
	}
	h := t.frames[len(t.frames)-1]
	cause := Running
	if h.how == byBreakpoint {
		cause = Nested
	}
	w.loseItems(h.items, calls, cause, t.at, &h.regs)
}

// itemsOf takes the items of a kprobe from the hit that is handled.
func (t *task) itemsOf(kp x86.Addr) (list []item) {
	if len(t.frames) == 0 {
		return nil
	}
	h := t.frames[len(t.frames)-1]
	for i := range h.items {
		if it := &h.items[i]; it.open && it.a.kp == kp {
			list = append(list, *it)
			it.open = false
		}
	}
	return list
}

// dispatches: the handler of a kprobe event is entered, with the accounts and the registers of the hit.
func (w *Watch) dispatches(t *task, regs, at *x86.PtRegs, kp x86.Addr, items []item) {
	for _, it := range items {
		if it.open {
			it.a.n[reached]++
		}
	}
	g := &gate{items: items, kp: kp, regs: *at}
	w.pass(t, regs, g)
}

// pass lets a task into a gate, until its function returns.
func (w *Watch) pass(t *task, regs *x86.PtRegs, g *gate) {
	t.gates = append(t.gates, g)
	w.onReturn(regs, func(*x86.PtRegs) {
		t.out(g)
		cause := Detached
		if g.entered {
			cause = Active
		}
		w.loseItems(g.items, reached, cause, t.at, &g.regs)
	})
}

// out takes a gate, and what is left of gates inside, from a task.
func (t *task) out(g *gate) {
	for i := len(t.gates) - 1; i >= 0; i-- {
		if t.gates[i] == g {
			t.gates = t.gates[:i]
			return
		}
	}
}

// callsPrograms: trace_call_bpf(call, ctx).
func (w *Watch) callsPrograms(regs *x86.PtRegs) {
	t, e := w.task(), w.events[x86.Addr(regs.DI)]
	if e == nil {
		return
	}
	if len(e.probes) > 0 {
		if n := len(t.gates); n > 0 && t.gates[n-1].kp != 0 {
			t.gates[n-1].entered = true
		}
		return
	}
	g := &gate{entered: true, regs: *regs}
	for _, a := range e.accounts {
		if a.attached {
			a.n[calls]++
			a.n[reached]++
			g.items = append(g.items, item{a, true})
		}
	}
	w.pass(t, regs, g)
}
