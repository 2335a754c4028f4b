package losses

import (
	"fmt"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

func (w *Watch) followMulti() {
	if !w.l.has("bpf_kprobe_multi_link.fp", "bpf_link.prog", "fprobe.entry_handler", "fprobe.exit_handler") {
		return
	}
	w.on("register_fprobe_ips", w.registersMulti)
	w.on("unregister_fprobe", func(regs *x86.PtRegs) {
		for _, a := range w.accounts {
			if a.key == x86.Addr(regs.DI) {
				a.attached = false
			}
		}
	})
	w.on("kprobe_multi_link_handler", w.multiEnters)
	w.on("kprobe_multi_link_exit_handler", w.multiExits)
}

// registersMulti: register_fprobe_ips(fp, addresses, number).
func (w *Watch) registersMulti(regs *x86.PtRegs) {
	fp, list, n := x86.Addr(regs.DI), x86.Addr(regs.SI), int(int32(regs.DX))
	p := w.programs[w.o.Pointer(fp-w.l["bpf_kprobe_multi_link.fp"]+w.l["bpf_kprobe_multi_link.link"]+w.l["bpf_link.prog"])]
	if p == nil || n < 1 {
		return
	}
	a := &account{prog: p, kind: "kprobe.multi", key: fp, name: w.probeName(w.o.Pointer(list))}
	switch {
	case w.o.Pointer(fp+w.l["fprobe.entry_handler"]) == 0:
		a.kind = "kretprobe.multi"
		a.unknown = "what becomes of a call before its return is not followed for multi-probes"
	case w.o.Pointer(fp+w.l["fprobe.exit_handler"]) != 0:
		a.kind = "kprobe.session"
		a.unknown = "the calls of sessions are not followed"
	case n > bounded.LossFunctions:
		a.unknown = fmt.Sprintf("%d functions are too many to observe their calls", n)
	}
	if n > 1 {
		a.name = fmt.Sprintf("%s and %d more", a.name, n-1)
	}
	if a.unknown == "" {
		for i := range n {
			at := w.o.Pointer(list + x86.Addr(8*i))
			if w.o.Word(at) == endbr {
				at += 4
			}
			w.probe(at, a)
		}
	}
	w.onReturn(regs, func(regs *x86.PtRegs) {
		if int32(regs.AX) == 0 {
			a.attached = true
			w.accounts = append(w.accounts, a)
		}
	})
}

// multi is the account of a struct fprobe.
func (w *Watch) multi(fp x86.Addr) *account {
	for _, a := range w.accounts {
		if a.key == fp {
			return a
		}
	}
	return nil
}

// multiEnters: kprobe_multi_link_handler(fp, ...).
func (w *Watch) multiEnters(regs *x86.PtRegs) {
	a := w.multi(x86.Addr(regs.DI))
	if a == nil {
		return
	}
	t := w.task()
	at := regs
	if h := t.take(func(h *hit) bool { return h.has(a) }); h != nil {
		at = &h.regs
		for i := range h.items {
			if h.items[i].a == a {
				h.items[i].open = false
			} else if h.items[i].open {
				t.pending = append(t.pending, h)
				break
			}
		}
	} else {
		a.n[calls]++
	}
	a.n[reached]++
	w.pass(t, regs, &gate{items: []item{{a, true}}, entered: true, regs: *at})
}

// multiExits: kprobe_multi_link_exit_handler(fp, ...).
func (w *Watch) multiExits(regs *x86.PtRegs) {
	a := w.multi(x86.Addr(regs.DI))
	if a == nil {
		return
	}
	a.n[calls]++
	a.n[reached]++
	w.pass(w.task(), regs, &gate{items: []item{{a, true}}, entered: true, regs: *regs})
}
