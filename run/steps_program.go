package run

import (
	"fmt"
	"io"

	"kprobelab/internal/colour"
	"kprobelab/internal/process"
	"kprobelab/internal/steptext/usertext"
	"kprobelab/internal/userprobe"
	"kprobelab/profile"
	"kprobelab/x86"
)

// programSteps shows hits of a program's uprobes as numbered steps.
type programSteps struct {
	stepLines
	p *process.Process
	c *profile.Config
	// thread is the one of the last step.
	thread int
}

func newProgramSteps(w io.Writer, st colour.Style, r *program) *programSteps {
	s := &programSteps{p: r.p, c: r.rules}
	s.stepLines = stepLines{w: w, style: st, original: r.probes.Code, place: r.places.place, last: map[int]x86.PtRegs{}}
	return s
}

func (s *programSteps) step(e *Step) {
	if e.Number == 1 {
		s.begin(e.Where, e.user)
	} else if e.Where.Task != s.thread {
		fmt.Fprintf(s.w, "      (thread %d)\n", e.Where.Task)
	}
	s.thread = e.Where.Task
	fmt.Fprintf(s.w, "  %2d. %s\n", e.Number, e.words)
	if e.user.Kind == userprobe.EventCopy {
		s.copied(e.user)
	}
	s.changes(e.Where.Task, e.user.Regs)
	next := usertext.Next(e.user, s.c)
	switch e.user.Kind {
	case userprobe.EventGone, userprobe.EventResume, userprobe.EventReturned, userprobe.EventCallEnd:
		next = s.instruction(x86.Addr(e.user.Regs.IP))
	}
	if next != "" {
		fmt.Fprintf(s.w, "      next: %s\n", next)
	}
}

// begin is the head of a hit: where, who, and what stands there.
func (s *programSteps) begin(at Where, e *userprobe.Event) {
	delete(s.last, at.Task)
	head := "hit of " + s.place(e.Addr)
	if e.Kind == userprobe.EventReturn {
		head = "return of " + s.place(e.Addr) + " to the trampoline"
	}
	fmt.Fprintf(s.w, "%s (%s, %d ns)\n", s.style.Bold(head), at.by(), at.Now)
	if e.Kind == userprobe.EventReturn || e.File == nil {
		return
	}
	fmt.Fprintf(s.w, "      %-11s  %s:0x%x\n", "file", e.File.Name, e.Offset)
	var b [15]byte
	n := s.original(e.Addr, b[:])
	s.code("text before", e.Addr, b[:n])
	if s.p.Read(e.Addr, b[:n]) == nil {
		s.code("text now", e.Addr, b[:n])
	}
}

// copied shows the copy, and how its operand is found.
func (s *programSteps) copied(e *userprobe.Event) {
	s.code("copy", e.Slot, e.Analysis.Copy[:])
	if note := usertext.Operand(e.Analysis); note != "" {
		fmt.Fprintf(s.w, "      (%s)\n", note)
	}
}
