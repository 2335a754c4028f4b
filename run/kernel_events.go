package run

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"kprobelab/internal/session"
	"kprobelab/tracing"
)

// define writes the definitions to kprobe_events, writes what is to be in other files,
// and enables all events.
func (r *runner) define(p *Kernel) error {
	if len(p.Events)+len(p.Tracefs) == 0 {
		return nil
	}
	o := &tracing.Options{Log: func(line string) { r.log("kernel", line) }}
	if p.Records {
		o.Record = func(record *tracing.Record) { r.put(Recorded{record}) }
	}
	t, err := r.lab.Tracing(o)
	if err != nil {
		return misused("-e: %w", err)
	}
	r.tracing = t
	r.put(TracingOpened{t})
	no := func(flag string, err error) error {
		t.Close()
		r.tracing = nil // nothing was traced
		return refused(fmt.Errorf("%s: %w", flag, err))
	}
	for _, e := range p.Events {
		if err := t.Write("kprobe_events", e, true); err != nil {
			return no("-e", err)
		}
	}
	for _, w := range p.Tracefs {
		if err := t.Write(w.File, w.Text, true); err != nil {
			return no("--tracefs", err)
		}
	}
	if len(p.Events) == 0 {
		return nil
	}
	return t.Write("events/enable", "1", true)
}

// traced gives the file trace, and removes the events.
func (r *runner) traced(p *Kernel) error {
	if r.tracing == nil {
		return nil
	}
	defer r.tracing.Close()
	text, err := fs.ReadFile(r.tracing, "trace")
	if err != nil {
		return err
	}
	return r.feed.traced(string(text), p.Trace)
}

// defineUser defines the events in the kernel's own uprobe_events and enables them. The events of points come first.
func (r *runner) defineUser(u *ownEvents) error {
	if !u.any() {
		return nil
	}
	events, err := r.lab.Uprobes()
	if err != nil {
		return refused(OneLine(err))
	}
	taken := map[string]int{}
	var lines []string
	for _, p := range u.points {
		line, err := p.definition(p.File, func(symbol string) (uint64, error) { return events.Offset(p.File, symbol) }, taken)
		if err != nil {
			return userRefusal(err)
		}
		lines = append(lines, line)
	}
	for _, line := range append(lines, u.events...) {
		if err := events.Define(line); err != nil {
			return r.userRefused(err)
		}
	}
	for _, w := range u.tracefs {
		if err := events.Write(w.File, w.Text); err != nil {
			return r.userRefused(err)
		}
	}
	if err := events.Enable(); err != nil {
		return r.userRefused(err)
	}
	r.user = events
	return nil
}

// userRefusal returns an *Error that says that the kernel refuses the definition. An error of wrong use stays as it is.
func userRefusal(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	return refused(OneLine(err))
}

func (r *runner) userRefused(err error) error {
	var e *session.UprobeRefused
	if errors.As(err, &e) {
		for line := range strings.Lines(e.Log) {
			r.log("kernel", strings.TrimSuffix(line, "\n"))
		}
	}
	return userRefusal(err)
}

// tracedUser gives the kernel's own file trace, with stats uprobe_profile, and removes the events.
func (r *runner) tracedUser(stats bool) error {
	if r.user == nil {
		return nil
	}
	text, err := r.user.Trace()
	if err == nil {
		r.put(Traced{text})
	}
	if err == nil && stats {
		if text, err = r.user.Profile(); err == nil {
			r.put(Traced{text})
		}
	}
	return errors.Join(err, r.user.Close())
}
