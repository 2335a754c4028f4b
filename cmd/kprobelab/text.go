package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"kprobelab/errno"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/sample"
	"kprobelab/internal/session"
	"kprobelab/internal/show"
	"kprobelab/watch"
	"kprobelab/x86"
)

// textOutput shows a run to people: hits as the kernel's sample modules print
// them, calls as C writes them.
type textOutput struct {
	w *bufio.Writer
	// raw and err get what programs write to standard output and error.
	raw, err io.Writer
	lines    sample.Lines
	style    style
	// many is whether there are several tasks, whose calls need a name.
	many  bool
	steps *stepWriter
	// perf writes the hits of watchpoints.
	perf perfScript
	// inside is whether a program has written a line without its end.
	inside bool
}

func (o *textOutput) line(text string) {
	if o.inside {
		o.w.WriteByte('\n')
		o.inside = false
	}
	o.w.WriteString(text)
	o.w.WriteByte('\n')
}

func (o *textOutput) planted(p *session.Planted) {
	if p.Watched != nil {
		o.line(watchLine(p, "installed"))
		return
	}
	if p.Return {
		o.line(o.lines.PlantedReturn(p.Name, p.At))
		return
	}
	o.line(o.lines.Planted(p.At))
}

func (o *textOutput) refused(p callsyntax.Probe, err error) {
	n := -int(errno.Of(err))
	if p.Return {
		o.line(o.lines.FailedReturn(n))
		return
	}
	o.line(o.lines.Failed(n))
}

func (o *textOutput) pre(p *session.Planted, _ session.Where, regs *x86.PtRegs) {
	o.line(o.style.cyan(o.lines.Pre(p.Name, p.At, regs)))
}

func (o *textOutput) post(p *session.Planted, _ session.Where, regs *x86.PtRegs) {
	o.line(o.style.cyan(o.lines.Post(p.Name, p.At, regs)))
}

func (o *textOutput) returned(p *session.Planted, _ session.Where, value uint64, ns int64) {
	line := o.lines.ReturnedOnly(p.Name, value)
	if ns >= 0 {
		line = o.lines.Returned(p.Name, value, ns)
	}
	o.line(o.style.cyan(line))
}

func (o *textOutput) watched(p *session.Planted, h *watch.Hit, regs *x86.PtRegs) {
	line := o.style.cyan(o.perf.line(p.Watched, h, regs))
	if o.steps == nil {
		o.line(line)
		return
	}
	o.line(o.steps.watched(p.Place, fmt.Sprintf("cpu %d, task %d", h.CPU, h.Task), h, regs, line))
}

func (o *textOutput) notWatched(p watch.Place, err error) {
	o.line(fmt.Sprintf("Breakpoint registration failed for %s, returned %d", p, -int(errno.Of(err))))
}

func (o *textOutput) log(from, line string) { o.line(from + ": " + line) }

func (o *textOutput) traced(text string) { o.line(strings.TrimSuffix(text, "\n")) }

func (o *textOutput) called(task int, r *session.Result) {
	o.line(o.style.bold(fmt.Sprintf("%s%s = %s", o.task(task), r.Call, value(r))))
	for _, b := range r.Shown() {
		text := fmt.Sprintf("  %s = %s", r.Call.Args[b.Arg], show.Buffer(b.After, "    "))
		o.line(strings.Replace(text, "= \n", "=\n", 1))
	}
}

// value is what a call returned, as a person reads it.
func value(r *session.Result) string {
	text := show.Value(r.Value, r.Call.Returns())
	if arg, off, ok := r.Into(); ok {
		text += fmt.Sprintf(" (argument %d + %d)", arg+1, off)
	}
	return text
}

// task names the task where there are several.
func (o *textOutput) task(n int) string {
	if !o.many {
		return ""
	}
	return fmt.Sprintf("task %d: ", n)
}

// failed marks the place; why is the command's own error, on stderr.
func (o *textOutput) failed(task int, c *session.Call, _ error) {
	o.line(o.style.red(fmt.Sprintf("%s%s failed", o.task(task), c)))
}

func (o *textOutput) wrote(fd int, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if fd == 2 {
		if err := o.w.Flush(); err != nil {
			return err
		}
		_, err := o.err.Write(b)
		return err
	}
	if err := o.w.Flush(); err != nil {
		return err
	}
	o.inside = b[len(b)-1] != '\n'
	_, err := o.raw.Write(b)
	return err
}

func (o *textOutput) exited(program string, code int) {
	if code < 0 {
		o.line(o.style.red(program + " failed"))
		return
	}
	o.line(o.style.bold(fmt.Sprintf("%s: exit code %d", program, code)))
}

func (o *textOutput) unregistered(p *session.Planted) {
	if p.Watched != nil {
		o.line(watchLine(p, "uninstalled"))
		return
	}
	if p.Return {
		o.line(o.lines.UnregisteredReturn(p.At))
		o.line(o.lines.Missed(int(p.Missed), p.Name))
		return
	}
	o.line(o.lines.Unregistered(p.At))
}

func (o *textOutput) counters(list []*session.Planted) {
	if len(list) == 0 {
		return
	}
	o.line("")
	t := tabwriter.NewWriter(o.w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "probe\t\thits\tnmissed")
	for _, p := range list {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\n", p.Kind(), p, p.Hits, p.Missed)
	}
	t.Flush()
}

func (o *textOutput) flush() error { return o.w.Flush() }
