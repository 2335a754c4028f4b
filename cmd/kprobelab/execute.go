package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"kprobelab"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/printk"
	"kprobelab/internal/sample"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/tracing"
	"kprobelab/watch"
	"kprobelab/x86"
)

// execute plants the probes, makes the calls, takes the probes away.
func (p *plan) execute(t *term, img *kimage.Image, w work) (err error) {
	if n := len(w.tasks); n >= machine.MaxTasks { // the first makes the --call calls
		return usagef("--task: there can be %d tasks, not %d", machine.MaxTasks-1, n)
	}
	o := &kprobelab.Options{CPUs: p.cpus, Seed: p.seed, Budget: p.budget, Timeout: p.timeout, Optimize: true, Slice: p.slice, EveryInstruction: p.slice > 0}
	rec, err := record(p.perfetto)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.close()) }()
	lab, err := kprobelab.New(img, o)
	if err != nil {
		return machineError(img, err)
	}
	defer lab.Close()
	l := session.New(lab)
	rec.start(lab)
	r := &runner{lab: l, out: p.output(t, lab, len(w.tasks) > 0), rec: rec, traceOutput: p.traceOutput}
	if p.steps || p.json || rec != nil {
		l.Kprobes.Observe(func(e kprobes.Event) {
			rec.step(&e)
			if p.steps || p.json {
				r.out.step(l.Here(), &e)
			}
		})
	}
	h := session.Handlers{Pre: r.out.pre, Post: r.out.post, Returned: r.out.returned}
	h.Watched = func(p *session.Planted, hit *watch.Hit, regs *x86.PtRegs) {
		rec.watched(p, hit, regs)
		r.out.watched(p, hit, regs)
	}
	if p.noPost {
		h.Post = nil
	}
	l.Kprobes.OnLog(func(line string) { r.out.log("kernel", line) })
	l.Machine.OnLog(func(line string) { r.out.log("kernel", line) })
	l.Kprobes.OnTaken(func(_ *kprobes.Kprobe, err *kprobes.TakenError) {
		if r.taken == nil {
			r.taken = &failure{exitRefused, fmt.Errorf("%w (EBUSY)", err)}
			return
		}
		r.out.log("kprobelab", err.Error()+" (EBUSY)")
	})
	if p.dmesg {
		if err := r.logged(false); err != nil {
			return err
		}
	}
	if err := r.defineUser(&p.user); err != nil {
		return errors.Join(err, r.out.flush())
	}
	if p.as != "" {
		if err := l.As(p.as); err != nil {
			return &failure{exitRefused, fmt.Errorf("--as: %w", oneLine(err))}
		}
	}
	if err := l.Prepare(w.calls()); err != nil {
		return &failure{exitRefused, oneLine(err)}
	}
	err = r.begin(p, h)
	if err == nil {
		err = r.work(w)
	}
	err = errors.Join(err, r.traced())
	r.unplantAll()
	err = errors.Join(err, r.tracedUser(p.user.stats))
	r.out.counters(r.done)
	if err = errors.Join(err, r.out.flush(), r.taken); err == nil {
		err = r.ended
	}
	return err
}

// machineError is the error of a machine that cannot be made: the image's fault,
// or that of what the user chose.
func machineError(img *kimage.Image, err error) error {
	if errors.Is(err, machine.ErrLayout) {
		return &failure{exitImage, fmt.Errorf("%s: %w", img.Name(), err)}
	}
	return usagef("%w", err)
}

func (p *plan) output(t *term, l *kprobelab.Lab, many bool) output {
	w := bufio.NewWriter(t.out)
	c := &capped{buffer: w, written: []*latch{t.written, t.writtenErr}, most: p.maxOutput}
	if p.json {
		c.output = newJSON(w)
		return c
	}
	o := &textOutput{
		w: w, raw: t.rawOut, err: t.rawErr, lines: sample.Lines{Style: l.Image.Profile().Sample.Style},
		style: t.outStyle, many: many,
	}
	o.perf = newPerfScript(l)
	if p.steps {
		o.steps = newStepWriter(w, t.outStyle, l)
	}
	c.output = o
	return c
}

// runner is one run.
type runner struct {
	lab *session.Session
	out output
	// in are the probes in the text, done those that were.
	in, done []*session.Planted
	// rec is the trace for Perfetto, nil where none is asked for.
	rec *recording
	// tracing has the events, nil where none is asked for.
	tracing *tracing.Tracing
	// user are the uprobe events of the booted kernel's own, nil for none.
	user *session.Uprobes
	// traceOutput is the file for the text of trace.
	traceOutput string
	// kernelLog is the booted kernel's, nil where it is not asked for; seq is the next
	// message.
	kernelLog *printk.Log
	seq       uint64
	// ended is how the first program ended that did not end well.
	ended error
	// taken is the first probe that the booted kernel has taken the place of.
	taken error
}

// begin does all that comes before the calls.
func (r *runner) begin(p *plan, h session.Handlers) error {
	for _, s := range p.sysctls {
		_, value, err := parseSysctl(s)
		if err == nil {
			err = r.lab.Kprobes.WriteOptimization(value)
		}
		if err != nil {
			return usagef("--sysctl: %w", err)
		}
	}
	if err := r.plantAll(p.probes, h); err != nil {
		return err
	}
	if p.registers {
		r.lab.Watches.Registers = r.lab.Registers()
	}
	if err := r.watchAll(p.watches, h); err != nil {
		return err
	}
	if err := r.define(p.events, p.tracefs); err != nil || p.noSettle {
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
		r.out.log("kprobelab", fmt.Sprintf("optimized into a jump: %s; the ip that a pre handler sets, and what it returns, are ignored there; with a post handler, or with %s=0, a probe stays a breakpoint",
			strings.Join(jumps, ", "), optimizationSysctl))
	}
}

// plantAll plants in order and stops at the first refusal, as insmod would.
func (r *runner) plantAll(probes []callsyntax.Probe, h session.Handlers) error {
	for _, probe := range probes {
		p, err := r.lab.Plant(probe, h)
		if err != nil {
			r.out.refused(probe, err)
			return &failure{exitRefused, err}
		}
		r.in = append(r.in, p)
		r.out.planted(p)
	}
	return nil
}

// watchAll sets the watchpoints in order, with --registers as many as the kernel lets.
func (r *runner) watchAll(places []watch.Place, h session.Handlers) error {
	for _, place := range places {
		p, err := r.lab.Watch(place, h)
		if err != nil {
			r.out.notWatched(place, err)
			return &failure{exitRefused, fmt.Errorf("--watch %s: %w", place, err)}
		}
		r.in = append(r.in, p)
		r.out.planted(p)
	}
	return nil
}

// unplantAll takes the probes away, newest first as modules are unloaded.
func (r *runner) unplantAll() {
	for i := len(r.in) - 1; i >= 0; i-- {
		r.lab.Unplant(r.in[i])
		r.out.unregistered(r.in[i])
	}
	r.done, r.in = r.in, nil
}

// work makes the calls; with tasks, the calls are one task more.
func (r *runner) work(w work) error {
	if len(w.tasks) > 0 {
		return r.tasks(w)
	}
	for _, j := range w.jobs {
		err := r.job(j)
		if r.kernelLog != nil {
			err = errors.Join(err, r.logged(true))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) job(j bound) error {
	if err := r.lab.RunDueWorker(); err != nil {
		return err
	}
	if j.program != nil {
		return r.exec(j)
	}
	res, err := r.lab.Make(j.call)
	r.console()
	if err != nil {
		return r.fail(0, j.call, err)
	}
	r.out.called(0, res)
	return nil
}

// console shows what guest code wrote to its console.
func (r *runner) console() {
	if text := strings.TrimRight(string(r.lab.Machine.Console()), "\n"); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			r.out.log("console", strings.TrimSuffix(line, "\r")) // a serial line's
		}
	}
}

func (r *runner) fail(task int, c *session.Call, err error) error {
	err = oneLine(err)
	r.out.failed(task, c, err)
	return &failure{exitRefused, fmt.Errorf("%s: %w", c.Name, err)}
}

// joined is several errors whose texts stand on one line.
type joined struct{ error }

func (j joined) Error() string { return strings.ReplaceAll(j.error.Error(), "\n", "; ") }
func (j joined) Unwrap() error { return j.error }

// oneLine joins what several errors say.
func oneLine(err error) error { return joined{err} }

// tasks runs the calls and every --task as a task each.
func (r *runner) tasks(w work) error {
	sequences := w.tasks
	if calls := w.calls(); len(calls) > 0 {
		sequences = append([][]*session.Call{calls}, w.tasks...)
	}
	list, err := r.lab.Run(sequences)
	r.console()
	var failed error
	for _, t := range list {
		for _, res := range t.Results {
			r.out.called(t.Number, res)
		}
		if t.Err != nil {
			failed = errors.Join(failed, r.fail(t.Number, t.Failed, t.Err))
		}
	}
	if err = errors.Join(failed, err); err != nil {
		return &failure{exitRefused, oneLine(err)}
	}
	return nil
}
