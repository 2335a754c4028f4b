package run

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"kprobelab/internal/perfetto"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Perfetto writes a trace for Perfetto's user interface: hits, returns, accesses, changes of text. The plan has to ask for
// Steps, and for Records where events of tracing are to be drawn.
type Perfetto struct {
	w *bufio.Writer
	// json is whether the trace is JSON lines.
	json  bool
	tl    *perfetto.Timeline
	names Names
}

// NewPerfetto makes one that writes to w, in Perfetto's own format or as JSON lines. The caller ends with Close.
func NewPerfetto(w io.Writer, json bool) *Perfetto {
	return &Perfetto{w: bufio.NewWriter(w), json: json}
}

// Put implements Sink.
func (r *Perfetto) Put(e Event) error {
	switch e := e.(type) {
	case Started:
		r.start(&e)
	case Step:
		r.step(&e)
	case Accessed:
		r.accessed(&e)
	case TracingOpened:
		r.tl.Events(e.Tracing.EventOf)
	case Recorded:
		r.tl.Record(e.Record)
	case Hit:
		if e.Text != "" {
			r.record(e.Probe, e.Where, e.Args)
		}
	case Returned:
		if e.Text != "" {
			r.record(e.Probe, e.Where, e.Args, perfetto.Arg{Name: "ip", Value: perfetto.Pointer(e.To)})
		}
	}
	return nil
}

// Close writes what is left, whether the run has started or not.
func (r *Perfetto) Close() error {
	var err error
	if r.tl != nil {
		err = r.tl.Close()
	}
	return errors.Join(err, r.w.Flush())
}

func (r *Perfetto) start(e *Started) {
	r.names = e.Names
	if r.json {
		r.tl = perfetto.NewTimelineJSON(r.w, e.Names.Place)
	} else {
		r.tl = perfetto.NewTimeline(r.w, e.Name, e.Names.Place)
	}
	if e.Names.Task != nil {
		r.tl.Tasks(e.Names.Task)
	}
	if e.Lab == nil {
		return
	}
	m := e.Lab.Machine
	m.OnText(func(at x86.Addr, n int) { r.tl.Poke(m.Now(), m.CPU(), at, n) }, func(cpu int) { r.tl.Sync(m.Now(), cpu) })
}

// thread is the track of a program's thread, nil of a kernel's task.
func (r *Perfetto) thread(w Where) *perfetto.Thread {
	if w.PID == 0 {
		return nil
	}
	_, comm := r.names.Task(w.Task)
	return &perfetto.Thread{PID: w.PID, TID: w.Task, Comm: comm}
}

func (r *Perfetto) step(e *Step) {
	if e.hit != nil {
		r.tl.Hit(e.Where.Now, e.hit)
		return
	}
	r.tl.User(e.Where.Now, *r.thread(e.Where), e.user, e.Returns)
}

func (r *Perfetto) accessed(e *Accessed) {
	r.tl.Watched(&perfetto.Watched{
		Now: e.Where.Now, CPU: e.Where.CPU, Task: e.Where.Task, Thread: r.thread(e.Where), Name: e.Probe.Text, Access: watch.Access(e.Hit.Kinds),
		Addr: e.Probe.Watched.Addr, IP: x86.Addr(e.Regs.IP), Old: e.Hit.Old, New: e.Hit.New,
	})
}

// record draws the record of a uprobe event; a kernel's hits are drawn by their steps.
func (r *Perfetto) record(p *Probe, at Where, list []Arg, more ...perfetto.Arg) {
	args := append([]perfetto.Arg{{Name: "addr", Value: perfetto.Pointer(*p.Addr)}}, more...)
	for _, a := range list {
		args = append(args, perfetto.Arg{Name: a.Name, Value: a.Value})
	}
	group, event, _ := strings.Cut(p.Text, "/")
	r.tl.UserRecord(at.Now, *r.thread(at), group, event, p.Returns(), args)
}
