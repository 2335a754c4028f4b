package run

import (
	"bufio"
	"errors"
	"io"

	"kprobelab"
	"kprobelab/internal/perfetto"
	"kprobelab/internal/userprobe"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Perfetto writes a trace for Perfetto's user interface: hits, returns, accesses, changes of text. The plan has to ask for
// Steps, and for Records where events of tracing are to be drawn.
type Perfetto struct {
	w *bufio.Writer
	// json is whether the trace is JSON lines.
	json    bool
	tl      *perfetto.Timeline
	lab     *kprobelab.Lab
	program *program
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
		r.record(e.user)
	case Returned:
		r.record(e.user)
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
	r.lab, r.program = e.Lab, e.program
	if r.program != nil {
		r.begin(r.program.name(), r.program.places.place)
		return
	}
	l := r.lab
	r.begin(l.Image.Name(), l.Machine.Symbolize)
	if k, err := l.Booted(); err == nil {
		r.tl.Tasks(k.Names())
	}
	l.Machine.OnText(
		func(at x86.Addr, n int) { r.tl.Poke(l.Machine.Now(), l.Machine.CPU(), at, n) },
		func(cpu int) { r.tl.Sync(l.Machine.Now(), cpu) },
	)
}

func (r *Perfetto) begin(name string, symbol func(x86.Addr) string) {
	if r.json {
		r.tl = perfetto.NewTimelineJSON(r.w, symbol)
	} else {
		r.tl = perfetto.NewTimeline(r.w, name, symbol)
	}
}

func (r *Perfetto) step(e *Step) {
	if e.hit != nil {
		r.tl.Hit(e.Where.Now, e.hit)
		return
	}
	var returns []string
	for _, of := range r.program.trace.Events() {
		if e.user.File != nil && of.Return && of.At(e.user.File, e.user.Offset) {
			returns = append(returns, of.Event())
		}
	}
	r.tl.User(e.Where.Now, r.program.thread(), e.user, returns)
}

func (r *Perfetto) accessed(e *Accessed) {
	h := &perfetto.Watched{
		Now: e.Where.Now, CPU: e.Where.CPU, Task: e.Where.Task, Name: e.Probe.Text, Access: watch.Access(e.Hit.Kinds),
		Addr: e.Probe.Watched.Addr, IP: x86.Addr(e.Regs.IP), Old: e.Hit.Old, New: e.Hit.New,
	}
	if r.program != nil {
		r.tl.UserWatched(h, r.program.thread())
		return
	}
	r.tl.Watched(h)
}

// record draws the record of a uprobe event.
func (r *Perfetto) record(h *userprobe.Record) {
	if h == nil {
		return // a kernel's hits are drawn by their steps
	}
	args := []perfetto.Arg{{Name: "addr", Value: perfetto.Pointer(h.At)}}
	if h.Event.Return {
		args = append(args, perfetto.Arg{Name: "ip", Value: perfetto.Pointer(h.Return)})
	}
	for i, value := range h.Args {
		args = append(args, perfetto.Arg{Name: h.Event.Args[i].Name, Value: value})
	}
	r.tl.UserRecord(h.Time, r.program.thread(), h.Event.Group, h.Event.Event(), h.Event.Return, args)
}
