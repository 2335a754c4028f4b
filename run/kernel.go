package run

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab"
	"kprobelab/internal/debuginfo"
	"kprobelab/internal/printk"
	"kprobelab/internal/report"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/tracing"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Run does what the plan says: plants the probes, makes the calls, takes the probes away. The error is an *Error, an
// *ExitError where nothing but a program's exit code is not 0, or the error of the image, of a call's syntax, of the engine.
func (p *Kernel) Run(img *kimage.Image, to Sink) error {
	if err := p.Check(); err != nil {
		return err
	}
	rest, own := p.divided()
	p = &rest
	if err := p.onImage(img, &own); err != nil {
		return err
	}
	var err error
	if p.Events, err = p.described(img).All(p.Events); err != nil {
		return SourceError(err)
	}
	w, err := p.bind(img)
	if err != nil {
		return err
	}
	w.own = own
	lab, err := kprobelab.New(img, &kprobelab.Options{
		CPUs: p.CPUs, Seed: p.Seed, Budget: p.Budget, Timeout: p.Timeout, Optimize: true, Slice: p.Slice, EveryInstruction: p.Slice > 0,
	})
	if err != nil {
		return MachineError(img, err)
	}
	defer lab.Close()
	lab.FollowPools()
	r := &runner{lab: session.New(lab), feed: feed{to}, steps: newKernelSteps(lab)}
	r.warn(img, p)
	r.put(Started{Lab: lab, Name: img.Name(), Names: NamesOf(lab)})
	return r.run(p, w)
}

// described returns the debugging information that describes the image's functions.
func (p *Kernel) described(img *kimage.Image) *debuginfo.Info {
	if p.Debuginfo != "" {
		return debuginfo.OfFile(img, p.Debuginfo)
	}
	return debuginfo.Of(img, p.Modules...)
}

// warn tells of the probes that the kernel accepts and that then do harm.
func (r *runner) warn(img *kimage.Image, p *Kernel) {
	var list []string
	for _, probe := range p.Probes {
		list = append(list, probe.String())
	}
	for _, h := range report.ProbeHazards(img, append(list, p.Events...)) {
		if h.Effect.Harms() {
			r.put(Harmful{Probe: h.Probe, Hazard: string(h.ID), Effect: string(h.Effect), Says: h.Says})
		}
	}
}

// MachineError returns the error of a run whose machine cannot be made. It tells whether
// the image is at fault, or an option that the user chose.
func MachineError(img *kimage.Image, err error) error {
	if errors.Is(err, machine.ErrLayout) {
		return unusable(fmt.Errorf("%s: %w", img.Name(), err))
	}
	return misused("%w", err)
}

// runner is one run.
type runner struct {
	lab *session.Session
	feed
	steps *kernelSteps
	// in holds the probes that are planted now, done the probes that were planted and are removed.
	in, done []*session.Planted
	// tracing has the events, nil if the plan has none.
	tracing *tracing.Tracing
	// user are the uprobe events of the booted kernel's own, nil for none.
	user *session.Uprobes
	// kernelLog is the booted kernel's, nil where it is not asked for; seq is the next
	// message.
	kernelLog *printk.Log
	seq       uint64
	// ended is the exit of the first program whose exit code is not 0; nil if there is none.
	ended error
	// taken is the first probe that the booted kernel has taken the place of.
	taken error
}

func (r *runner) run(p *Kernel, w work) error {
	r.listen(p)
	if err := r.give(w.jobs); err != nil {
		return err
	}
	if p.Dmesg {
		if err := r.logged(false); err != nil {
			return err
		}
	}
	if err := r.defineUser(&w.own); err != nil {
		return err
	}
	if p.As != "" {
		k, err := r.lab.Booted()
		if err == nil {
			err = k.As(p.As)
		}
		if err != nil {
			return refused(fmt.Errorf("--as: %w", OneLine(err)))
		}
	}
	if err := r.lab.Prepare(w.calls()); err != nil {
		return refused(OneLine(err))
	}
	err := r.begin(p)
	if err == nil {
		err = r.work(w)
	}
	err = errors.Join(err, r.traced(p))
	r.unplantAll()
	err = errors.Join(err, r.tracedUser(w.own.stats))
	r.put(Done{})
	r.counters()
	if err = errors.Join(err, r.taken); err == nil {
		err = r.ended
	}
	return err
}

// listen makes events of the reports of the machine and of the subsystem.
func (r *runner) listen(p *Kernel) {
	l := r.lab
	if p.Steps {
		l.Kprobes.Observe(func(e kprobes.Event) { r.put(r.steps.stepOf(l, &e)) })
	}
	kernel := func(line string) { r.log("kernel", line) }
	l.Kprobes.OnLog(kernel)
	l.Machine.OnLog(kernel)
	l.Kprobes.OnTaken(func(_ *kprobes.Kprobe, err *kprobes.TakenError) {
		if r.taken == nil {
			r.taken = refused(fmt.Errorf("%w (EBUSY)", err))
			return
		}
		r.log("kprobelab", err.Error()+" (EBUSY)")
	})
}

// handlers returns the handlers that all probes share. They make the events.
func (r *runner) handlers(noPost bool) session.Handlers {
	h := session.Handlers{
		Pre: func(p *session.Planted, at session.Where, regs *x86.PtRegs) {
			r.put(Hit{Probe: probeOf(p), Where: where(at), Regs: regs})
		},
		Post: func(p *session.Planted, at session.Where, regs *x86.PtRegs) {
			r.put(Hit{Probe: probeOf(p), Where: where(at), Regs: regs, Post: true})
		},
		Returned: func(p *session.Planted, at session.Where, value uint64, ns int64) {
			r.put(Returned{Probe: probeOf(p), Where: where(at), Value: value, Duration: ns})
		},
		Watched: func(p *session.Planted, h *watch.Hit, regs *x86.PtRegs) {
			r.put(Accessed{Probe: probeOf(p), Where: Where{CPU: h.CPU, Task: h.Task, Now: h.Now}, Hit: h, Regs: regs, of: r.steps})
		},
	}
	if noPost {
		h.Post = nil
	}
	return h
}

// sysctl sets a sysctl of our kprobes, or of the booted kernel.
func (r *runner) sysctl(text string, guest bool) error {
	name, value, err := parseSysctl(text, guest)
	switch {
	case err != nil:
		return err
	case name == OptimizationSysctl:
		return r.lab.Kprobes.WriteOptimization(value)
	}
	k, err := r.lab.Booted()
	if err != nil {
		return err
	}
	return k.SetSysctl(name, value)
}

// begin does all that comes before the calls.
func (r *runner) begin(p *Kernel) error {
	for _, s := range p.Sysctls {
		if err := r.sysctl(s, p.guest()); err != nil {
			return misused("--sysctl: %w", err)
		}
	}
	h := r.handlers(p.NoPost)
	if err := r.plantAll(p.Probes, h); err != nil {
		return err
	}
	if p.Registers {
		r.lab.Watches.Registers = r.lab.Registers()
	}
	err := r.watchAll(p.Watches, func(place watch.Place) (*Probe, error) {
		w, err := r.lab.Watch(place, h)
		if err != nil {
			return nil, err
		}
		r.in = append(r.in, w)
		return probeOf(w), nil
	})
	if err != nil {
		return err
	}
	if err := r.define(p); err != nil || p.NoSettle {
		return err
	}
	if err := r.lab.Settle(); err != nil {
		return err
	}
	r.warnOfJumps()
	return nil
}

// warnOfJumps says what handlers cannot do where a probe is a jump (kprobes.rst,
// the note at the end of How Does Jump Optimization Work).
func (r *runner) warnOfJumps() {
	var jumps []string
	for _, p := range r.in {
		if p.Optimized() {
			jumps = append(jumps, p.Probe.String())
		}
	}
	if jumps != nil {
		r.log("kprobelab", fmt.Sprintf("optimized into a jump: %s; the ip that a pre handler sets, and what it returns, are ignored there; with a post handler, or with %s=0, a probe stays a breakpoint",
			strings.Join(jumps, ", "), OptimizationSysctl))
	}
}

// plantAll plants in order and stops at the first refusal, as insmod would.
func (r *runner) plantAll(probes []KernelProbe, h session.Handlers) error {
	for _, probe := range probes {
		p, err := r.lab.Plant(probe.probe, h)
		if err != nil {
			r.put(RefusedProbe{Probe: *probeOf(&session.Planted{Probe: probe.probe}).unplaced(), Err: err})
			return refused(err)
		}
		r.in = append(r.in, p)
		r.put(Planted{*probeOf(p)})
	}
	return nil
}

// unplantAll takes the probes away, newest first as modules are unloaded.
func (r *runner) unplantAll() {
	for i := len(r.in) - 1; i >= 0; i-- {
		r.lab.Unplant(r.in[i])
		r.put(Removed{*probeOf(r.in[i])})
	}
	r.done, r.in = r.in, nil
}

func (r *runner) counters() {
	list := make([]Probe, len(r.done))
	for i, p := range r.done {
		list[i] = *probeOf(p)
	}
	r.put(Counters{Probes: list})
}
