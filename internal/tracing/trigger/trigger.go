package trigger

import (
	"fmt"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/filter"
)

// Event is an event of one tracer (the top one or an instance). Values of it
// are compared with ==.
type Event interface {
	// Group and Name are the event's.
	Group() string
	Name() string
	// Format has its fields, for filters.
	Format() *event.Format
	// Hold arms the event in soft mode: its hits run triggers, and write no
	// record until SetSoftDisabled(false) or the event's own enable file says
	// so. Holds count; the event cannot be deleted meanwhile.
	Hold() error
	// Release ends a Hold.
	Release()
	// SoftDisabled reports whether hits write no record; SetSoftDisabled changes that.
	SoftDisabled() bool
	SetSoftDisabled(bool)
}

// Tracer is the trace array that the triggers of its events change.
type Tracer interface {
	// TracingOn and SetTracingOn are the file tracing_on.
	TracingOn() bool
	SetTracingOn(bool)
	// Event returns one of its events; nil if there is none.
	Event(group, name string) Event
	// AllocSnapshot makes room for snapshots, Snapshot takes one, and Stack
	// records the stack of the hit.
	AllocSnapshot() error
	Snapshot()
	Stack()
}

// kind is the kind of a trigger's action.
type kind int

const (
	kindOnOff kind = iota
	kindToggle
	kindSnapshot
	kindStack
)

// trigger is one of an event's triggers.
type trigger struct {
	name string
	kind kind
	// on is the state to which it switches its target.
	on bool
	// target is another event, nil for other kinds.
	target Event
	count  int64
	filter *filter.Filter
}

// kin reports whether two triggers exclude each other.
func (t *trigger) kin(u *trigger) bool { return t.kind == u.kind && t.target == u.target }

// post says that it acts after the event's record is written: traceoff, so
// that the event which switches tracing off is still recorded, and stacktrace.
func (t *trigger) post() bool { return t.kind == kindOnOff && !t.on || t.kind == kindStack }

// act makes the trigger's action once; it does nothing if the target already has the state.
func (t *trigger) act(tr Tracer) {
	switch t.kind {
	case kindOnOff:
		if tr.TracingOn() != t.on && t.spend() {
			tr.SetTracingOn(t.on)
		}
	case kindToggle:
		if t.target.SoftDisabled() == t.on && t.spend() {
			t.target.SetSoftDisabled(!t.on)
		}
	case kindSnapshot:
		if t.spend() {
			tr.Snapshot()
		}
	case kindStack:
		if t.spend() {
			tr.Stack()
		}
	}
}

func (t *trigger) spend() bool {
	if t.count == 0 {
		return false
	}
	if t.count != unlimited {
		t.count--
	}
	return true
}

// String is its line in the trigger file.
func (t *trigger) String() string {
	var b strings.Builder
	b.WriteString(t.name)
	if t.target != nil {
		fmt.Fprintf(&b, ":%s:%s", t.target.Group(), t.target.Name())
	}
	if t.count == unlimited {
		b.WriteString(":unlimited")
	} else {
		fmt.Fprintf(&b, ":count=%d", t.count)
	}
	if t.filter != nil {
		b.WriteString(" if " + t.filter.String())
	}
	b.WriteByte('\n')
	return b.String()
}

// build makes the trigger of a command.
func build(c *command, tr Tracer, fields *event.Format) (*trigger, error) {
	t := &trigger{name: c.name, kind: commands[c.name].kind, on: commands[c.name].on}
	if t.kind == kindToggle {
		if t.target = tr.Event(c.group, c.event); t.target == nil {
			return nil, fmt.Errorf("there is no event %s:%s: %w", c.group, c.event, errno.EINVAL)
		}
	}
	if c.remove {
		return t, nil
	}
	var err error
	if t.count, err = c.count(); err != nil {
		return nil, err
	}
	text, conditional, err := c.condition()
	if err != nil || !conditional {
		return t, err
	}
	t.filter, err = filter.Compile(text, fields)
	return t, err
}
