package perfetto

import (
	"fmt"
	"io"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Timeline writes a trace as things happen.
type Timeline struct {
	write func(*Event) error
	// err is the first error of a write.
	err error
	// symbol names an address.
	symbol func(x86.Addr) string
	// task is the number and the name that a task is drawn with.
	task func(n int) (pid int, comm string)
	// poke is the change of text that CPUs are still to see, and its syncs.
	poke  *textPoke
	pokes uint64

	// eventOf is the tracing event that a probe belongs to.
	eventOf func(*kprobes.Kprobe) (group, name string, ok bool)
	// returned is the end of the slice of an event's return probe, which waits
	// for the record that has its arguments; nil for none.
	returned *Event
	// users are the threads of programs, by number.
	users map[int]*userTrack
}

// textPoke is a change of text with the CPUs that have seen it.
type textPoke struct {
	Span
	at    x86.Addr
	n     int
	syncs []Span
}

// NewTimeline writes to w, which should be buffered; name is the title of the trace, and symbol names
// addresses.
func NewTimeline(w io.Writer, name string, symbol func(x86.Addr) string) *Timeline {
	return &Timeline{write: NewWriter(w, name).Write, symbol: symbol, task: task}
}

// NewTimelineJSON is NewTimeline for JSON lines.
func NewTimelineJSON(w io.Writer, symbol func(x86.Addr) string) *Timeline {
	return &Timeline{write: func(e *Event) error { return WriteJSON(w, e) }, symbol: symbol, task: task}
}

// Tasks draws tasks with the numbers and names that of returns, in place of the machine's.
func (t *Timeline) Tasks(of func(n int) (pid int, comm string)) { t.task = of }

// Events draws the probes of tracing events as these events: by their names, with the values of Record.
func (t *Timeline) Events(of func(*kprobes.Kprobe) (group, name string, ok bool)) { t.eventOf = of }

func (t *Timeline) emit(e *Event) {
	t.flushReturned()
	if t.err == nil {
		t.err = t.write(e)
	}
}

// flushReturned writes the end of a slice that no record was written for.
func (t *Timeline) flushReturned() {
	if end := t.returned; end != nil {
		t.returned = nil
		t.emit(end)
	}
}

// Hit is a step of a hit at a time in nanoseconds: handlers become instants
// on the task's track, and the time from a return probe's entry to its return
// a slice.
func (t *Timeline) Hit(now uint64, e *kprobes.Event) {
	kind, word := Instant, ""
	switch e.Kind {
	case kprobes.EventPre:
	case kprobes.EventMissed:
		word = " (missed)"
	case kprobes.EventNoInstance:
		word = " (no instance)"
	case kprobes.EventFault:
		word = " (fault)"
	case kprobes.EventInstance:
		kind = Begin
	case kprobes.EventReturnHandler:
		kind = End
	default:
		return
	}
	pid, comm := t.task(e.Task)
	out := &Event{
		Time: now, Kind: kind, CPU: e.CPU, PID: pid, Comm: comm,
		Category: "kprobes", Name: t.symbol(e.Probe.Addr) + word,
		Args: []Arg{{Name: "cpu", Value: int64(e.CPU)}, {Name: "addr", Value: Pointer(e.Probe.Addr)}},
	}
	if t.eventOf != nil {
		if group, name, ok := t.eventOf(e.Probe); ok {
			t.eventHit(e.Kind, out, group, name, word)
			return
		}
	}
	t.emit(out)
}

// task is the number and the name that tracing has for a task of the machine.
func task(n int) (pid int, comm string) {
	if n == 0 {
		return 1, "init"
	}
	return n + 1, fmt.Sprintf("task-%d", n)
}

// Poke is a change of n bytes of text by a CPU. The CPUs see it with their
// next Sync.
func (t *Timeline) Poke(now uint64, cpu int, at x86.Addr, n int) {
	t.flush()
	t.poke = &textPoke{Span: Span{CPU: cpu, Start: now, End: now}, at: at, n: n}
}

// Sync is a CPU's seeing all text that was changed.
func (t *Timeline) Sync(now uint64, cpu int) {
	if t.poke != nil {
		t.poke.syncs = append(t.poke.syncs, Span{CPU: cpu, Start: now, End: now})
	}
}

// flush writes the poke that is under way.
func (t *Timeline) flush() {
	p := t.poke
	if p == nil {
		return
	}
	t.poke = nil
	t.pokes++
	list := Poke(t.pokes, p.Span, p.syncs,
		Arg{Name: "addr", Value: Pointer(p.at)},
		Arg{Name: "symbol", Value: t.symbol(p.at)},
		Arg{Name: "bytes", Value: int64(p.n)})
	for i := range list {
		t.emit(&list[i])
	}
}

// Close writes what is left, and returns the first error of all writes.
func (t *Timeline) Close() error {
	t.flush()
	t.flushReturned()
	return t.err
}
