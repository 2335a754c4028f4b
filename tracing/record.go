package tracing

import (
	"encoding/binary"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Record is a record of an event, taken apart.
type Record struct {
	// Time by the buffer's clock: nanoseconds since boot, unless that is
	// "counter".
	Time uint64
	CPU  int
	PID  int
	Comm string
	// Group and Event are the event's names.
	Group, Event string
	// Return: it is a return probe's record. Then Func is the function, and IP the return address;
	// otherwise IP is the probed address.
	Return   bool
	Func, IP x86.Addr
	Args     []RecordArg
}

// RecordArg is an argument of a record.
type RecordArg struct {
	Name string
	// Value is an int64, a uint64, a Hex, a string ("(fault)" for text that could not be fetched,
	// and symbols and characters as trace shows them), or for an array a list of those as []any.
	Value any
}

// Hex is a number that trace shows in hexadecimal.
type Hex uint64

// EventOf returns the event of a kprobe, or of a return probe's kprobe; false if it has none. It is
// for observers of kprobes, while guest code runs.
func (t *Tracing) EventOf(p *kprobes.Kprobe) (group, name string, ok bool) {
	for _, tp := range t.probes {
		if tp.kp == p {
			return tp.def.Group, tp.def.Event, true
		}
	}
	return "", "", false
}

// parse takes a record apart.
func (t *Tracing) parse(e *probeEvent, cpu int, now uint64, rec []byte) *Record {
	r := &Record{
		Time: now, CPU: cpu, PID: t.pid, Comm: t.comm, Group: e.format.Group, Event: e.format.Name, Return: e.isReturn,
		IP: x86.Addr(binary.LittleEndian.Uint64(rec[offIP:])),
	}
	if e.isReturn {
		r.Func, r.IP = r.IP, x86.Addr(binary.LittleEndian.Uint64(rec[offRetIP:]))
	}
	for i := range e.args {
		a := &e.args[i]
		f := fetch.Field(a, headSize(e.isReturn))
		arg := RecordArg{a.Name, t.value(a.Type, &f, rec, 0)}
		if a.Count > 0 {
			list := make([]any, a.Count)
			for n := range list {
				list[n] = t.value(a.Type, &f, rec, n)
			}
			arg.Value = list
		}
		r.Args = append(r.Args, arg)
	}
	return r
}

func (t *Tracing) value(typ *definition.Type, f *event.Field, rec []byte, i int) any {
	if typ.IsString() {
		if s, ok := f.Text(rec, i); ok {
			return string(s)
		}
		return "(fault)"
	}
	v := f.Number(rec, i)
	switch typ.Show {
	case definition.ShowSigned:
		return int64(v)
	case definition.ShowHex, definition.ShowBareHex:
		return Hex(v)
	case definition.ShowChar:
		return string([]byte{byte(v)})
	case definition.ShowSymbol:
		return t.symbol(v, true)
	}
	return v
}
