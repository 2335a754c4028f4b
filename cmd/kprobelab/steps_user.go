package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kprobelab/internal/process"
	"kprobelab/internal/steptext/usertext"
	"kprobelab/internal/userevent"
	"kprobelab/internal/userprobe"
	"kprobelab/x86"
)

// userPlaces names addresses of a program.
type userPlaces struct {
	p *process.Process
	// functions are those of each file, by offset.
	functions map[*process.File][]process.Symbol
}

func newUserPlaces(p *process.Process) *userPlaces {
	return &userPlaces{p: p, functions: map[*process.File][]process.Symbol{}}
}

// place is FUNCTION+0xOFF, else FILE:0xOFFSET or the name of what is there, else the address.
func (u *userPlaces) place(at x86.Addr) string {
	switch v := u.p.At(at); {
	case v == nil:
		return at.String()
	case v.File == nil && v.Name != "":
		return plus(v.Name, uint64(at.Sub(v.Start)))
	case v.File == nil:
		return at.String()
	default:
		return u.inFile(v.File, v.FileOffset(at))
	}
}

func plus(name string, n uint64) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s+0x%x", name, n)
}

func (u *userPlaces) inFile(f *process.File, offset uint64) string {
	list, known := u.functions[f]
	if !known {
		all, _ := f.Symbols() // a file without symbols is named by offsets
		list = slices.DeleteFunc(all, func(s process.Symbol) bool { return s.Data || !s.Loaded })
		slices.SortStableFunc(list, func(a, b process.Symbol) int { return int(a.Offset) - int(b.Offset) })
		u.functions[f] = list
	}
	i, _ := slices.BinarySearchFunc(list, offset+1, func(s process.Symbol, at uint64) int { return int(s.Offset) - int(at) })
	if i--; i >= 0 && (offset-list[i].Offset < list[i].Size || list[i].Size == 0) {
		return plus(list[i].Name, offset-list[i].Offset)
	}
	return fmt.Sprintf("%s:0x%x", path.Base(f.Name), offset)
}

// userSteps shows hits of a program's uprobes as numbered steps.
type userSteps struct {
	stepLines
	p   *process.Process
	run *userRun
	// thread is the one of the last step.
	thread int
}

func newUserSteps(r *userRun, places *userPlaces) *userSteps {
	s := &userSteps{p: places.p, run: r}
	s.stepLines = stepLines{w: r.w, style: r.t.outStyle, original: r.probes.Code, place: places.place, last: map[int]x86.PtRegs{}}
	return s
}

func (s *userSteps) step(e *userprobe.Event) {
	if e.Step == 1 {
		s.begin(e)
	} else if e.TID != s.thread {
		fmt.Fprintf(s.w, "      (thread %d)\n", e.TID)
	}
	s.thread = e.TID
	fmt.Fprintf(s.w, "  %2d. %s\n", e.Step, s.run.stepText(e))
	if e.Kind == userprobe.EventCopy {
		s.copied(e)
	}
	s.changes(e.TID, e.Regs)
	next := usertext.Next(e, s.run.rules)
	switch e.Kind {
	case userprobe.EventGone, userprobe.EventResume, userprobe.EventReturned, userprobe.EventCallEnd:
		next = s.instruction(x86.Addr(e.Regs.IP))
	}
	if next != "" {
		fmt.Fprintf(s.w, "      next: %s\n", next)
	}
}

// begin is the head of a hit: where, who, and what stands there.
func (s *userSteps) begin(e *userprobe.Event) {
	delete(s.last, e.TID)
	head := "hit of " + s.place(e.Addr)
	if e.Kind == userprobe.EventReturn {
		head = "return of " + s.place(e.Addr) + " to the trampoline"
	}
	fmt.Fprintf(s.w, "%s (process %d, thread %d, %d ns)\n", s.style.bold(head), e.PID, e.TID, s.p.Now())
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
func (s *userSteps) copied(e *userprobe.Event) {
	s.code("copy", e.Slot, e.Analysis.Copy[:])
	if note := usertext.Operand(e.Analysis); note != "" {
		fmt.Fprintf(s.w, "      (%s)\n", note)
	}
}

// stepText is a step in words, with the event whose handler it is.
func (r *userRun) stepText(e *userprobe.Event) string {
	text := usertext.Step(e)
	if e.Consumer == nil {
		return text
	}
	if of := r.trace.Of(e.Consumer); of != nil {
		text += " (" + of.Group + "/" + of.Event() + ")"
	}
	return text
}

// observe has the steps of hits shown, as far as they are asked for. It returns the names of places, and
// what records the hits, nil where nothing does.
func (r *userRun) observe(p *process.Process) (places *userPlaces, tl *userRecording) {
	places = newUserPlaces(p)
	var sinks []func(*userprobe.Event)
	var records []func(*userevent.Hit)
	if r.json != nil {
		sinks = append(sinks, r.jsonStep)
		records = append(records, r.hit)
	} else if r.plan.steps {
		steps := newUserSteps(r, places)
		sinks = append(sinks, steps.step)
		records = append(records, func(h *userevent.Hit) { fmt.Fprintln(r.w, r.t.outStyle.cyan(h.Text)) })
	}
	if r.recording != nil {
		tl = r.recording.program(r, path.Base(r.program.Name), places)
		sinks = append(sinks, tl.step)
		records = append(records, tl.record)
	}
	if len(sinks) == 0 {
		return places, nil
	}
	r.probes.OnEvent = func(e *userprobe.Event) {
		if r.full() {
			return
		}
		for _, sink := range sinks {
			sink(e)
		}
	}
	r.trace.OnHit = func(h *userevent.Hit) {
		if r.full() {
			return
		}
		for _, record := range records {
			record(h)
		}
	}
	return places, tl
}

// full reports whether a step or a record is left out, and counts it.
func (r *userRun) full() bool {
	if r.printed() < r.plan.maxOutput {
		return false
	}
	r.omitted++
	return true
}

// printed counts the bytes of the output, with what escapes made longer.
func (r *userRun) printed() uint64 {
	return uint64(r.w.Buffered()) + r.t.written.n + r.t.writtenErr.n
}

func (r *userRun) jsonStep(e *userprobe.Event) {
	now := r.p.Now()
	r.json.write(event{
		Event: "step", Addr: e.Addr.String(), PID: &e.PID, Task: &e.TID, Time: &now, Step: e.Step,
		Detail: strings.TrimSuffix(e.Kind.String()+": "+r.stepText(e), ": "),
	})
}
