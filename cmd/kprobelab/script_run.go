package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/host"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// scriptRun runs a script of any language, and makes happen what it waits for.
type scriptRun struct {
	calls   []string
	command string
	budget  uint64
	wait    time.Duration
	stats   bool
	// errors and skipped are how many do not end the script.
	errors, skipped uint64
	// anyCode says that the program of -c may end as it likes.
	anyCode bool
	// program is the one of -c, where its symbols are wanted and known.
	program *host.Program
	// failed is said of a script that has ended with an error.
	failed error
}

// start runs the script, on a machine only where it needs one.
func (r *scriptRun) start(t *term, img *kimage.Image, s *attach.Script) error {
	if r.wait <= 0 {
		return usagef("--for: %s is no time that can pass", r.wait)
	}
	needs := r.command != "" || len(r.calls) > 0
	for _, p := range s.Probes {
		switch p.Kind {
		case host.Call, host.Return, host.Trace, host.Data, host.User:
			needs = needs || p.Handler != nil
		}
	}
	if !needs {
		run, err := attach.New(s, r.options(t, img))
		if err != nil {
			return &failure{exitRefused, err}
		}
		run.Begin()
		run.Wait(uint64(r.wait))
		return r.ended(t, run)
	}
	if r.command != "" && img.Core() == nil {
		return &failure{exitImage, fmt.Errorf("%s: -c needs the memory dump of a booted kernel; kprobelab boot makes one", img.Name())}
	}
	return r.execute(t, img, s)
}

func (r *scriptRun) options(t *term, img *kimage.Image) *attach.Options {
	return &attach.Options{
		Image: img, Out: t.out, HZ: int64(img.Profile().HZ),
		Log:       func(line string) { fmt.Fprintln(t.err, line) },
		MaxErrors: r.errors, MaxSkipped: r.skipped,
		Command: r.command != "", Program: r.program,
	}
}

// execute runs a script on a machine.
func (r *scriptRun) execute(t *term, img *kimage.Image, s *attach.Script) error {
	var calls []*session.Call
	for _, text := range r.calls {
		c, err := session.BindCall(img, text)
		if err != nil {
			return bad(err)
		}
		calls = append(calls, c)
	}
	var command *mailbox.Command
	if r.command != "" {
		c, err := mailbox.Program(mailbox.Exec, r.command, nil)
		if err != nil {
			return usagef("-c: %w", err)
		}
		command = &c
	}
	lab, err := kprobelab.New(img, &kprobelab.Options{Budget: r.budget, Optimize: true})
	if err != nil {
		return machineError(img, err)
	}
	defer lab.Close()
	l := session.New(lab)
	if err := l.Prepare(calls); err != nil {
		return &failure{exitRefused, oneLine(err)}
	}
	o := r.options(t, img)
	o.Machine, o.Kprobes = lab.Machine, lab.Kprobes
	warned := func(remove func() error, err error) (func(), error) {
		if err != nil {
			return nil, err
		}
		return func() {
			if err := remove(); err != nil {
				o.Log("WARNING: " + err.Error())
			}
		}, nil
	}
	o.Tracepoint = func(name string, hit func(*x86.PtRegs)) (func(), error) {
		return warned(lab.Tracepoint(name, hit))
	}
	o.Record = func(event string, hit func(*x86.PtRegs)) (func(), error) {
		for _, e := range img.Events() {
			if e.System+":"+e.Name == event {
				return warned(lab.Record(&e, func(_ x86.Addr, regs *x86.PtRegs) { hit(regs) }))
			}
		}
		return nil, errno.ENOENT
	}
	o.Watch = func(w *host.Watched, hit func(*x86.PtRegs)) (func(), error) {
		return warned(setWatch(lab, w, hit))
	}
	if img.Core() != nil {
		plant, closeAll := uprobes(l)
		defer closeAll()
		o.Uprobe = func(p *host.InProgram, hit func(uint64, *x86.PtRegs)) (func(), error) { return warned(plant(p, hit)) }
	}
	run, err := attach.New(s, o)
	if err != nil {
		return &failure{exitRefused, err}
	}
	run.Begin()
	err = lab.Settle()
	if err == nil && !run.Ended() {
		err = r.happen(t, l, run, calls, command)
	}
	run.Late()
	return errors.Join(r.ended(t, run), err)
}

// dry is the end of a script that would run now: its first probes have run, and what they have
// printed is thrown away; what they have left in maps is printed.
func (r *scriptRun) dry(t *term, img *kimage.Image, s *attach.Script) error {
	first := *s
	first.Probes = slices.DeleteFunc(slices.Clone(s.Probes), func(p *host.Probe) bool { return p.Kind != host.Begin })
	o := r.options(t, img)
	out := &muted{to: t.out, muted: true}
	o.Out = out
	run, err := attach.New(&first, o)
	if err != nil {
		return &failure{exitRefused, err}
	}
	run.Begin()
	out.muted = false
	return r.ended(t, run)
}

// muted is a writer that throws away what it gets while it is muted.
type muted struct {
	to    io.Writer
	muted bool
}

func (m *muted) Write(b []byte) (int, error) {
	if m.muted {
		return len(b), nil
	}
	return m.to.Write(b)
}

// setWatch sets a script's watchpoint on all CPUs, in the debug registers. Of several symbols of a name the first counts, as with
// kallsyms_lookup_name.
func setWatch(lab *kprobelab.Lab, w *host.Watched, hit func(*x86.PtRegs)) (remove func() error, err error) {
	place := watch.Place{Probe: callsyntax.Probe{Symbol: w.Symbol, Addr: x86.Addr(w.Addr)}, Len: w.Len, Kinds: machine.WatchWrite}
	switch {
	case w.Executes:
		place.Kinds = machine.WatchExec
	case w.Reads:
		place.Kinds |= machine.WatchRead
	}
	if list := lab.Image.Lookup(w.Symbol); len(list) > 1 {
		place.Probe = callsyntax.Probe{Addr: list[0].Addr}
	}
	set, err := lab.Watchpoint(place)
	if err != nil {
		return nil, err
	}
	if lab.Watches.Registers == nil {
		lab.Watches.Registers = lab.Registers()
	}
	set.Handler = func(_ *watch.Watchpoint, _ *watch.Hit, regs *x86.PtRegs) { hit(regs) }
	return func() error { return lab.Watches.Remove(set) }, lab.Watches.Add(set)
}

// happen makes the calls and runs the program; without either, time passes.
func (r *scriptRun) happen(t *term, l *session.Session, run *attach.Runner, calls []*session.Call, command *mailbox.Command) error {
	for _, c := range calls {
		if _, err := l.Make(c); err != nil {
			return &failure{exitRefused, fmt.Errorf("%s: %w", c.Name, oneLine(err))}
		}
	}
	if command == nil {
		if len(calls) == 0 {
			run.Wait(uint64(r.wait))
		}
		return nil
	}
	code, err := l.Exec(&kprobelab.Program{Args: command.Args, Env: command.Env, Stdin: command.Input, Stdout: t.rawOut, Stderr: t.rawErr})
	switch n := errno.Errno(0); {
	case errors.Is(err, kprobelab.ErrNoInit):
		return &failure{exitImage, fmt.Errorf("%s: %w", l.Image.Name(), err)}
	case err != nil && !errors.As(err, &n):
		return &failure{exitRefused, fmt.Errorf("%s: %w", command.Args[0], oneLine(err))}
	case err != nil:
		return &failure{exitRefused, oneLine(err)}
	case code != 0 && !r.anyCode:
		fmt.Fprintf(t.err, "WARNING: Child process exited with status %d\n", code)
		return &failure{exitRefused, fmt.Errorf("%s ended with exit code %d", strings.TrimSpace(command.Args[0]), code)}
	}
	return nil
}

// ended runs the end probes and says how the script ended.
func (r *scriptRun) ended(t *term, run *attach.Runner) error {
	err := run.End()
	if r.stats {
		printCounts(t, run.Counts())
	}
	if errors.Is(err, attach.ErrFailed) {
		return &failure{exitRefused, r.failed}
	}
	if code := run.Code(); err == nil && code != 0 {
		return &failure{int(code & 0xff), errSaid}
	}
	return err
}

// printCounts is the table of --stats.
func printCounts(t *term, list []attach.Counts) {
	fmt.Fprintf(t.err, "%-12s %8s %8s %-16s %s\n", "planted", "hits", "missed", "statements", "probe")
	for _, c := range list {
		if c.Probe.Handler == nil {
			continue
		}
		cost := "-"
		if c.Hits > 0 {
			cost = fmt.Sprintf("%d/%d/%d", c.Least, c.Sum/int(min(c.Hits, math.MaxInt)), c.Most)
		}
		how := c.How
		if how == "" {
			how = "-"
		}
		fmt.Fprintf(t.err, "%-12s %8d %8d %-16s %s\n", how, c.Hits, c.Missed, cost, c.Probe.Point)
	}
}

// bad is an error of a call's text.
func bad(err error) error {
	var syntax *callsyntax.Error
	if errors.As(err, &syntax) {
		return fmt.Errorf("--call: %w", err)
	}
	return &failure{exitUsage, fmt.Errorf("--call: %w", err)}
}
