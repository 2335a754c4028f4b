package run

import (
	"fmt"
	"strings"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/internal/session"
	"kprobelab/internal/steptext"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/optimizer"
	"kprobelab/profile"
	"kprobelab/x86"
)

// kernelSteps describes the steps of hits in a kernel.
type kernelSteps struct {
	l    *kprobelab.Lab
	view kimage.View
	c    *profile.Config
}

func newKernelSteps(l *kprobelab.Lab) *kernelSteps {
	return &kernelSteps{l: l, view: l.Kprobes.View(), c: l.Image.Profile()}
}

// stepOf is a step of a hit as an event.
func (s *kernelSteps) stepOf(l *session.Session, e *kprobes.Event) Step {
	words := steptext.Hit(e)
	return Step{Where: where(l.Here()), Number: e.Step, Addr: e.Addr, Text: e.Kind.String() + ": " + words, Words: words, Regs: e.Regs, hit: e, of: s}
}

// describe implements describer.
func (s *kernelSteps) describe(step *Step) *Description {
	e := step.hit
	d := &Description{Next: s.next(e)}
	if e.Step != 1 {
		return d
	}
	if d.Title = "hit of " + s.place(e.Addr); e.Kind == kprobes.EventReturn {
		d.Title = "return to the trampoline"
		return d
	}
	if e.Probe != nil {
		d.Head = append(s.text(e), s.slot(e.Probe)...)
	}
	return d
}

// original reads code without probes, and says how much of it there is.
func (s *kernelSteps) original(at x86.Addr, b []byte) int {
	n := s.view.CodeAt(at, b)
	if n == 0 {
		for n = len(b); n > 0 && s.l.Machine.ReadMem(at, b[:n]) != nil; n-- {
		}
	}
	return n
}

// place names an address as SYM+0xOFF: the first part of the text that %pS prints.
func (s *kernelSteps) place(at x86.Addr) string {
	name, _, _ := strings.Cut(s.l.Machine.Symbolize(at), "/")
	return strings.TrimSuffix(name, "+0x0")
}

// instruction implements describer.
func (s *kernelSteps) instruction(at x86.Addr) string {
	var b [15]byte
	n := s.original(at, b[:])
	return s.place(at) + ": " + decoder.Text(b[:n], at)
}

// text is the code at the probe, without it and with it.
func (s *kernelSteps) text(e *kprobes.Event) []StepLine {
	var b [15]byte
	n := s.original(e.Addr, b[:])
	list := []StepLine{code("text before", e.Addr, b[:n])}
	if s.l.Machine.ReadMem(e.Addr, b[:n]) == nil {
		list = append(list, code("text now", e.Addr, b[:n]))
		list = append(list, s.calls(e, b[:n])...)
	}
	return list
}

// calls names the trampoline that a fentry site's call leads to.
func (s *kernelSteps) calls(e *kprobes.Event, b []byte) []StepLine {
	inst, err := decoder.Decode(b)
	if !e.Probe.OnFtrace() || err != nil || inst.Class != decoder.ClassCall {
		return nil
	}
	to := e.Addr.Add(int64(inst.Length) + inst.Rel)
	return []StepLine{{What: "which calls", Text: fmt.Sprintf("%s  %s", to, s.place(to))}}
}

// slot is the instruction out of line, or what is done in its place.
func (s *kernelSteps) slot(p *kprobes.Kprobe) []StepLine {
	if d, ok := s.l.Kprobes.Detour(p.Addr); ok && p.Optimized() {
		return buffer(&d)
	}
	sl, ok := p.Slot()
	if !ok {
		return nil
	}
	list := []StepLine{code("slot", sl.Addr, sl.Bytes[:sl.Len])}
	if probepoint.HowOf(&sl, s.c) == probepoint.Emulated {
		list = append(list, note("not executed there: %s does what it would do", sl.Emulation))
	}
	return list
}

// buffer lists the instructions that a detour buffer executes after its call.
func buffer(d *optimizer.Detour) []StepLine {
	list := []StepLine{{What: "detour", Text: fmt.Sprintf("%s  calls optimized_callback, then runs", d.Addr)}}
	at, rest := d.Copied(), d.Code()[d.TemplateSize:]
	for len(rest) > 0 {
		inst, err := decoder.Decode(rest)
		if err != nil {
			break
		}
		list = append(list, code("", at, rest))
		at, rest = at.Add(int64(inst.Length)), rest[inst.Length:]
	}
	return list
}

// next names the code that runs after the step, "" if the step's own text names it.
func (s *kernelSteps) next(e *kprobes.Event) string {
	switch e.Kind {
	case kprobes.EventTrap, kprobes.EventStepped:
		return s.handler(e)
	case kprobes.EventOptimized:
		return "optimized_callback, called by the detour buffer"
	case kprobes.EventReturn:
		if s.c.Kret.Rethook {
			return "rethook_trampoline_handler, called by the trampoline"
		}
		return "trampoline_handler, called by the trampoline"
	case kprobes.EventStep, kprobes.EventBoost, kprobes.EventSkipped, kprobes.EventResume, kprobes.EventReturned,
		kprobes.EventDetour, kprobes.EventDetoured, kprobes.EventPoke:
		return s.instruction(e.Addr)
	}
	return ""
}

// handler names the kernel's function that the trap leads to.
func (s *kernelSteps) handler(e *kprobes.Event) string {
	switch {
	case e.Probe != nil && e.Probe.OnFtrace():
		return "kprobe_ftrace_handler, called by the trampoline"
	case e.Kind == kprobes.EventStepped && s.c.Step.TrapFlag:
		return "kprobe_debug_handler, from the debug exception"
	}
	return "kprobe_int3_handler, from the breakpoint exception"
}
