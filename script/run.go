package script

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/host"
	"kprobelab/internal/session"
	"kprobelab/kprobes/pool"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Output takes the output of a script.
type Output struct {
	// Out gets what the script prints, Log each line that its tool says on standard error. Nil throws it away.
	Out io.Writer
	Log func(line string)
}

// Run is a script that runs.
type Run struct {
	script *Script
	lab    *kprobelab.Lab
	runner *attach.Runner
	log    func(line string)
	closed bool
	// dry says that the run is Dry's.
	dry bool
	// uprobes are the kernel's own, nil before the first.
	uprobes *session.Uprobes
	err     error
}

// Start runs the script's first probes and attaches the others to a machine that runs the script's image. A script that
// waits for nothing (Waits) needs no machine: lab is nil, and the run has a clock of its own. The error is Attachable's or
// the machine's, or says what the script needs and does not have.
func (s *Script) Start(lab *kprobelab.Lab, o *Output) (*Run, error) {
	if s.refused != nil {
		return nil, s.refused
	}
	if lab == nil && s.Waits() {
		return nil, errors.New("the script has probes, and there is no machine that could hit them")
	}
	if lab != nil && lab.Image != s.img {
		return nil, fmt.Errorf("the script is for %s, and the machine runs %s", s.img.Name(), lab.Image.Name())
	}
	r, err := s.begin(lab, o, s.made)
	if err != nil || lab == nil {
		return r, err
	}
	if err := lab.Settle(); err != nil {
		return nil, errors.Join(r.Close(), err)
	}
	return r, nil
}

// Dry runs the script's first probes alone, without their output. Maps are not printed, and the exit code is 0.
func (s *Script) Dry(o *Output) (*Run, error) {
	first := s.made
	first.Probes = slices.DeleteFunc(slices.Clone(first.Probes), func(p *host.Probe) bool { return p.Kind != host.Begin })
	first.Last = s.unprinted
	where := o.filled()
	to := &muted{to: where.Out, muted: true}
	r, err := s.begin(nil, &Output{Out: to, Log: where.Log}, first)
	to.muted = false
	if r != nil {
		r.dry = true
	}
	return r, err
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

// filled returns the writers; a missing one throws its text away.
func (o *Output) filled() Output {
	all := Output{Out: io.Discard, Log: func(string) {}}
	if o != nil && o.Out != nil {
		all.Out = o.Out
	}
	if o != nil && o.Log != nil {
		all.Log = o.Log
	}
	return all
}

func (s *Script) begin(lab *kprobelab.Lab, out *Output, made attach.Script) (*Run, error) {
	to := out.filled()
	o := &attach.Options{
		Image: s.img, Out: to.Out, Log: to.Log, HZ: int64(s.img.Profile().HZ),
		MaxErrors: s.mostErrors, MaxSkipped: s.mostSkipped, Command: s.command, Program: s.program,
	}
	r := &Run{script: s, lab: lab, log: o.Log}
	if lab != nil {
		r.on(lab, o)
	}
	var err error
	if r.runner, err = attach.New(&made, o); err != nil {
		return nil, err
	}
	r.runner.Begin()
	return r, nil
}

// Wait lets virtual time pass while the machine stands still, for the script's timers: until the script has ended
// itself, or for so long.
func (r *Run) Wait(d time.Duration) {
	if !r.closed && d > 0 {
		r.runner.Wait(uint64(d))
	}
}

// Ended reports whether the script has ended itself.
func (r *Run) Ended() bool { return r.runner.Ended() }

// Code is the code with which the script has ended itself, 0 of a dry run.
func (r *Run) Code() int {
	if r.dry {
		return 0
	}
	return int(r.runner.Code() & 0xff)
}

// Close runs the timers that are due, takes the probes away and runs the script's end. The error says that the script
// ended with one, in its tool's words; closing again returns the same.
func (r *Run) Close() error {
	if r.closed {
		return r.err
	}
	r.closed = true
	r.runner.Late()
	if r.err = r.runner.End(); errors.Is(r.err, attach.ErrFailed) {
		r.err = r.script.failed
	}
	if r.uprobes != nil {
		if err := r.uprobes.Close(); err != nil {
			r.log("WARNING: " + err.Error())
		}
	}
	return r.err
}

// Counts tell what became of a probe.
type Counts struct {
	// Probe is the probe point.
	Probe string
	// How it was planted: "optimized", "ftrace", "int3", "kretprobe", "tracepoint", "watchpoint", "timer" or "".
	How string
	// Hits ran the handler, Missed did not.
	Hits, Missed uint64
	// Least, Most and Sum are the statements that a hit executed.
	Least, Most, Sum int
	// Pool is the account of a kretprobe's instances: their peak, who had them, and the smallest maxactive that would have lost no
	// call. It is nil of other probes, and if the Lab keeps no accounts (Lab.FollowPools).
	Pool *pool.Usage
}

// Counts returns what became of each probe that has a handler; they are whole after Close.
func (r *Run) Counts() (list []Counts) {
	for _, c := range r.runner.Counts() {
		if c.Probe.Handler != nil {
			list = append(list, Counts{c.Probe.Point, c.How, c.Hits, c.Missed, c.Least, c.Most, c.Sum, c.Pool})
		}
	}
	return list
}

// on gives a script what a machine has.
func (r *Run) on(lab *kprobelab.Lab, o *attach.Options) {
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
	linked := func(attach func(*booted.Kernel) (*booted.Link, error)) (func(), error) {
		k, err := lab.Booted()
		if err != nil {
			return nil, err
		}
		link, err := attach(k)
		if err != nil {
			return nil, err
		}
		return warned(link.Close, nil)
	}
	o.Tracepoint = func(name string, hit func(*x86.PtRegs)) (func(), error) {
		return linked(func(k *booted.Kernel) (*booted.Link, error) { return k.Tracepoint(name, hit) })
	}
	o.Record = func(event string, hit func(*x86.PtRegs)) (func(), error) {
		for _, e := range lab.Image.Events() {
			if e.System+":"+e.Name == event {
				return linked(func(k *booted.Kernel) (*booted.Link, error) {
					return k.Record(&e, func(_ x86.Addr, regs *x86.PtRegs) { hit(regs) })
				})
			}
		}
		return nil, errno.ENOENT
	}
	o.Watch = func(w *host.Watched, hit func(*x86.PtRegs)) (func(), error) { return warned(setWatch(lab, w, hit)) }
	if lab.Image.Core() != nil {
		o.Uprobe = func(p *host.InProgram, hit func(uint64, *x86.PtRegs)) (func(), error) {
			return warned(r.uprobe(p, hit))
		}
	}
}

// uprobe plants one of the kernel's own uprobes.
func (r *Run) uprobe(p *host.InProgram, hit func(uint64, *x86.PtRegs)) (remove func() error, err error) {
	if r.uprobes == nil {
		if r.uprobes, err = session.New(r.lab).Uprobes(); err != nil {
			return nil, err
		}
	}
	return r.uprobes.Hit(p.Program.File, p.Offset, p.Return, hit)
}

// setWatch sets a script's watchpoint on all CPUs, in the debug registers. Of several symbols of a name the first counts, as with
// kallsyms_lookup_name.
func setWatch(lab *kprobelab.Lab, w *host.Watched, hit func(*x86.PtRegs)) (remove func() error, err error) {
	place := watch.Place{Symbol: w.Symbol, Addr: x86.Addr(w.Addr), Len: w.Len, Kinds: machine.WatchWrite}
	switch {
	case w.Executes:
		place.Kinds = machine.WatchExec
	case w.Reads:
		place.Kinds |= machine.WatchRead
	}
	if list := lab.Image.Lookup(w.Symbol); len(list) > 1 {
		place.Symbol, place.Addr = "", list[0].Addr
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

// WriteCounts writes the counts of probes as a table, and after it the accounts of kretprobes' instances.
func WriteCounts(w io.Writer, list []Counts) {
	fmt.Fprintf(w, "%-12s %8s %8s %-16s %s\n", "planted", "hits", "missed", "statements", "probe")
	for _, c := range list {
		cost, how := "-", "-"
		if c.Hits > 0 {
			cost = fmt.Sprintf("%d/%d/%d", c.Least, c.Sum/int(min(c.Hits, math.MaxInt)), c.Most)
		}
		if c.How != "" {
			how = c.How
		}
		fmt.Fprintf(w, "%-12s %8d %8d %-16s %s\n", how, c.Hits, c.Missed, cost, c.Probe)
	}
	var b strings.Builder
	for _, c := range list {
		if c.Pool != nil {
			c.Pool.Write(&b)
		}
	}
	_, _ = io.WriteString(w, b.String())
}
