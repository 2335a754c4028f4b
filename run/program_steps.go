package run

import (
	"fmt"
	"strings"

	"kprobelab/decoder"
	"kprobelab/internal/steptext/usertext"
	"kprobelab/internal/userprobe"
	"kprobelab/x86"
)

// stepOf is a step of a uprobe's hit as an event.
func (r *program) stepOf(e *userprobe.Event) Step {
	words := r.words(e)
	step := Step{
		Where: Where{PID: e.PID, Task: e.TID, Now: r.p.Now()}, Number: e.Step, Addr: e.Addr,
		Text: strings.TrimSuffix(e.Kind.String()+": "+words, ": "), Words: words, Regs: e.Regs, user: e, of: r,
	}
	if e.Kind == userprobe.EventInstance || e.Kind == userprobe.EventUnwound {
		step.Returns = r.returns(e)
	}
	return step
}

// returns are the events that wait for the return of the function at the probe.
func (r *program) returns(e *userprobe.Event) (list []string) {
	for _, of := range r.trace.Events() {
		if e.File != nil && of.Return && of.At(e.File, e.Offset) {
			list = append(list, of.Event())
		}
	}
	return list
}

// words are a step in words, with the event whose handler it is.
func (r *program) words(e *userprobe.Event) string {
	text := usertext.Step(e)
	if e.Consumer == nil {
		return text
	}
	if of := r.trace.Of(e.Consumer); of != nil {
		text += " (" + of.Group + "/" + of.Event() + ")"
	}
	return text
}

// describe implements describer.
func (r *program) describe(step *Step) *Description {
	e := step.user
	d := &Description{Next: usertext.Next(e, r.rules)}
	if step.Number == 1 {
		r.begin(d, e)
	}
	switch e.Kind {
	case userprobe.EventCopy:
		d.After = append(d.After, code("copy", e.Slot, e.Analysis.Copy[:]))
		if text := usertext.Operand(e.Analysis); text != "" {
			d.After = append(d.After, note("%s", text))
		}
	case userprobe.EventGone, userprobe.EventResume, userprobe.EventReturned, userprobe.EventCallEnd:
		d.Next = r.instruction(x86.Addr(e.Regs.IP))
	}
	return d
}

// begin is the head of a hit: where it is, and what stands there.
func (r *program) begin(d *Description, e *userprobe.Event) {
	if d.Title = "hit of " + r.places.place(e.Addr); e.Kind == userprobe.EventReturn {
		d.Title = "return of " + r.places.place(e.Addr) + " to the trampoline"
		return
	}
	if e.File == nil {
		return
	}
	var b [15]byte
	n := r.probes.Code(e.Addr, b[:])
	d.Head = []StepLine{
		{What: "file", Text: fmt.Sprintf("%s:0x%x", e.File.Name, e.Offset)},
		code("text before", e.Addr, b[:n]),
	}
	if r.p.Read(e.Addr, b[:n]) == nil {
		d.Head = append(d.Head, code("text now", e.Addr, b[:n]))
	}
}

// instruction implements describer.
func (r *program) instruction(at x86.Addr) string {
	var b [15]byte
	n := r.probes.Code(at, b[:])
	return r.places.place(at) + ": " + decoder.Text(b[:n], at)
}
