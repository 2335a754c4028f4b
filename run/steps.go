package run

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"kprobelab/decoder"
	"kprobelab/internal/colour"
	"kprobelab/internal/steptext"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Description adds to a step the code at its addresses, and the code that runs next.
type Description struct {
	// Title is "hit of PLACE" at the first step of a hit, else "". Head are the lines below it.
	Title string
	Head  []StepLine
	// After are lines below the step.
	After []StepLine
	// Next names the code that runs next, "" if the step's own text names it.
	Next string
}

// StepLine is code at an address, or a line of text; with an empty What, text is a note.
type StepLine struct {
	What, Text string
	At         x86.Addr
	Code       []byte
}

// describer describes what happens in a kernel, or in a program without one.
type describer interface {
	describe(e *Step) *Description
	// instruction names a place and what is executed there.
	instruction(at x86.Addr) string
}

// Describe describes the step. It reads the machine, and so belongs into Put.
func (e *Step) Describe() *Description { return e.of.describe(e) }

// Next names the instruction that is executed after the hit. It reads the machine, and so belongs into Put.
func (e *Accessed) Next() string { return e.of.instruction(x86.Addr(e.Regs.IP)) }

// code is the instruction at the start of b; of a slot all bytes, because what follows the copy brings the CPU back.
func code(what string, at x86.Addr, b []byte) StepLine {
	inst, err := decoder.Decode(b)
	text := "(bad)"
	if err == nil {
		text = decoder.Text(b, at)
		if what != "slot" {
			b = b[:inst.Length]
		}
	}
	if what == "slot" && err == nil && inst.Length < len(b) {
		rest := b[inst.Length:]
		text += "; " + decoder.Text(rest, at.Add(int64(inst.Length)))
	}
	return StepLine{What: what, Text: text, At: at, Code: bytes.Clone(b)}
}

// note is a line in parentheses.
func note(format string, args ...any) StepLine { return StepLine{Text: fmt.Sprintf(format, args...)} }

// stepWriter shows hits as numbered steps. First it shows the text before and after the probe was inserted, and the slot;
// then for each step its words, the registers that it changed, and the code that runs next.
type stepWriter struct {
	w     io.Writer
	style colour.Style
	// last are the registers at the step before, of each CPU or thread.
	last map[int]x86.PtRegs
	// thread is the thread of the last step.
	thread int
}

func newStepWriter(w io.Writer, st colour.Style) *stepWriter {
	return &stepWriter{w: w, style: st, last: map[int]x86.PtRegs{}}
}

// who is the number of a hit, in all its steps: the CPU, or a program's thread.
func (w Where) who() int {
	if w.PID != 0 {
		return w.Task
	}
	return w.CPU
}

// by says who makes a hit.
func (w Where) by() string {
	if w.PID != 0 {
		return fmt.Sprintf("process %d, thread %d", w.PID, w.Task)
	}
	return fmt.Sprintf("cpu %d, task %d", w.CPU, w.Task)
}

func (s *stepWriter) step(e *Step) {
	d := e.Describe()
	switch {
	case d.Title != "":
		delete(s.last, e.Where.who())
		fmt.Fprintf(s.w, "%s (%s, %d ns)\n", s.style.Bold(d.Title), e.Where.by(), e.Where.Now)
		s.lines(d.Head)
	case e.Where.PID != 0 && e.Where.Task != s.thread:
		fmt.Fprintf(s.w, "      (thread %d)\n", e.Where.Task)
	}
	s.thread = e.Where.Task
	fmt.Fprintf(s.w, "  %2d. %s\n", e.Number, e.Words)
	s.lines(d.After)
	s.changes(e.Where.who(), e.Regs)
	if d.Next != "" {
		fmt.Fprintf(s.w, "      next: %s\n", d.Next)
	}
}

func (s *stepWriter) lines(list []StepLine) {
	for _, l := range list {
		switch {
		case l.Code != nil:
			fmt.Fprintf(s.w, "      %-11s  %s  %-20s  %s\n", l.What, l.At, fmt.Sprintf("% x", l.Code), l.Text)
		case l.What != "":
			fmt.Fprintf(s.w, "      %-11s  %s\n", l.What, l.Text)
		default:
			fmt.Fprintf(s.w, "      (%s)\n", l.Text)
		}
	}
}

// watched is a hit of a watchpoint, with the line that the handler prints.
func (s *stepWriter) watched(e *Accessed, line string) string {
	texts := steptext.Watch(e.Hit.Kinds == machine.WatchExec)
	return fmt.Sprintf("%s (%s, %d ns)\n   1. %s\n   2. %s\n%s\n   3. %s\n      next: %s",
		s.style.Bold("hit of "+e.Probe.Text), e.Where.by(), e.Where.Now, texts[0], texts[1], line, texts[2], e.Next())
}

// changes lists the registers that are not what they were a step before, of a CPU or a thread.
func (s *stepWriter) changes(of int, regs *x86.PtRegs) {
	if regs == nil {
		return
	}
	last, known := s.last[of]
	s.last[of] = *regs
	if !known {
		return
	}
	before := registers(&last)
	var list []string
	for i, r := range registers(regs) {
		if r.value != before[i].value {
			list = append(list, fmt.Sprintf("%s %x -> %x", r.name, before[i].value, r.value))
		}
	}
	if list != nil {
		fmt.Fprintf(s.w, "      changed: %s\n", strings.Join(list, ", "))
	}
}
