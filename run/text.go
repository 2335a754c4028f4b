package run

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"kprobelab/errno"
	"kprobelab/internal/colour"
	"kprobelab/internal/sample"
	"kprobelab/internal/show"
	"kprobelab/machine"
)

// TextOptions say how a run is shown to people.
type TextOptions struct {
	// Colour is whether the text has colours.
	Colour bool
	// Steps is whether hits are shown as numbered steps; the plan has to ask for them.
	Steps bool
	// Tasks is whether there are several tasks, whose calls need a name.
	Tasks bool
	// Out and Err get what programs write to standard output and error; nil throws it away.
	Out, Err io.Writer
	// Log gets the lines of logs; with nil they stand between the hits, each after where it is from.
	Log io.Writer
	// Exits is whether the exit code of each program is told.
	Exits bool
}

// Text shows a run: a kernel's hits as its sample modules print them, calls as C writes them, what programs write as it is.
type Text struct {
	w     *bufio.Writer
	o     TextOptions
	style colour.Style
	names Names
	// lines makes the log lines of the kernel's sample modules. It is nil without a kernel: then Text shows the probes by
	// the lines of trace and the counts at the end.
	lines *sample.Lines
	// steps shows hits as numbered steps, nil where they are not asked for.
	steps *stepWriter
	// inside is whether a program has written a line without its end, done whether the last call or program has ended.
	inside, done bool
}

// NewText makes one that writes to w. The caller ends with Flush.
func NewText(w io.Writer, o *TextOptions) *Text {
	t := &Text{w: bufio.NewWriter(w), o: *o, style: colour.Style(o.Colour)}
	for _, to := range []*io.Writer{&t.o.Out, &t.o.Err} {
		if *to == nil {
			*to = io.Discard
		}
	}
	if o.Steps {
		t.steps = newStepWriter(t.w, t.style)
	}
	return t
}

// Buffered returns the number of bytes in the buffer, which are not written yet.
func (o *Text) Buffered() int { return o.w.Buffered() }

// Flush writes what is buffered, and returns the first error of writing.
func (o *Text) Flush() error { return o.w.Flush() }

// Put implements Sink.
func (o *Text) Put(e Event) error {
	switch e := e.(type) {
	case Started:
		o.started(&e)
	case Planted:
		if o.lines != nil {
			o.planted(&e.Probe)
		}
	case RefusedProbe:
		if o.lines != nil {
			o.refused(&e)
		}
	case Hit:
		o.hit(&e)
	case Returned:
		o.returned(&e)
	case Accessed:
		o.accessed(&e)
	case Step:
		if o.steps != nil {
			o.steps.step(&e)
		}
	case Logged:
		o.logged(&e)
	case Traced:
		if o.done {
			o.line("")
		}
		o.line(strings.TrimSuffix(e.Text, "\n"))
	case Called:
		o.called(&e)
	case Failed:
		o.failed(&e)
	case Lost:
		o.lost(&e)
	case Wrote:
		return o.wrote(&e)
	case Exited:
		if o.o.Exits {
			o.line(o.style.Bold(fmt.Sprintf("%s: exit code %d", e.Program, e.Code)))
		}
	case Removed:
		o.removed(&e.Probe)
	case Done:
		o.done = true
	case Counters:
		o.counters(&e)
	}
	return nil
}

func (o *Text) line(text string) {
	if o.inside {
		o.w.WriteByte('\n')
		o.inside = false
	}
	o.w.WriteString(text)
	o.w.WriteByte('\n')
}

func (o *Text) started(e *Started) {
	o.names = e.Names
	if e.Lab != nil {
		o.lines = &sample.Lines{Style: e.Lab.Image.Profile().Sample.Style}
	}
}

func (o *Text) logged(e *Logged) {
	if o.o.Log != nil {
		fmt.Fprintln(o.o.Log, e.Line)
		return
	}
	o.line(e.From + ": " + e.Line)
}

func (o *Text) lost(e *Lost) {
	var b strings.Builder
	_ = e.Ledger.Write(&b)
	for line := range strings.Lines(b.String()) {
		o.logged(&Logged{"losses", strings.TrimSuffix(line, "\n")})
	}
}

func (o *Text) planted(p *Probe) {
	switch {
	case p.Watched != nil:
		o.line(watchLine(p, "installed"))
	case p.Returns():
		o.line(o.lines.PlantedReturn(p.Name, *p.Addr))
	default:
		o.line(o.lines.Planted(*p.Addr))
	}
}

func (o *Text) refused(e *RefusedProbe) {
	n := -int(errno.Of(e.Err))
	switch {
	case e.Probe.Kind == "watchpoint":
		o.line(fmt.Sprintf("Breakpoint registration failed for %s, returned %d", e.Probe.Text, n))
	case e.Probe.Returns():
		o.line(o.lines.FailedReturn(n))
	default:
		o.line(o.lines.Failed(n))
	}
}

func (o *Text) hit(e *Hit) {
	if e.Text != "" {
		o.record(e.Text)
		return
	}
	print := o.lines.Pre
	if e.Post {
		print = o.lines.Post
	}
	o.line(o.style.Cyan(print(e.Probe.Name, *e.Probe.Addr, e.Regs)))
}

func (o *Text) returned(e *Returned) {
	if e.Text != "" {
		o.record(e.Text)
		return
	}
	line := o.lines.ReturnedOnly(e.Probe.Name, e.Value)
	if e.Duration >= 0 {
		line = o.lines.Returned(e.Probe.Name, e.Value, e.Duration)
	}
	o.line(o.style.Cyan(line))
}

// record is a line of trace, which has them all at the end: it stands among the steps only.
func (o *Text) record(text string) {
	if o.steps != nil {
		o.line(o.style.Cyan(text))
	}
}

func (o *Text) accessed(e *Accessed) {
	line := o.style.Cyan(o.names.AccessLine(e.Probe.Watched, e.Hit, e.Regs))
	if o.steps != nil {
		line = o.steps.watched(e, line)
	}
	o.line(line)
}

func (o *Text) called(e *Called) {
	o.line(o.style.Bold(fmt.Sprintf("%s%s = %s", o.task(e.Task), e.Call, e.Result)))
	for _, b := range e.Buffers {
		text := fmt.Sprintf("  %s = %s", b.Text, show.Buffer(b.Data, "    "))
		o.line(strings.Replace(text, "= \n", "=\n", 1))
	}
}

// task names the task where there are several.
func (o *Text) task(n int) string {
	if !o.o.Tasks || n < 0 {
		return ""
	}
	return fmt.Sprintf("task %d: ", n)
}

// failed marks the place; why is the run's own error.
func (o *Text) failed(e *Failed) {
	if e.Task < 0 && !o.o.Exits {
		return
	}
	o.line(o.style.Red(fmt.Sprintf("%s%s failed", o.task(e.Task), e.Call)))
}

func (o *Text) wrote(e *Wrote) error {
	if len(e.Data) == 0 {
		return nil
	}
	if err := o.w.Flush(); err != nil && !e.All {
		return err
	}
	to := o.o.Err
	if e.FD == 1 {
		to = o.o.Out
		o.inside = e.Data[len(e.Data)-1] != '\n'
	}
	_, err := to.Write(e.Data)
	return err
}

func (o *Text) removed(p *Probe) {
	switch {
	case p.Watched != nil:
		o.line(watchLine(p, "uninstalled"))
	case p.Returns():
		o.line(o.lines.UnregisteredReturn(*p.Addr))
		o.line(o.lines.Missed(int(*p.Missed), p.Name))
	default:
		o.line(o.lines.Unregistered(*p.Addr))
	}
}

func (o *Text) counters(e *Counters) {
	if e.Text != "" {
		o.line("")
		o.line(strings.TrimSuffix(e.Text, "\n"))
	}
	if e.Text != "" || len(e.Probes) == 0 {
		return
	}
	o.line("")
	t := tabwriter.NewWriter(o.w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "probe\t\thits\tnmissed")
	for _, p := range e.Probes {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\n", p.Kind, p.Text, p.Hits, *p.Missed)
	}
	t.Flush()
	var b strings.Builder
	for _, p := range e.Probes {
		if p.Pool != nil && p.Pool.Missed > 0 {
			p.Pool.Write(&b)
		}
	}
	o.w.WriteString(b.String())
}

// accesses are the kinds in words.
var accesses = map[uint32]string{
	machine.WatchRead: "read", machine.WatchWrite: "write", machine.WatchRead | machine.WatchWrite: "read and write", machine.WatchExec: "execute",
}

// watchLine returns the line about a watchpoint, as the kernel's samples/hw_breakpoint/data_breakpoint.c logs it.
func watchLine(p *Probe, what string) string {
	return fmt.Sprintf("HW Breakpoint for %s %s %s", p.Name, accesses[p.Watched.Kinds], what)
}

// Warn writes what a person should know at once: the harm of a probe that the kernel accepts, after the word warning, and the
// kernel's message about a probe that it refuses. It writes nothing of other events.
func Warn(w io.Writer, e Event, warning string) {
	switch e := e.(type) {
	case Harmful:
		fmt.Fprintf(w, "%s %s: %s (%s): %s\n", warning, e.Probe, e.Hazard, e.Effect, e.Says)
	case Planted:
		if p := &e.Probe; p.Hazard != "" {
			fmt.Fprintf(w, "%s %s: %s: %s\n", warning, strings.ReplaceAll(p.Definition, "\n", "; "), p.Hazard, p.Hazard.Means())
		}
	case RefusedProbe:
		if e.Log != "" {
			fmt.Fprintln(w, e.Log)
		}
	}
}
