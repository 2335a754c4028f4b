package userevent

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/process"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/userprobe"
	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// Event is an event with its probe.
type Event struct {
	*definition.Definition
	file *process.File
	// Probe has the counts.
	Probe userprobe.Consumer
	// Hazard names the harm that the probe does although the kernel accepts it, "" for none.
	Hazard uprobes.Hazard
}

// Hit is one record.
type Hit struct {
	Event *Event
	// At is the probed instruction; Return is where a return probe's function returned to.
	At, Return x86.Addr
	// PID is the process, TID the thread.
	PID, TID int
	// Time is virtual, in nanoseconds.
	Time uint64
	Regs *x86.PtRegs
	// Text is the line's own part, from the event's name on.
	Text string
	// Args are the arguments' values as Text has them.
	Args []string
}

// Trace is the events of one process.
type Trace struct {
	c     *profile.Config
	k     *userprobe.Probes
	p     *process.Process
	files map[string]*process.File
	list  []*Event
	lines []string
	left  int // bytes that lines may still take
	lost  int
	// Dir is the folder that relative names of files in definitions begin in: / if it is empty.
	Dir string
	// OnHit is told of each record; nil for nobody.
	OnHit func(h *Hit)
}

// New makes the events of a process that has these files. Attach follows.
func New(c *profile.Config, k *userprobe.Probes, files ...*process.File) *Trace {
	t := &Trace{c: c, k: k, files: map[string]*process.File{}, left: bounded.UserTrace}
	for _, f := range files {
		t.files[process.Clean(f.Name)] = f
	}
	return t
}

// Attach says which process it is, before it runs.
func (t *Trace) Attach(p *process.Process) { t.p = p }

// Define adds an event; Enable enables all. The error is a *definition.Error where the line is wrong, else
// that of registering the probe in a process that has the file mapped.
func (t *Trace) Define(line string) (*Event, error) {
	d, err := definition.ParseUser(definition.Words(line), t.file, &t.c.Tracing)
	if err != nil {
		return nil, err
	}
	e := &Event{Definition: d, file: t.files[t.absolute(d.File)]}
	if slices.ContainsFunc(t.list, func(o *Event) bool { return o.Group == d.Group && o.Event() == d.Event }) {
		return nil, definition.Refuse(d.Words, 0, strings.IndexByte(d.Words[0], ':')+1, definition.EventExist, errno.EEXIST)
	}
	a, err := userprobe.Check(t.c, e.file, d.FileOffset, d.Counter)
	if err != nil {
		return nil, err
	}
	e.Hazard = a.Hazard
	if d.Return {
		e.Probe.Returned = func(function x86.Addr, regs *x86.PtRegs) { t.hit(e, function, regs) }
	} else {
		e.Probe.Hit = func(regs *x86.PtRegs) { t.hit(e, x86.Addr(regs.IP), regs) }
	}
	t.list = append(t.list, e)
	return e, nil
}

// Enable enables all events, as the file events/enable does it: the last first, so that of those
// at one place the first is called first. The error is that of registering a probe in a process
// that has the file mapped.
func (t *Trace) Enable() error {
	for _, e := range slices.Backward(t.list) {
		if err := t.k.Register(e.file, e.FileOffset, e.Counter, &e.Probe); err != nil {
			return err
		}
	}
	return nil
}

// At reports whether the event's probe is at an offset of a file.
func (e *Event) At(f *process.File, offset uint64) bool { return e.file == f && e.FileOffset == offset }

// Event is the event's name.
func (e *Event) Event() string { return e.Definition.Event }

func (t *Trace) file(name string) error {
	if t.files[t.absolute(name)] == nil {
		return errno.ENOENT
	}
	return nil
}

// absolute is the name of a file as the process knows it.
func (t *Trace) absolute(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(t.Dir, name)
	}
	return process.Clean(name)
}

// Of is the event whose probe it is.
func (t *Trace) Of(c *userprobe.Consumer) *Event {
	for _, e := range t.list {
		if &e.Probe == c {
			return e
		}
	}
	return nil
}

// Events lists the events in the order of their definitions.
func (t *Trace) Events() []*Event { return t.list }

func (t *Trace) hit(e *Event, at x86.Addr, regs *x86.PtRegs) {
	h := &Hit{Event: e, At: at, PID: t.p.PID(), TID: t.p.TID(), Time: t.p.Now(), Regs: regs}
	var b strings.Builder
	b.WriteString(e.Event() + ": (")
	if e.Return {
		h.Return = x86.Addr(regs.IP)
		fmt.Fprintf(&b, "%#x <- ", regs.IP)
	}
	fmt.Fprintf(&b, "%#x)", uint64(at))
	r := record{t: t, e: e, regs: regs, at: at}
	for i := range e.Args {
		b.WriteString(" " + e.Args[i].Name + "=")
		from := b.Len()
		r.argument(&b, &e.Args[i])
		h.Args = append(h.Args, b.String()[from:])
	}
	h.Text = b.String()
	if t.OnHit != nil {
		t.OnHit(h)
	}
	line := t.line(h)
	if t.left -= len(line); t.left < 0 {
		t.lost++
		return
	}
	t.lines = append(t.lines, line)
}

// flags of a line: the kernel gives a uprobe's record no context, and they are all bits set or,
// to 5.13, none, which says that interrupts are off.
func flags(c *profile.Tracing) string {
	switch {
	case !c.MigrateDisable:
		return "d..."
	case c.LazyResched:
		return "DBZff"
	}
	return "DNZff"
}

func (t *Trace) line(h *Hit) string {
	us := (h.Time + 500) / 1000
	return fmt.Sprintf("%16s-%-7d [000] %s %5d.%06d: %s\n", t.p.Comm(), h.TID, flags(&t.c.Tracing), us/1e6, us%1e6, h.Text)
}

// Text is the file trace.
func (t *Trace) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# tracer: nop\n#\n# entries-in-buffer/entries-written: %d/%d   #P:1\n#\n%s",
		len(t.lines), len(t.lines)+t.lost, event.Head(&t.c.Tracing))
	for _, line := range t.lines {
		b.WriteString(line)
	}
	return b.String()
}

// Profile is the file uprobe_profile.
func (t *Trace) Profile() string {
	var b strings.Builder
	for _, e := range t.list {
		n := e.Probe.Hits
		if e.Return {
			n = e.Probe.Returns
		}
		fmt.Fprintf(&b, "  %s %-44s %15d\n", e.File, e.Event(), n)
	}
	return b.String()
}
