package tracing

import (
	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
)

// probeEvent is an event that one or more probes write to (struct
// trace_probe_event).
type probeEvent struct {
	format *event.Format
	// args are the first probe's; the other probes' arguments have the same names and types, and
	// other programs.
	args     []definition.Arg
	isReturn bool
	// probes is in the order in which they were made.
	probes []*probe
	// files has the event's file of the top trace array and of each instance.
	files []*eventFile
}

// enabled reports whether any trace array wants the event's hits.
func (e *probeEvent) enabled() bool {
	for _, f := range e.files {
		if f.enabled {
			return true
		}
	}
	return false
}

// find returns the event of that name, nil if there is none.
func (t *Tracing) find(group, name string) *probeEvent {
	for _, e := range t.events {
		if e.format.Group == group && e.format.Name == name {
			return e
		}
	}
	return nil
}

// register makes a probe part of an event, old or new, and plants it
// (register_trace_kprobe, docs/spec 9.5).
func (t *Tracing) register(tp *probe) error {
	old := t.find(tp.def.Group, tp.def.Event)
	if old != nil {
		if err := t.otherKind(tp, old); err != nil {
			return err
		}
	}
	takes := probeMemory
	if old == nil {
		takes += fileMemory * len(t.arrays())
	}
	if takes > t.memory.left {
		return errno.ENOMEM
	}
	if old != nil && !t.c.Append {
		if err := t.release(old.probes[0]); err != nil {
			return err
		}
		old = nil
	}
	if old != nil {
		return t.append(tp, old)
	}
	e := &probeEvent{
		format: t.formatOf(tp.def, t.takeID()), args: tp.def.Args,
		isReturn: tp.def.Return, probes: []*probe{tp},
	}
	tp.event = e
	if err := t.plantOrWait(tp); err != nil {
		delete(t.ids, e.format.ID)
		return err
	}
	t.events = append(t.events, e)
	t.probes = append(t.probes, tp)
	t.memory.left -= probeMemory + fileMemory*len(t.arrays())
	for _, a := range t.arrays() {
		a.addFile(e)
	}
	return nil
}

// append adds a probe to an event that exists.
func (t *Tracing) append(tp *probe, e *probeEvent) error {
	d := tp.def
	if d.Return != e.isReturn {
		return d.Line.Refuse(0, 0, definition.DiffProbeType, errno.EEXIST)
	}
	if i := differ(d.Args, e.args); i >= 0 {
		return d.Line.Refuse(i+2, 0, definition.DiffArgType, errno.EEXIST)
	}
	for _, o := range e.probes {
		if sameProbe(o.def, d) {
			return d.Line.Refuse(0, 0, definition.SameProbe, errno.EEXIST)
		}
	}
	tp.event = e
	e.probes = append(e.probes, tp)
	if err := t.plantOrWait(tp); err != nil {
		e.probes = e.probes[:len(e.probes)-1]
		return err
	}
	t.probes = append(t.probes, tp)
	t.memory.left -= probeMemory
	return nil
}

// differ is the index of the first argument in which two lists differ, -1 for
// none (trace_probe_compare_arg_type). Of lists of different lengths it is the
// end of the shorter one.
func differ(a, b []definition.Arg) int {
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	for i := range a {
		if a[i].Type != b[i].Type || a[i].Count != b[i].Count || a[i].Name != b[i].Name {
			return i
		}
	}
	return -1
}

// sameProbe compares places and arguments as they were written. The kernel
// compares the symbols of places, so all places that are given by address are
// the same to it.
func sameProbe(a, b *definition.Definition) bool {
	if a.Symbol != b.Symbol || a.Offset != b.Offset || a.File != b.File || a.FileOffset != b.FileOffset {
		return false
	}
	for i := range a.Args {
		if a.Args[i].Text != b.Args[i].Text {
			return false
		}
	}
	return true
}

// takeID takes the lowest number that is free.
func (t *Tracing) takeID() int {
	id := t.c.FirstEventID
	for t.ids[id] {
		id++
	}
	t.ids[id] = true
	return id
}

// release unregisters a probe (unregister_trace_kprobe). One of several in an
// event can always go. The last one takes the event with it; while the event is
// used it cannot go: EBUSY.
func (t *Tracing) release(tp *probe) error {
	e := tp.event
	if len(e.probes) == 1 && e.enabled() {
		return errno.EBUSY
	}
	t.remove(tp)
	return nil
}

// remove takes a probe away, and its event where it was the last.
func (t *Tracing) remove(tp *probe) {
	e := tp.event
	tp.unplant()
	t.probes = without(t.probes, tp)
	e.probes = without(e.probes, tp)
	t.memory.give(probeMemory)
	if len(e.probes) > 0 {
		return
	}
	t.memory.give(fileMemory * len(e.files))
	for _, f := range e.files {
		if f.wasEnabled {
			f.array.clearTrace = true
		}
		f.array.removeFile(f)
	}
	t.events = without(t.events, e)
	delete(t.ids, e.format.ID)
}

// without returns a copy of the list without one of its elements.
func without[T comparable](list []T, x T) []T {
	out := make([]T, 0, len(list))
	for _, y := range list {
		if y != x {
			out = append(out, y)
		}
	}
	return out
}
