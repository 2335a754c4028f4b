package module

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/sample"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Sample loads a module, lets tasks run, and unloads it; say receives the events in
// order. The error is a refusal to register the probe (a *probepoint.Refusal), or the
// error of the tasks' run. The lab is a guest kernel's, and is for one sample only.
type Sample func(l *kprobelab.Lab, o *Options, say func(Event)) error

// module has the functions that insmod and rmmod call.
type module interface {
	init() error
	exit()
}

// host holds the lab, the kernel's rules and the output of a module.
type host struct {
	lab     *kprobelab.Lab
	c       *profile.Config
	lines   sample.Lines
	current *current
	say     func(Event)
}

func newHost(l *kprobelab.Lab, say func(Event)) (*host, error) {
	cur, err := newCurrent(l)
	if err != nil {
		return nil, err
	}
	h := &host{lab: l, c: l.Image.Profile(), current: cur, say: say}
	h.lines = sample.Lines{Style: h.c.Sample.Style}
	l.Kprobes.OnLog(func(line string) { say(Event{Name: "log", Line: line}) })
	return h, nil
}

// task is one of the tasks that run while a module is loaded.
type task struct {
	comm string
	// kernel is for a kernel thread, which has no user space.
	kernel bool
	// pinned tasks run on the CPU of that number only.
	pinned bool
	cpu    int
	calls  []machine.Invocation
}

// run loads the module, lets each group of tasks run to its end, and unloads
// the module.
func (h *host) run(m module, groups ...[]task) error {
	err := m.init()
	if err != nil {
		return errors.Join(err, h.current.close())
	}
	for _, tasks := range groups {
		if err = h.work(tasks); err != nil {
			break
		}
	}
	m.exit()
	return errors.Join(err, h.lab.Kprobes.ClearErr(), h.current.close())
}

func (h *host) work(tasks []task) error {
	for _, t := range tasks {
		started, err := h.lab.Machine.Go(t.comm, t.calls...)
		if err != nil {
			return err
		}
		if t.pinned {
			if err := started.Pin(t.cpu); err != nil {
				return err
			}
		}
		if err := h.current.add(started, !t.kernel); err != nil {
			return err
		}
	}
	err := h.lab.Machine.Run()
	h.console()
	return err
}

// console passes on the lines that guest code has printed.
func (h *host) console() {
	for line := range strings.Lines(string(h.lab.Machine.Console())) {
		h.say(Event{Name: "log", Line: strings.TrimSuffix(line, "\n")})
	}
}

// lookup is kallsyms_lookup_name: 0 if there is no such symbol.
func (h *host) lookup(symbol string) x86.Addr {
	if s := h.lab.Kprobes.View().Lookup(symbol); len(s) > 0 {
		return s[0].Addr
	}
	return 0
}

// kprobe makes a probe on a function; by address if the kernel's probes have no symbol names.
func (h *host) kprobe(symbol string) kprobes.Kprobe {
	if h.c.Resolve.SymbolNames {
		return kprobes.Kprobe{SymbolName: symbol}
	}
	return kprobes.Kprobe{Addr: h.lookup(symbol)}
}

// refused reports a refusal and returns it.
func (h *host) refused(p *Probe, err error, line func(ret int) string) error {
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		p.Addr = r.Addr
	}
	if p.Addr == 0 && !h.c.Resolve.SymbolNames {
		err = fmt.Errorf("there is no symbol %s: %w", p.Symbol, err)
	}
	h.say(Event{Name: "refused", Line: line(-int(errno.Of(err))), Probe: p, Err: err})
	return err
}

// counters is a module's last event, with its counters.
func (h *host) counters(p *Probe, missed uint64) {
	p.Missed = missed
	h.say(Event{Name: "counters", Probe: p})
}

// or returns v, or instead if v is the zero value.
func or[T comparable](v, instead T) T {
	var zero T
	if v == zero {
		return instead
	}
	return v
}
