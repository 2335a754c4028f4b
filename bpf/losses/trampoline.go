package losses

import (
	"fmt"

	"kprobelab/x86"
)

// attachTypes are the programs of trampolines by enum bpf_attach_type (include/uapi/linux/bpf.h).
var attachTypes = map[uint32]string{24: "fentry", 25: "fexit", 26: "fmod_ret", 27: "lsm"}

func (w *Watch) followTrampolines() {
	w.on("bpf_trampoline_link_prog", w.links)
	w.on("bpf_trampoline_unlink_prog", func(regs *x86.PtRegs) {
		if p := w.linked(x86.Addr(regs.DI)); p != nil {
			for _, a := range w.accounts {
				if a.prog == p && attached[a.kind] && a.attached {
					w.detach(a)
				}
			}
		}
	})
	if !w.entersWithProgram {
		return
	}
	for _, f := range []string{"__bpf_prog_enter", "__bpf_prog_enter_recur", "__bpf_prog_enter_sleepable", "__bpf_prog_enter_sleepable_recur", "__bpf_prog_enter_lsm_cgroup"} {
		w.on(f, w.entersProgram)
	}
}

// attached are the kinds of programs of trampolines.
var attached = map[string]bool{"fentry": true, "fexit": true, "fmod_ret": true, "lsm": true}

// linked is the program of a link of a trampoline: the argument is the program itself before 6.0, a struct bpf_tramp_link that
// begins with a struct bpf_link later, and newer kernels have a pointer to that.
func (w *Watch) linked(at x86.Addr) *program {
	if p := w.programs[at]; p != nil {
		return p
	}
	if p := w.programs[w.o.Pointer(at+w.l["bpf_tramp_link.link"]+w.l["bpf_link.prog"])]; p != nil {
		return p
	}
	if node, ok := w.l["bpf_tramp_node.link"]; ok {
		return w.programs[w.o.Pointer(w.o.Pointer(at+node)+w.l["bpf_link.prog"])]
	}
	return nil
}

// links: bpf_trampoline_link_prog(link, trampoline).
func (w *Watch) links(regs *x86.PtRegs) {
	p := w.linked(x86.Addr(regs.DI))
	if p == nil {
		return
	}
	kind := attachTypes[w.o.Word(p.at+w.l["bpf_prog.expected_attach_type"])]
	if kind == "" {
		return
	}
	at := w.o.Pointer(x86.Addr(regs.SI) + w.l["bpf_trampoline.func.addr"])
	a := &account{prog: p, kind: kind, name: w.probeName(at), key: x86.Addr(regs.SI)}
	if w.o.Word(at) == endbr {
		at += 4
	}
	w.probe(at, a)
	w.onReturn(regs, func(regs *x86.PtRegs) {
		if int32(regs.AX) == 0 {
			a.attached = true
			w.accounts = append(w.accounts, a)
		}
	})
}

// endbr is endbr64, with which functions begin that may be called by pointers.
const endbr = 0xfa1e0ff3

// entersProgram: __bpf_prog_enter…(prog, context) in a trampoline.
func (w *Watch) entersProgram(regs *x86.PtRegs) {
	p := w.programs[x86.Addr(regs.DI)]
	if p == nil {
		return
	}
	var a *account
	for _, known := range w.accounts {
		if known.prog == p && attached[known.kind] {
			a = known
		}
	}
	if a == nil {
		return
	}
	t := w.task()
	at := w.arrives(t, a, regs)
	g := &gate{items: []item{{a, true}}, once: true, regs: *at}
	w.onReturn(regs, func(regs *x86.PtRegs) {
		if regs.AX == 0 {
			w.loseItems(g.items, reached, Active, t.at, &g.regs)
			return
		}
		t.gates = append(t.gates, g)
	})
}

// arrives: a trampoline is about to run a program. It returns the registers at the probed instruction.
func (w *Watch) arrives(t *task, a *account, regs *x86.PtRegs) *x86.PtRegs {
	a.n[reached]++
	switch a.kind {
	case "fentry", "lsm":
		h := t.take(func(h *hit) bool { return h.items[0].a.kp == 0 && h.has(a) })
		if h == nil {
			break
		}
		for i := range h.items {
			if h.items[i].a == a {
				h.items[i].open = false
			} else if h.items[i].open {
				t.pending = append(t.pending, h) // other programs of the trampoline are yet to come
				break
			}
		}
		return &h.regs
	default:
		for i := len(t.inside) - 1; i >= 0; i-- {
			if c := t.inside[i]; c.a == a {
				t.inside = append(t.inside[:i:i], t.inside[i+1:]...)
				return &c.regs
			}
		}
	}
	a.n[calls]++ // the call was under way when the program was attached
	return regs
}

// has reports whether an account of a hit is open.
func (h *hit) has(a *account) bool {
	for i := range h.items {
		if h.items[i].a == a && h.items[i].open {
			return true
		}
	}
	return false
}

func (w *Watch) followRaw() {
	for n := 1; n <= 12; n++ {
		w.on(fmt.Sprintf("bpf_trace_run%d", n), w.raw)
	}
}

// raw: bpf_trace_runN(prog or link, arguments).
func (w *Watch) raw(regs *x86.PtRegs) {
	p := w.programs[x86.Addr(regs.DI)]
	if p == nil {
		p = w.programs[w.o.Pointer(x86.Addr(regs.DI)+w.l["bpf_raw_tp_link.link"]+w.l["bpf_link.prog"])]
	}
	if p == nil {
		return
	}
	var a *account
	for _, known := range w.accounts {
		if known.prog == p {
			a = known
		}
	}
	if a == nil {
		a = &account{prog: p, kind: "raw_tp", name: w.o.String(w.o.Pointer(p.aux+w.l["bpf_prog_aux.attach_func_name"]), 64), attached: true}
		w.accounts = append(w.accounts, a)
	}
	t := w.task()
	a.n[calls]++
	a.n[reached]++
	w.pass(t, regs, &gate{items: []item{{a, true}}, entered: true, regs: *regs})
}
