package run

import (
	"fmt"
	"io"
	"strings"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/internal/colour"
	"kprobelab/internal/steptext"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/machine"
	"kprobelab/optimizer"
	"kprobelab/profile"
	"kprobelab/x86"
)

// stepLines writes what steps of hits in a kernel and in a program have alike.
type stepLines struct {
	w     io.Writer
	style colour.Style
	// original reads code without probes, and says how much of it there is; place names an address.
	original func(x86.Addr, []byte) int
	place    func(x86.Addr) string
	// last are the registers at the step before, of each CPU or thread.
	last map[int]x86.PtRegs
}

// stepWriter shows a hit as numbered steps: the text before and after the
// probe was inserted, its slot, and then what happens, which registers it
// changed, and who runs next.
type stepWriter struct {
	stepLines
	// live is what is in memory now.
	live func(x86.Addr, []byte) error
	// detour is the detour buffer of a probed address.
	detour func(x86.Addr) (optimizer.Detour, bool)
	c      *profile.Config
}

func newStepWriter(w io.Writer, st colour.Style, l *kprobelab.Lab) *stepWriter {
	view, live := l.Kprobes.View(), l.Machine.ReadMem
	s := &stepWriter{live: live, detour: l.Kprobes.Detour, c: l.Image.Profile()}
	s.stepLines = stepLines{w: w, style: st, last: map[int]x86.PtRegs{}}
	s.original = func(at x86.Addr, b []byte) int {
		n := view.CodeAt(at, b)
		if n == 0 {
			for n = len(b); n > 0 && live(at, b[:n]) != nil; n-- {
			}
		}
		return n
	}
	// place is SYM+0xOFF, of what %pS prints.
	s.place = func(at x86.Addr) string {
		name, _, _ := strings.Cut(l.Machine.Symbolize(at), "/")
		return strings.TrimSuffix(name, "+0x0")
	}
	return s
}

func (s *stepWriter) step(e *Step) {
	if e.hit.Step == 1 {
		s.begin(e.Where, e.hit)
	}
	fmt.Fprintf(s.w, "  %2d. %s\n", e.Number, steptext.Hit(e.hit))
	s.changes(e.Where.CPU, e.hit.Regs)
	if next := s.next(e.hit); next != "" {
		fmt.Fprintf(s.w, "      next: %s\n", next)
	}
}

// watched is a hit of a watchpoint, with the line that the handler prints.
func (s *stepLines) watched(e *Accessed, line string) string {
	texts := steptext.Watch(e.Hit.Kinds == machine.WatchExec)
	return fmt.Sprintf("%s (%s, %d ns)\n   1. %s\n   2. %s\n%s\n   3. %s\n      next: %s",
		s.style.Bold("hit of "+e.Probe.Text), e.Where.by(), e.Where.Now, texts[0], texts[1], line, texts[2], s.instruction(x86.Addr(e.Regs.IP)))
}

// by says who makes a hit.
func (w Where) by() string {
	if w.PID != 0 {
		return fmt.Sprintf("process %d, thread %d", w.PID, w.Task)
	}
	return fmt.Sprintf("cpu %d, task %d", w.CPU, w.Task)
}

// begin is the head of a hit: where, and what stands there.
func (s *stepWriter) begin(at Where, e *kprobes.Event) {
	delete(s.last, at.CPU)
	head := "hit of " + s.place(e.Addr)
	if e.Kind == kprobes.EventReturn {
		head = "return to the trampoline"
	}
	fmt.Fprintf(s.w, "%s (%s, %d ns)\n", s.style.Bold(head), at.by(), at.Now)
	if e.Kind == kprobes.EventReturn || e.Probe == nil {
		return
	}
	var b [15]byte
	n := s.original(e.Addr, b[:])
	s.code("text before", e.Addr, b[:n])
	if s.live(e.Addr, b[:n]) == nil {
		s.code("text now", e.Addr, b[:n])
		s.calls(e, b[:n])
	}
	s.slot(e.Probe)
}

// calls names the trampoline that a fentry site's call leads to.
func (s *stepWriter) calls(e *kprobes.Event, b []byte) {
	inst, err := decoder.Decode(b)
	if e.Probe.OnFtrace() && err == nil && inst.Class == decoder.ClassCall {
		to := e.Addr.Add(int64(inst.Length) + inst.Rel)
		fmt.Fprintf(s.w, "      %-11s  %s  %s\n", "which calls", to, s.place(to))
	}
}

// slot shows the instruction out of line, or what is done in its place.
func (s *stepWriter) slot(p *kprobes.Kprobe) {
	if d, ok := s.detour(p.Addr); ok && p.Optimized() {
		s.buffer(&d)
		return
	}
	sl, ok := p.Slot()
	if !ok {
		return
	}
	s.code("slot", sl.Addr, sl.Bytes[:sl.Len])
	if probepoint.HowOf(&sl, s.c) == probepoint.Emulated {
		fmt.Fprintf(s.w, "      (not executed there: %s does what it would do)\n", sl.Emulation)
	}
}

// buffer shows what a detour buffer executes after its call.
func (s *stepWriter) buffer(d *optimizer.Detour) {
	fmt.Fprintf(s.w, "      %-11s  %s  calls optimized_callback, then runs\n", "detour", d.Addr)
	at, rest := d.Copied(), d.Code()[d.TemplateSize:]
	for len(rest) > 0 {
		inst, err := decoder.Decode(rest)
		if err != nil {
			return
		}
		s.code("", at, rest)
		at, rest = at.Add(int64(inst.Length)), rest[inst.Length:]
	}
}

// code shows the instruction at the start of b; of a slot all bytes, because what
// follows the copy brings the CPU back.
func (s *stepLines) code(what string, at x86.Addr, b []byte) {
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
	fmt.Fprintf(s.w, "      %-11s  %s  %-20s  %s\n", what, at, fmt.Sprintf("% x", b), text)
}

// changes lists the registers that are not what they were a step before, of a CPU or a thread.
func (s *stepLines) changes(of int, regs *x86.PtRegs) {
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

// next says who runs after the step, where the step does not say so itself.
func (s *stepWriter) next(e *kprobes.Event) string {
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
func (s *stepWriter) handler(e *kprobes.Event) string {
	switch {
	case e.Probe != nil && e.Probe.OnFtrace():
		return "kprobe_ftrace_handler, called by the trampoline"
	case e.Kind == kprobes.EventStepped && s.c.Step.TrapFlag:
		return "kprobe_debug_handler, from the debug exception"
	}
	return "kprobe_int3_handler, from the breakpoint exception"
}

// instruction names a place and what is executed there.
func (s *stepLines) instruction(at x86.Addr) string {
	var b [15]byte
	n := s.original(at, b[:])
	return s.place(at) + ": " + decoder.Text(b[:n], at)
}
