package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kprobelab/internal/process"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/userprobe"
	"kprobelab/watch"
	debugregisters "kprobelab/watch/registers"
	"kprobelab/x86"
)

// define makes the events, of points first.
func (r *program) define() error {
	taken := map[string]int{}
	var lines []string
	for _, u := range r.plan.Points {
		line, err := r.line(u, taken)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	for _, line := range append(lines, r.plan.Events...) {
		e, err := r.trace.Define(line)
		if err != nil {
			return r.refused(line, err)
		}
		probe := uprobeOf(e)
		probe.Definition, probe.Hazard = line, e.Hazard
		r.put(Planted{*probe})
	}
	if pid := r.plan.PID; pid != 0 {
		for _, e := range r.trace.Events() {
			e.Probe.Filter = r.probes.OfProcess(pid)
		}
	}
	if err := r.trace.Enable(); err != nil {
		return refused(err)
	}
	return nil
}

// line is the definition of a probe in the language of uprobe_events.
func (r *program) line(u UserPoint, taken map[string]int) (string, error) {
	f, err := r.plan.Files.named(u.File)
	if err != nil {
		return "", err
	}
	return u.definition(f.Name, f.Offset, taken)
}

// refused is the kernel's answer to a definition, with the caret of error_log.
func (r *program) refused(line string, err error) error {
	e := RefusedProbe{Probe: Probe{Text: line}, Err: err}
	var d *definition.Error
	wrong := errors.As(err, &d)
	if wrong && d.ID != definition.NotLogged && d.ID != definition.NotAProbe {
		e.Log = fmt.Sprintf("trace_uprobe: error: %s\n  Command: %s\n%s^", d.ID.Text(&r.rules.Tracing), d.Command(), strings.Repeat(" ", 11+d.Column))
	}
	r.put(e)
	if !wrong {
		err = fmt.Errorf("%s: %w", line, err)
	}
	return refused(err)
}

// uprobeOf describes the probe of an event.
func uprobeOf(e *userprobe.TraceEvent) *Probe {
	p := &Probe{Kind: "uprobe", Text: e.Group + "/" + e.Event(), Hits: e.Probe.Hits, Missed: &e.Probe.Missed}
	if e.Return {
		p.Kind, p.Hits = "uretprobe", e.Probe.Returns
	}
	return p
}

// here returns the program's process, its current thread, and the time.
func (r *program) here() Where { return Where{PID: r.p.PID(), Task: r.p.TID(), Now: r.p.Now()} }

// observe has the steps of hits and the records become events.
func (r *program) observe() {
	if !r.plan.Steps {
		return
	}
	r.probes.OnEvent = func(e *userprobe.Event) { r.put(r.stepOf(e)) }
	r.trace.OnHit = func(h *userprobe.Record) {
		p, at := uprobeOf(h.Event), Where{PID: h.PID, Task: h.TID, Now: h.Time}
		p.Addr = &h.At
		args := make([]Arg, len(h.Args))
		for i, value := range h.Args {
			args[i] = Arg{h.Event.Args[i].Name, value}
		}
		if h.Event.Return {
			r.put(Returned{Probe: p, Where: at, Value: h.Regs.AX, Duration: -1, Regs: h.Regs, Text: h.Text, Args: args, To: h.Return})
			return
		}
		r.put(Hit{Probe: p, Where: at, Regs: h.Regs, Text: h.Text, Args: args})
	}
}

// watch sets the watchpoints. A symbol is the program's own, an address is one of its memory.
func (r *program) watch() error {
	set := watch.NewSet(r.p.Machine())
	if r.plan.Registers {
		set.Registers = debugregisters.New(debugregisters.Kernel{CPUs: 1})
	}
	return r.watchAll(r.plan.Watches, func(place watch.Place) (*Probe, error) {
		w, err := r.watchpoint(place)
		if err != nil {
			return nil, err
		}
		p := &Probe{Kind: "watchpoint", Text: place.String(), Watched: w, Addr: &w.Addr}
		w.Handler = func(_ *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) {
			now := *h
			now.Now = r.p.Now()
			r.put(Accessed{Probe: p, Where: r.here(), Hit: &now, Regs: regs, of: r})
		}
		if err := set.Add(w); err != nil {
			return nil, err
		}
		r.watched = append(r.watched, p)
		return p, nil
	})
}

// watchpoint is the one at a place, not set yet.
func (r *program) watchpoint(p watch.Place) (*watch.Watchpoint, error) {
	w := p.Watchpoint()
	if p.Symbol != "" {
		at, err := r.p.Symbol(p.Symbol)
		if err != nil {
			return nil, err
		}
		w.Addr += at
	}
	return w, nil
}

// counters gives the probes' counts, and what became of the system calls.
func (r *program) counters() {
	var list []Probe
	for _, e := range r.trace.Events() {
		list = append(list, *uprobeOf(e))
	}
	for _, p := range r.watched {
		p.Hits = p.Watched.Hits
		list = append(list, *p)
	}
	r.put(Counters{list, r.stats()})
}

func (r *program) stats() string {
	var b strings.Builder
	s := &r.probes.Stats
	b.WriteString(r.trace.Profile())
	for _, one := range r.watched {
		fmt.Fprintf(&b, "  watchpoint %s: hits %d\n", one.Text, one.Hits)
	}
	fmt.Fprintf(&b, "  int3 %d: emulated %d, stepped %d; returns %d, left by longjmp %d\n", s.Hits, s.Emulated, s.Stepped, s.Returns, s.Unwound)
	if r.rules.Uprobes.OptimizesNop5 || r.rules.Uprobes.OptimizesNop10 {
		fmt.Fprintf(&b, "  nops that became calls %d: hits by them %d\n", s.Optimized, s.Calls)
	}
	fmt.Fprintf(&b, "  instructions %d, system calls %d\n", r.p.Machine().Instructions(), r.p.Syscalls)
	for _, nr := range slices.Sorted(maps.Keys(r.p.Unknown)) {
		if nr == process.UnknownRest {
			fmt.Fprintf(&b, "  system calls of other numbers that do not exist here (ENOSYS): %d times\n", r.p.Unknown[nr])
			continue
		}
		fmt.Fprintf(&b, "  system call %d does not exist here (ENOSYS): %d times\n", nr, r.p.Unknown[nr])
	}
	return b.String()
}
