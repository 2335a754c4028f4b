package kimage

import (
	"bytes"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/kimage/btf"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// Event is an event of a booted kernel's tracepoint, with the layout of its records.
type Event struct {
	// System and Name are the folder in tracefs (events/SYSTEM/NAME).
	System, Name string
	// ID is its number, Call its struct trace_event_call.
	ID   int
	Call x86.Addr
	// Record is the name of its record's structure, trace_event_raw_X.
	Record string
	// Fields are a record's own fields, after the header that all records have.
	Fields []EventField
}

// EventField is a field of an event's records.
type EventField struct {
	Name string
	// Type is in C's words, as "char[16]"; with "__data_loc " before it the field says where in
	// the record a thing of that type is.
	Type         string
	Offset, Size int
	Signed       bool
}

// Declaration is the field as the event's format file has it.
func (f *EventField) Declaration() string {
	i := strings.IndexByte(f.Type, '[')
	if i < 0 || strings.HasPrefix(f.Type, "__") {
		return f.Type + " " + f.Name
	}
	return f.Type[:i] + " " + f.Name + f.Type[i:]
}

// eventReader reads a dump's lists of events, by the layout that its BTF gives.
type eventReader struct {
	img                *Image
	list, class, tp    int64 // of a trace_event_call
	id                 int64
	system, fields     int64 // of its class
	probe, enable      int64
	link, name, typ    int64 // of an ftrace_event_field
	offset, size, sign int64
}

// Events lists the kernel's tracepoints that have records, in the kernel's order, without the
// events of system calls. Only a booted kernel's dump has any. They are read once; the list must
// not be changed.
func (img *Image) Events() []Event {
	img.events.once.Do(func() { img.events.list = img.readEvents() })
	return img.events.list
}

func (img *Image) readEvents() (list []Event) {
	r, ok := img.eventReader()
	if !ok {
		return nil
	}
	head, reg := img.Lookup("ftrace_events"), img.Lookup("trace_event_reg")
	if len(head) != 1 || len(reg) != 1 {
		return nil
	}
	r.each(head[0].Addr, 0, bounded.Tracepoints, func(at x86.Addr) {
		call := at.Add(-r.list)
		if e, ok := r.event(call, reg[0].Addr); ok {
			list = append(list, e)
		}
	})
	return list
}

// TracersEvents are the events of the tracers' own records (system ftrace), which have a
// format and no tracepoint. Only a booted kernel's dump has any.
func (img *Image) TracersEvents() (list []TracersEvent) {
	r, ok := img.eventReader()
	head := img.Lookup("ftrace_events")
	if !ok || len(head) != 1 {
		return nil
	}
	r.each(head[0].Addr, 0, bounded.Tracepoints, func(at x86.Addr) {
		call := at.Add(-r.list)
		class := x86.Addr(r.word(call.Add(r.class), 8))
		if class != 0 && r.text(x86.Addr(r.word(class.Add(r.system), 8))) == "ftrace" {
			name := r.text(x86.Addr(r.word(call.Add(r.tp), 8)))
			list = append(list, TracersEvent{Name: name, Perf: r.word(class.Add(r.enable), 8) != 0})
		}
	})
	return list
}

// TracersEvent is an event of the system ftrace.
type TracersEvent struct {
	Name string
	// Perf says that perf knows the event by a number, its file id.
	Perf bool
}

func (img *Image) eventReader() (r *eventReader, ok bool) {
	if img.Core() == nil {
		return nil, false
	}
	r = &eventReader{img: img}
	ok = true
	at := func(structure string, members ...string) (offset int64) {
		t, found := img.Types().Struct(structure)
		for _, name := range members {
			m, has := t, false
			if found {
				var member btf.Member
				member, has = t.Member(name)
				offset, m = offset+int64(member.Offset/8), member.Type
			}
			t, found = m, has
		}
		ok = ok && found
		return offset
	}
	r.list, r.class, r.tp = at("trace_event_call", "list"), at("trace_event_call", "class"), at("trace_event_call", "tp")
	r.id = at("trace_event_call", "event", "type")
	r.system, r.fields = at("trace_event_class", "system"), at("trace_event_class", "fields")
	r.probe, r.enable = at("trace_event_class", "perf_probe"), at("trace_event_class", "reg")
	r.link, r.name, r.typ = at("ftrace_event_field", "link"), at("ftrace_event_field", "name"), at("ftrace_event_field", "type")
	r.offset, r.size, r.sign = at("ftrace_event_field", "offset"), at("ftrace_event_field", "size"), at("ftrace_event_field", "is_signed")
	return r, ok
}

func (r *eventReader) word(at x86.Addr, n int) uint64 {
	var b [8]byte
	if r.img.ReadKernel(at, b[:n]) != nil {
		return 0
	}
	return uint64(opened.Abs64(b[:]))
}

// each visits a list, by its next or, with prev at 8, from its end.
func (r *eventReader) each(head x86.Addr, link int64, most int, fn func(at x86.Addr)) {
	for at := x86.Addr(r.word(head.Add(link), 8)); at != head && at != 0 && most > 0; most-- {
		fn(at)
		at = x86.Addr(r.word(at.Add(link), 8))
	}
}

// text reads a text that ends with a zero, page by page: the page after it may not be there.
func (r *eventReader) text(at x86.Addr) string {
	const page = 4096
	var b [256]byte
	for n := 0; n < len(b); {
		end := min(len(b), n+page-int(uint64(at.Add(int64(n)))%page))
		if r.img.ReadKernel(at.Add(int64(n)), b[n:end]) != nil {
			return string(b[:n])
		}
		if i := bytes.IndexByte(b[n:end], 0); i >= 0 {
			return string(b[:n+i])
		}
		n = end
	}
	return ""
}

func (r *eventReader) event(call, reg x86.Addr) (e Event, ok bool) {
	class := x86.Addr(r.word(call.Add(r.class), 8))
	tp := tableOwner{img: r.img}.tracepointName(x86.Addr(r.word(call.Add(r.tp), 8)))
	probe, found := r.img.SymbolAt(x86.Addr(r.word(class.Add(r.probe), 8)))
	template, is := strings.CutPrefix(probe.Name, "perf_trace_")
	if class == 0 || tp == "" || !found || !is || x86.Addr(r.word(class.Add(r.enable), 8)) != reg {
		return e, false
	}
	e = Event{
		System: r.text(x86.Addr(r.word(class.Add(r.system), 8))), Name: tp,
		ID: int(r.word(call.Add(r.id), 4)), Call: call, Record: "trace_event_raw_" + template,
	}
	r.each(class.Add(r.fields), 8, bounded.TracepointFields, func(at x86.Addr) {
		f := at.Add(-r.link)
		e.Fields = append(e.Fields, EventField{
			Name: r.text(x86.Addr(r.word(f.Add(r.name), 8))), Type: r.text(x86.Addr(r.word(f.Add(r.typ), 8))),
			Offset: int(r.word(f.Add(r.offset), 4)), Size: int(r.word(f.Add(r.size), 4)), Signed: r.word(f.Add(r.sign), 4) != 0,
		})
	})
	return e, true
}
