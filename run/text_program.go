package run

import (
	"fmt"
	"io"
)

// ProgramText shows a run of a program without a kernel: what it writes, then the file trace.
type ProgramText struct {
	printer
	steps *programSteps
}

// NewProgramText makes one that writes to w. The caller ends with Flush.
func NewProgramText(w io.Writer, o *TextOptions) *ProgramText {
	return &ProgramText{printer: newPrinter(w, o)}
}

// Put implements Sink.
func (o *ProgramText) Put(e Event) error {
	switch e := e.(type) {
	case Started:
		o.perf = AccessLines{e.program.places.place, func(int) (int, string) { return e.program.p.TID(), e.program.p.Comm() }}
		if o.o.Steps {
			o.steps = newProgramSteps(o.w, o.style, e.program)
		}
	case Hit:
		o.record(e.Text)
	case Returned:
		o.record(e.Text)
	case Accessed:
		o.accessed(&e)
	case Step:
		if o.steps != nil {
			o.steps.step(&e)
		}
	case Logged:
		fmt.Fprintln(o.o.Log, e.Line)
	case Traced:
		fmt.Fprintf(o.w, "\n%s", e.Text)
	case Wrote:
		return o.wrote(&e)
	case Stats:
		fmt.Fprintf(o.w, "\n%s", e.Text)
	}
	return nil
}

func (o *ProgramText) record(text string) {
	if o.steps != nil {
		fmt.Fprintln(o.w, o.style.Cyan(text))
	}
}

func (o *ProgramText) accessed(e *Accessed) {
	line := o.perf.Line(e.Probe.Watched, e.Hit, e.Regs)
	if o.steps != nil {
		line = o.steps.watched(e, line)
	}
	fmt.Fprintln(o.w, line)
}

// wrote shows what the program wrote. The first error of standard output comes again when it is flushed.
func (o *ProgramText) wrote(e *Wrote) error {
	to := o.o.Err
	if e.FD == 1 {
		to = o.o.Out
		_ = o.w.Flush()
	}
	_, err := to.Write(e.Data)
	return err
}
