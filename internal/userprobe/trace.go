package userprobe

import (
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/process"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// TraceEvent is an event of uprobe_events, with its probe.
type TraceEvent struct {
	*definition.Definition
	file *process.File
	// Probe has the counts.
	Probe Consumer
	// Hazard names the harm that the probe does although the kernel accepts it, "" for none.
	Hazard uprobes.Hazard
}

// Record is the record of a hit.
type Record struct {
	Event *TraceEvent
	// At is the address of the probed instruction; Return is the return address, for return probes.
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

// Trace is the events of one process: the definitions written to uprobe_events, and the content of
// trace and uprobe_profile.
type Trace struct {
	c     *profile.Config
	k     *Probes
	p     *process.Process
	files map[string]*process.File
	list  []*TraceEvent
	lines []string
	left  int // bytes that lines may still take
	lost  int
	// Dir is the folder for relative names of files in definitions; empty means /.
	Dir string
	// OnHit is called for each record; may be nil.
	OnHit func(h *Record)
	// rec is the buffer for a record's arguments.
	rec [maxRecord]byte
}

// maxRecord is as far as a field can point (16 bits of a __data_loc).
const maxRecord = 1<<16 - 1

// NewTrace makes the events of a process that has these files. Attach follows.
func NewTrace(c *profile.Config, k *Probes, files ...*process.File) *Trace {
	t := &Trace{c: c, k: k, files: map[string]*process.File{}, left: bounded.UserTrace}
	for _, f := range files {
		t.files[process.Clean(f.Name)] = f
	}
	return t
}

// Attach sets the process, before it runs.
func (t *Trace) Attach(p *process.Process) { t.p = p }

// Define adds an event; Enable enables all. The error is a *definition.Error for a wrong line, else
// the error of registering the probe in a process that has the file mapped.
func (t *Trace) Define(line string) (*TraceEvent, error) {
	d, err := definition.ParseUser(definition.ReadLine(line), t.file, &t.c.Tracing)
	if err != nil {
		return nil, err
	}
	e := &TraceEvent{Definition: d, file: t.files[t.absolute(d.File)]}
	if slices.ContainsFunc(t.list, func(o *TraceEvent) bool { return o.Group == d.Group && o.Event() == d.Event }) {
		return nil, d.Line.Refuse(0, strings.IndexByte(d.Line.Words[0], ':')+1, definition.EventExist, errno.EEXIST)
	}
	a, err := Check(t.c, e.file, d.FileOffset, d.Counter)
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

// Enable enables all events, as the file events/enable does: the last first, so that of several
// events at one place the first is called first. The error is the error of registering a probe in a
// process that has the file mapped.
func (t *Trace) Enable() error {
	for _, e := range slices.Backward(t.list) {
		if err := t.k.Register(e.file, e.FileOffset, e.Counter, &e.Probe); err != nil {
			return err
		}
	}
	return nil
}

// At reports whether the event's probe is at an offset of a file.
func (e *TraceEvent) At(f *process.File, offset uint64) bool {
	return e.file == f && e.FileOffset == offset
}

// Event is the event's name.
func (e *TraceEvent) Event() string { return e.Definition.Event }

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
func (t *Trace) Of(c *Consumer) *TraceEvent {
	for _, e := range t.list {
		if &e.Probe == c {
			return e
		}
	}
	return nil
}

// Events lists the events in the order of their definitions.
func (t *Trace) Events() []*TraceEvent { return t.list }

func (t *Trace) hit(e *TraceEvent, at x86.Addr, regs *x86.PtRegs) {
	h := &Record{Event: e, At: at, PID: t.p.PID(), TID: t.p.TID(), Time: t.p.Now(), Regs: regs}
	var b strings.Builder
	b.WriteString(e.Event() + ": (")
	if e.Return {
		h.Return = x86.Addr(regs.IP)
		fmt.Fprintf(&b, "%#x <- ", regs.IP)
	}
	fmt.Fprintf(&b, "%#x)", uint64(at))
	// The file's base is the base of the mapping in which the probe was hit.
	r := fetch.Recorder{Source: source{t}, Regs: regs, FileBase: uint64(at) - e.FileOffset, Rec: t.rec[:], End: e.Size}
	clear(r.Rec[:r.End])
	for i := range e.Args {
		a, from := &e.Args[i], b.Len()+len(e.Args[i].Name)+2
		r.Argument(a.Code, a.Offset)
		field := fetch.Field(a, 0)
		b.WriteString(" " + a.Name + "=")
		fetch.Print(&b, a, &field, r.Rec[:r.End], source{t}.Symbol)
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

func (t *Trace) line(h *Record) string {
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

// source is the process, as the fetch programs of a hit's arguments read it.
type source struct{ t *Trace }

var _ fetch.Source = source{}

// Read reads the process's memory; the flag for user memory has no effect, because all memory is
// the program's.
func (s source) Read(addr uint64, b []byte, _ bool) bool { return s.t.p.Read(x86.Addr(addr), b) == nil }

// StackWord is a word above the stack pointer.
func (s source) StackWord(regs *x86.PtRegs, n int) uint64 {
	var b [8]byte
	s.Read(regs.SP+8*uint64(n), b[:], true)
	return binary.LittleEndian.Uint64(b[:])
}

// PerCPU and Current are the kernel's, of which there is none.
func (s source) PerCPU() uint64  { return 0 }
func (s source) Current() uint64 { return 0 }

// Comm is the process's name.
func (s source) Comm() string { return s.t.p.Comm() }

// Symbol is the address: no table has a program's symbols.
func (s source) Symbol(addr uint64) string { return x86.Addr(addr).String() }
