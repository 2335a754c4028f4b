package perfetto

import (
	"kprobelab/kprobes"
	"kprobelab/tracing"
)

// eventHit draws a step of a probe that a tracing event is made of. Its
// handler writes a record, which Record draws: where a filter or a trigger
// lets none be written, there is no instant, and a slice ends without
// arguments.
func (t *Timeline) eventHit(kind kprobes.EventKind, out *Event, group, name, word string) {
	out.Category, out.Name = group, name+word
	switch kind {
	case kprobes.EventPre:
		return
	case kprobes.EventReturnHandler:
		t.flushReturned()
		t.returned = out
		return
	}
	t.emit(out)
}

// Record is a record of a tracing event: an instant with its arguments as
// annotations, or for a return probe the end of the slice that began where the
// function was entered.
func (t *Timeline) Record(r *tracing.Record) {
	args := []Arg{{Name: "cpu", Value: int64(r.CPU)}}
	if r.Return {
		args = append(args, Arg{Name: "func", Value: t.symbol(r.Func)})
	}
	args = append(args, Arg{Name: "ip", Value: t.symbol(r.IP)})
	for _, a := range r.Args {
		args = append(args, Arg{Name: a.Name, Value: argument(a.Value)})
	}
	if end := t.returned; end != nil && r.Return && end.Category == r.Group && end.Name == r.Event {
		end.Args, t.returned = args, nil
		t.emit(end)
		return
	}
	t.emit(&Event{
		Time: r.Time, CPU: r.CPU, PID: r.PID, Comm: r.Comm, Category: r.Group, Name: r.Event, Args: args,
	})
}

// annotation is a value as the trace has it.
func argument(v any) any {
	switch v := v.(type) {
	case tracing.Hex:
		return Pointer(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = argument(v[i])
		}
		return list
	}
	return v
}
