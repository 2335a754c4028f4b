package main

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/watch"
	debugregisters "kprobelab/watch/registers"
	"kprobelab/x86"
)

// userWatches are the watchpoints of a program.
type userWatches struct {
	run    *userRun
	tl     *userRecording // nil: nothing is recorded
	script perfScript
	steps  *userSteps // nil: a hit is one line
	set    []*userWatch
}

type userWatch struct {
	watch.Place
	*watch.Watchpoint
}

// watch sets the watchpoints. A symbol is the program's own, an address is one of its memory.
func (r *userRun) watch(places *userPlaces, tl *userRecording) error {
	u := &userWatches{run: r, tl: tl, script: perfScript{places.place, func(int) (int, string) { return r.p.TID(), r.p.Comm() }}}
	if r.plan.steps {
		u.steps = newUserSteps(r, places)
	}
	set := watch.NewSet(r.p.Machine())
	if r.plan.registers {
		set.Registers = debugregisters.New(debugregisters.Kernel{CPUs: 1})
	}
	for _, place := range r.plan.watches {
		w, err := r.watchpoint(place)
		if err == nil {
			one := &userWatch{place, w}
			w.Handler = func(_ *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) { u.hit(one, h, regs) }
			err = set.Add(w)
		}
		if err != nil {
			u.refused(place, err)
			return &failure{exitRefused, fmt.Errorf("--watch %s: %w", place, err)}
		}
		u.set = append(u.set, &userWatch{place, w})
		if r.json != nil {
			r.json.write(u.set[len(u.set)-1].event("planted"))
		}
	}
	r.watches = u.set
	return nil
}

// watchpoint is the one at a place, not set yet.
func (r *userRun) watchpoint(p watch.Place) (*watch.Watchpoint, error) {
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

func (w *userWatch) event(name string) event {
	return event{Event: name, Kind: "watchpoint", Probe: w.Place.String(), Addr: w.Watchpoint.Addr.String()}
}

func (u *userWatches) refused(p watch.Place, err error) {
	if u.run.json != nil {
		u.run.json.write(event{Event: "refused", Kind: "watchpoint", Probe: p.String(), Errno: -int(errno.Of(err)), Error: err.Error()})
	}
}

// hit prints a hit, and records it.
func (u *userWatches) hit(w *userWatch, h *watch.Hit, regs *x86.PtRegs) {
	r := u.run
	if r.full() {
		return
	}
	now := *h
	now.Now = r.p.Now()
	if u.tl != nil {
		u.tl.watched(w, &now, regs)
	}
	if r.json == nil {
		line := u.script.line(w.Watchpoint, &now, regs)
		if u.steps != nil {
			line = u.steps.watched(w.Place, fmt.Sprintf("process %d, thread %d", r.p.PID(), r.p.TID()), &now, regs, line)
		}
		fmt.Fprintln(r.w, line)
		return
	}
	e := w.event("watch").registers(regs)
	pid, tid := r.p.PID(), r.p.TID()
	e.PID, e.Task, e.Time = &pid, &tid, &now.Now
	e.Access, e.Old, e.New = watch.Access(h.Kinds), hexWord(h.Old), hexWord(h.New)
	if h.Kinds == machine.WatchExec {
		e.Old, e.New = "", ""
	}
	r.json.write(e)
}
