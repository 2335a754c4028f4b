package perfetto

import (
	"fmt"
	"io"
	"strings"
)

// Writer writes a trace. It keeps no event, only the tracks that it has declared and the slices that are open.
type Writer struct {
	w    io.Writer
	name string
	seen map[uint64]bool
	open map[uint64][]string
	err  error
}

// NewWriter writes to w, packet by packet; give it a buffered one. name is the
// process that the tracks belong to, such as the image's name.
func NewWriter(w io.Writer, name string) *Writer {
	return &Writer{w: w, name: name, seen: map[uint64]bool{}, open: map[uint64][]string{}}
}

// The numbers of tracks: the process, the CPUs and the tasks.
const (
	processTrack = 1
	cpuTracks    = 1 << 32
	taskTracks   = 2 << 32
	processes    = 3 << 32
)

// guestPID is the process of the viewer that all tracks belong to.
const guestPID = 1

func (e *Event) track() uint64 {
	if e.OnCPU {
		return cpuTracks | uint64(uint32(e.CPU))
	}
	return taskTracks | uint64(uint32(e.PID))
}

// Write writes one event. Events of one track are to come in the order of
// their time. An End without its Begin becomes an Instant (a call that was
// under way when tracing started); slices inside one that ends, end with it.
// The error is the first of all writes.
func (w *Writer) Write(e *Event) error {
	track := e.track()
	w.declare(track, e)
	kind := e.Kind
	switch kind {
	case Begin:
		w.open[track] = append(w.open[track], e.Name)
	case End:
		if !w.unwind(track, e) {
			kind = Instant
		}
	}
	w.event(track, kind, e)
	return w.err
}

// unwind closes the slices that are open inside the slice that the event ends. It returns false if there is no
// such slice.
func (w *Writer) unwind(track uint64, e *Event) bool {
	open := w.open[track]
	at := len(open) - 1
	for at >= 0 && open[at] != e.Name {
		at--
	}
	if at < 0 {
		return false
	}
	for i := len(open) - 1; i > at; i-- {
		w.event(track, End, &Event{Time: e.Time, Name: open[i]})
	}
	w.open[track] = open[:at]
	return true
}

// Err is the first error of a write.
func (w *Writer) Err() error { return w.err }

// declare writes the descriptors of a track that was not used yet.
func (w *Writer) declare(track uint64, e *Event) {
	if w.seen[track] {
		return
	}
	process := uint64(guestPID)
	if e.Process != 0 {
		process = uint64(uint32(e.Process))
		w.process(processes|process, process, e.ProcessName)
	} else {
		w.process(processTrack, process, w.name)
	}
	w.seen[track] = true
	m := message{}.uint(trackUUID, track)
	if e.OnCPU {
		m = m.uint(trackParent, processTrack).text(trackName, fmt.Sprintf("CPU %d", e.CPU))
	} else {
		thread := message{}.uint(threadPID, process).uint(threadTID, uint64(uint32(e.PID)))
		if e.Comm != "" {
			thread = thread.text(threadName, valid(e.Comm))
		}
		m = m.sub(trackThread, thread)
	}
	w.descriptor(m)
}

// process writes the descriptor of a process that was not used yet.
func (w *Writer) process(track, pid uint64, name string) {
	if !w.seen[track] {
		w.seen[track] = true
		w.descriptor(message{}.uint(trackUUID, track).sub(trackProcess, message{}.uint(processPID, pid).text(processName, valid(name))))
	}
}

func (w *Writer) descriptor(m message) {
	w.packet(message{}.uint(packetSequence, 1).sub(packetTrackDescriptor, m))
}

func (w *Writer) event(track uint64, kind Kind, e *Event) {
	m := message{}.uint(eventType, eventTypes[kind]).uint(eventTrack, track)
	if e.Category != "" {
		m = m.text(eventCategories, valid(e.Category))
	}
	if kind != End {
		m = m.text(eventName, valid(e.Name))
	}
	for _, f := range e.Flows {
		m = m.fixed(eventFlows, f)
	}
	for _, f := range e.EndFlows {
		m = m.fixed(eventEndFlows, f)
	}
	for i := range e.Args {
		m = m.sub(eventAnnotations, annotation(message{}.text(annotationName, valid(e.Args[i].Name)), e.Args[i].Value))
	}
	w.packet(message{}.uint(packetTimestamp, e.Time).uint(packetSequence, 1).sub(packetTrackEvent, m))
}

// annotation adds a value to a DebugAnnotation.
func annotation(m message, v any) message {
	switch v := v.(type) {
	case int64:
		return m.uint(annotationInt, uint64(v))
	case uint64:
		return m.uint(annotationUint, v)
	case Pointer:
		return m.uint(annotationPointer, uint64(v))
	case bool:
		return m.bool(annotationBool, v)
	case string:
		return m.text(annotationString, valid(v))
	case []any:
		for _, e := range v {
			m = m.sub(annotationArray, annotation(message{}, e))
		}
		return m
	}
	return m.text(annotationString, valid(fmt.Sprint(v)))
}

// valid makes a text UTF-8, which protobuf wants of a string.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func (w *Writer) packet(m message) {
	if w.err == nil {
		_, w.err = w.w.Write(message{}.sub(tracePacket, m))
	}
}
