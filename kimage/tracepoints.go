package kimage

import (
	"cmp"
	"slices"
	"strings"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// Tracepoint is a place in the kernel's source to which programs attach by a name.
type Tracepoint struct {
	// System is the folder of its event in tracefs (events/SYSTEM/NAME), "" for one
	// that has no event.
	System string `json:"system,omitempty"`
	Name   string `json:"name"`
	// Raw: a BPF program can attach to it by its name alone (raw_tp, tp_btf).
	Raw bool `json:"raw,omitempty"`
	// Module is the loaded module that has it, "" for the kernel.
	Module string `json:"module,omitempty"`
}

// The tables of events and of raw tracepoints: where pointers lie in their entries.
// They have had these places since 3.15 and 4.17.
const (
	eventClass   = 16 // trace_event_call.class
	eventName    = 24 // trace_event_call.name, or .tp
	eventEnd     = 32
	rawEventSize = 32 // bpf_raw_event_map, which begins with its tracepoint
)

// TracepointPrefix begins the symbols of tracepoints.
const TracepointPrefix = "__tracepoint_"

// Tracepoints lists the image's and its modules', by system and name. An image whose
// symbols name functions only has none.
func (img *Image) Tracepoints() []Tracepoint {
	var list []Tracepoint
	owners := []tableOwner{{img: img}}
	for _, m := range img.modules {
		owners = append(owners, tableOwner{img: img, module: m.name})
	}
	for _, o := range owners {
		list = append(list, o.tracepoints()...)
	}
	SortTracepoints(list)
	return list
}

// SortTracepoints orders them by system, name and module.
func SortTracepoints(list []Tracepoint) {
	slices.SortFunc(list, func(a, b Tracepoint) int {
		return cmp.Or(cmp.Compare(a.System, b.System), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module))
	})
}

func (o tableOwner) tracepoints() (list []Tracepoint) {
	raw := map[string]bool{}
	_, data := o.table(rawTracepoints)
	for ; len(data) >= rawEventSize; data = data[rawEventSize:] {
		if name := o.tracepointName(opened.Abs64(data)); name != "" {
			raw[name] = true
		}
	}
	_, data = o.table(ftraceEvents)
	for ; len(data) >= 8; data = data[8:] {
		t, tp := o.event(opened.Abs64(data))
		if t.Name == "" {
			continue
		}
		if t.System == systemCallEvents && !o.img.calledBySystem(t.Name) {
			continue
		}
		t.Raw = raw[tp]
		list = append(list, t)
		delete(raw, tp)
	}
	for name := range raw {
		list = append(list, Tracepoint{Name: name, Raw: true, Module: o.module})
	}
	return list
}

// systemCallEvents is the folder of the events of system calls, and these are how their names
// begin.
const systemCallEvents = "syscalls"

var systemCallEvent = []string{"sys_enter_", "sys_exit_"}

// calledBySystem reports whether boot keeps the event of a system call: it drops events of calls
// that are not in the table of 64-bit programs. If the functions' names do not tell, all are kept.
func (img *Image) calledBySystem(event string) bool {
	_, named := img.symbolAddr(img.SystemCallFunction("read"))
	if _, table := img.symbolAddr("sys_call_table"); !named || !table {
		return true
	}
	for _, prefix := range systemCallEvent {
		if name, ok := strings.CutPrefix(event, prefix); ok {
			_, called := img.SystemCall(name)
			return called
		}
	}
	return true
}

// event reads a trace_event_call, and the name of its tracepoint, "" if the event has
// none (system calls).
func (o tableOwner) event(at x86.Addr) (t Tracepoint, tp string) {
	b := o.img.bytes(at, eventEnd)
	if b == nil {
		return t, ""
	}
	class := o.img.bytes(opened.Abs64(b[eventClass:]), 8)
	if class == nil {
		return t, ""
	}
	named := opened.Abs64(b[eventName:])
	tp = o.tracepointName(named)
	t = Tracepoint{System: o.img.cstring(opened.Abs64(class)), Name: tp, Module: o.module}
	if t.Name == "" {
		t.Name = o.img.cstring(named)
	}
	if t.System == "" {
		return Tracepoint{}, ""
	}
	return t, tp
}

// tracepointName returns the name of the struct tracepoint at an address, "" if there is none.
func (o tableOwner) tracepointName(at x86.Addr) string {
	s, ok := o.img.SymbolAt(at)
	if !ok || s.Addr != at {
		return ""
	}
	name, ok := strings.CutPrefix(s.Name, TracepointPrefix)
	if !ok {
		return ""
	}
	return name
}
