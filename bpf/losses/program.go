package losses

import (
	"errors"

	"kprobelab/x86"
)

// ErrTypes: the kernel does not describe the types that are read.
var ErrTypes = errors.New("this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF), by which losses are found")

// program is a BPF program of the guest, or a function of one.
type program struct {
	at, aux x86.Addr
	name    string
	id      uint32
	// image is its machine code.
	image x86.Range
}

// execution is a program that runs.
type execution struct {
	prog *program
	a    *account
	task *task
	regs x86.PtRegs
	// records counts the records that it has submitted; the others say what else became of what it wanted to give.
	records, ringFull, perfFull, perfOther, mapFull, mapRefused, stored, discarded int
	// reserved are the records that it has reserved and not submitted.
	reserved []*record
	// begun are the instructions and the interrupts at its begin.
	begun, interrupts uint64
	// event is the perf event that gets a record.
	event x86.Addr
}

func (w *Watch) followPrograms() {
	w.on("bpf_prog_kallsyms_add", func(regs *x86.PtRegs) { w.loaded(x86.Addr(regs.DI)) })
	w.on("bpf_jit_free", func(regs *x86.PtRegs) { w.freed(x86.Addr(regs.DI)) })
}

// loaded: a program, or a function of one, has its machine code.
func (w *Watch) loaded(at x86.Addr) {
	aux := w.o.Pointer(at + w.l["bpf_prog.aux"])
	p := &program{at: at, aux: aux, name: w.o.String(aux+w.l["bpf_prog_aux.name"], 16), id: w.o.Word(aux + w.l["bpf_prog_aux.id"])}
	start := w.o.Pointer(at + w.l["bpf_prog.bpf_func"])
	p.image = x86.Range{Start: start, End: start + x86.Addr(w.o.Word(at+w.l["bpf_prog.jited_len"]))}
	w.programs[at], w.entries[start] = p, p
	if p.image.Start == p.image.End {
		w.note("%s is not compiled to machine code (net.core.bpf_jit_enable), so that its runs are not seen", p.name)
	}
	if !w.seen[start] {
		w.seen[start] = true
		ok := w.o.On(start, func(regs *x86.PtRegs) {
			if p := w.entries[start]; p != nil && !w.ended {
				w.runs(p, regs)
			}
		})
		if !ok {
			w.note("the runs of %s are not seen: the machine has no room to observe more instructions", p.name)
		}
	}
	if w.coverage != nil {
		w.coverage.loaded(p)
	}
}

// freed: the machine code of a program goes.
func (w *Watch) freed(at x86.Addr) {
	p := w.programs[at]
	if p == nil {
		return
	}
	if w.coverage != nil {
		w.coverage.freed(p)
	}
	delete(w.programs, at)
	if w.entries[p.image.Start] == p {
		delete(w.entries, p.image.Start)
	}
}

// inProgram reports whether an address is in the machine code of a program.
func (w *Watch) inProgram(at x86.Addr) bool {
	for _, p := range w.programs {
		if at >= p.image.Start && at <= p.image.End {
			return true
		}
	}
	return false
}

// runs: the first instruction of a program is about to be executed.
func (w *Watch) runs(p *program, regs *x86.PtRegs) {
	if w.inProgram(w.o.Pointer(x86.Addr(regs.SP))) {
		return // a function of a program
	}
	t := w.task()
	a, at := w.passed(t, p, regs)
	if a == nil {
		return
	}
	e := &execution{prog: p, a: a, task: t, regs: *at}
	e.begun, e.interrupts = w.o.Begun(), w.o.Interrupts()
	a.n[ran]++
	t.runs = append(t.runs, e)
	w.onReturn(regs, func(regs *x86.PtRegs) { w.runEnds(t, e, "", regs) })
}

// passed is the account for which a program runs, and the registers at the probe.
func (w *Watch) passed(t *task, p *program, regs *x86.PtRegs) (*account, *x86.PtRegs) {
	if n := len(t.gates); n > 0 {
		g := t.gates[n-1]
		for i := range g.items {
			if it := &g.items[i]; it.open && it.a.prog.at == p.at {
				it.open = false
				if g.once {
					t.out(g)
				}
				return it.a, &g.regs
			}
		}
		if g.kp != 0 || g.once {
			for _, a := range w.accounts { // the call was under way when the program was attached
				if a.prog.at == p.at && (g.kp == 0 || a.kp == g.kp) {
					a.n[calls]++
					a.n[reached]++
					return a, &g.regs
				}
			}
		}
	}
	for _, a := range w.accounts {
		if a.prog.at != p.at {
			continue
		}
		switch a.kind { // the trampolines of kernels before 5.12 say no program
		case "fentry", "fexit", "fmod_ret", "lsm":
			at := w.arrives(t, a, regs)
			return a, at
		}
	}
	a := &account{prog: p, kind: "other", name: "-", unknown: "the losses of this kind of program are not followed"}
	for _, known := range w.accounts {
		if known.prog.at == p.at {
			a = known
		}
	}
	if len(w.accounts) == 0 || w.accounts[len(w.accounts)-1] != a && a.kind == "other" && a.n[ran] == 0 {
		w.accounts = append(w.accounts, a)
	}
	a.n[calls]++
	a.n[reached]++
	return a, regs
}

// runEnds: a program returns, or does not, for a cause.
func (w *Watch) runEnds(t *task, e *execution, cause string, regs *x86.PtRegs) {
	for i := len(t.runs) - 1; i >= 0; i-- {
		if t.runs[i] == e {
			t.runs = t.runs[:i]
			break
		}
	}
	if regs != nil && w.o.Interrupts() == e.interrupts {
		e.a.cost.add(w.o.Begun() - e.begun)
	}
	for _, r := range e.reserved {
		if !r.submitted && !r.gone {
			r.gone = true
			w.lose(e.a, wanted, Unsubmitted, t.at, &e.regs)
		}
	}
	switch {
	case e.records > 0:
		e.a.n[gave]++
		return
	case cause != "":
	case e.ringFull > 0:
		cause = RingFull
	case e.perfFull > 0:
		cause = PerfFull
	case e.perfOther > 0:
		cause = PerfOther
	case e.mapFull > 0:
		cause = MapFull
	case e.mapRefused > 0:
		cause = MapRefused
	case e.stored > 0:
		cause = InMap
	case e.discarded > 0:
		cause = Discarded
	case len(e.reserved) > 0:
		cause = Unsubmitted
	default:
		cause = Nothing
	}
	w.lose(e.a, ran, cause, t.at, &e.regs)
}

// running is the program that runs in the task, nil without one.
func (w *Watch) running() *execution {
	t := w.tasks[w.o.Task()]
	if t == nil || len(t.runs) == 0 {
		return nil
	}
	return t.runs[len(t.runs)-1]
}
