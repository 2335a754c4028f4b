package tracing

import (
	"slices"

	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/filter"
	"kprobelab/internal/tracing/ring"
	"kprobelab/internal/tracing/trigger"
	"kprobelab/x86"
)

// traceArray is a trace buffer with its own view of all events: the top one,
// or an instance (struct trace_array).
type traceArray struct {
	t    *Tracing
	name string
	ring *ring.Buffer
	// on is tracing_on.
	on bool
	// files has the events, in the order in which they were made.
	files []*eventFile
	// clearTrace: an event has gone that may have records here.
	clearTrace bool
	errors     errorLog
	closed     bool
	options    options
	// clock is the chosen clock; counter is the last number of the clock
	// "counter".
	clock   string
	counter uint64
	// spare holds the snapshot, nil while there is no room for one.
	spare *ring.Buffer
	// paused counts who stops the trace while reading it.
	paused int
	// pipes counts the open trace_pipe and trace_pipe_raw (trace_ref).
	pipes int
	// tracer is current_tracer; functions and noFunctions choose what the
	// function tracer records.
	tracer                 string
	functions, noFunctions functionFilter
}

// newTraceArray makes a trace array: ENOMEM if there is no room for it.
func newTraceArray(t *Tracing, name string) (*traceArray, error) {
	a := &traceArray{t: t, name: name, ring: ring.New(t.m.NumCPU(), t.o.BufferSize), on: true, clock: clockLocal, tracer: tracerNop, functions: functionFilter{}, noFunctions: functionFilter{}}
	if err := t.memory.take(ringMemory(a.ring) + fileMemory*len(t.events)); err != nil {
		return nil, err
	}
	for _, e := range t.events {
		a.addFile(e)
	}
	return a, nil
}

// arrays are all trace arrays.
func (t *Tracing) arrays() []*traceArray { return append([]*traceArray{t.top}, t.instances...) }

func (a *traceArray) close() {
	a.closed = true
	a.ring.Wake()
	a.freeSnapshot()
	a.t.memory.give(ringMemory(a.ring) + fileMemory*len(a.files))
}

// resetCleared empties the buffers in which a removed event may have records: no format would be
// left to print them (tracing_reset_all_online_cpus).
func (t *Tracing) resetCleared() {
	for _, a := range t.arrays() {
		if a.clearTrace {
			a.clearTrace = false
			a.ring.Reset()
		}
	}
}

// eventFile is an event in a trace array (struct trace_event_file).
type eventFile struct {
	array *traceArray
	event *probeEvent
	// enabled: somebody wants the hits, at least triggers.
	enabled bool
	// holds counts triggers that keep the event in soft mode; softDisabled
	// means that hits write no record.
	holds        int
	softDisabled bool
	wasEnabled   bool

	filter *filter.Filter
	// filterError is the content of the file filter after a filter was refused.
	filterError string
	triggers    trigger.List
}

var _ trigger.Event = (*eventFile)(nil)

func (a *traceArray) addFile(e *probeEvent) {
	f := &eventFile{array: a, event: e}
	a.files = append(a.files, f)
	e.files = append(e.files, f)
}

func (a *traceArray) removeFile(f *eventFile) {
	f.triggers.Clear()
	a.files = without(a.files, f)
}

// setEnabled is a write to the file enable (__ftrace_event_enable_disable).
func (f *eventFile) setEnabled(on bool) error {
	if !on {
		if f.holds == 0 {
			f.stop()
		}
		f.softDisabled = f.holds > 0
		return nil
	}
	f.softDisabled = false
	return f.start()
}

// start makes the event's probes run, if they do not yet.
func (f *eventFile) start() error {
	if f.enabled {
		return nil
	}
	if !f.event.enabled() {
		if err := f.event.enableProbes(); err != nil {
			return err
		}
	}
	f.enabled, f.wasEnabled = true, true
	return nil
}

// stop makes this file no user of the event's probes any more.
func (f *eventFile) stop() {
	if !f.enabled {
		return
	}
	f.enabled = false
	if !f.event.enabled() {
		f.event.disableProbes()
	}
}

// state returns the content of the file enable, without the newline.
func (f *eventFile) state() string {
	s := "0"
	if f.on() {
		s = "1"
	}
	if f.softDisabled || f.holds > 0 {
		s += "*"
	}
	return s
}

// on reports whether hits write records.
func (f *eventFile) on() bool { return f.enabled && !f.softDisabled }

// Group and Name are the event's (trigger.Event).
func (f *eventFile) Group() string { return f.event.format.Group }

// Name is the event's.
func (f *eventFile) Name() string { return f.event.format.Name }

// Format is the event's.
func (f *eventFile) Format() *event.Format { return f.event.format }

// Hold puts the event into soft mode.
func (f *eventFile) Hold() error {
	if f.holds++; f.holds > 1 {
		return nil
	}
	// An event that runs goes on writing records.
	soft := f.softDisabled || !f.enabled
	if err := f.start(); err != nil {
		f.holds--
		return err
	}
	f.softDisabled = soft
	return nil
}

// Release ends a Hold; the last one stops the event if only triggers needed it.
func (f *eventFile) Release() {
	if f.holds--; f.holds > 0 {
		return
	}
	if f.softDisabled {
		f.stop()
	}
	f.softDisabled = false
}

// SoftDisabled and SetSoftDisabled are for triggers.
func (f *eventFile) SoftDisabled() bool { return f.softDisabled }

// SetSoftDisabled changes whether hits write records.
func (f *eventFile) SetSoftDisabled(on bool) { f.softDisabled = on }

// recording reports whether records are written.
func (a *traceArray) recording() bool { return a.on && a.paused == 0 }

// tracer is a trace array as triggers see it, with the hit for which they run;
// without a hit while a command is read.
type tracer struct {
	a    *traceArray
	regs *x86.PtRegs
	way  way
}

var _ trigger.Tracer = (*tracer)(nil)

func (r *tracer) TracingOn() bool      { return r.a.on }
func (r *tracer) SetTracingOn(on bool) { r.a.setOn(on) }
func (r *tracer) AllocSnapshot() error { return r.a.allocSnapshot() }
func (r *tracer) Snapshot()            { r.a.triggerSnapshot(r.regs, r.way) }
func (r *tracer) Stack()               { r.a.writeStack(r.regs, r.way, !r.a.t.c.TriggerCounted) }
func (r *tracer) Event(group, name string) trigger.Event {
	if f := r.a.file(group, name); f != nil {
		return f
	}
	return nil
}

func (a *traceArray) setOn(on bool) {
	a.on = on
	if !on {
		a.ring.Wake() // readers see the end, once they have read all
	}
}

// file returns an event of the array by its names, nil if there is none.
func (a *traceArray) file(group, name string) *eventFile {
	i := slices.IndexFunc(a.files, func(f *eventFile) bool { return f.Group() == group && f.Name() == name })
	if i < 0 {
		return nil
	}
	return a.files[i]
}
