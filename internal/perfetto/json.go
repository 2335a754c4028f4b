package perfetto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the event as one line of JSON. Times and integers are
// numbers where JavaScript holds them exactly (up to 2^53), else strings;
// pointers are strings in hexadecimal. Arguments keep their order.
func WriteJSON(w io.Writer, e *Event) error {
	o := &object{}
	o.field("time_ns", e.Time)
	o.field("kind", e.Kind.String())
	o.field("cpu", int64(e.CPU))
	if !e.OnCPU {
		if e.Process != 0 {
			o.field("process", int64(e.Process))
		}
		o.field("pid", int64(e.PID))
		o.field("comm", valid(e.Comm))
	}
	o.field("group", valid(e.Category))
	o.field("event", valid(e.Name))
	if len(e.Args) > 0 {
		args := &object{}
		for _, a := range e.Args {
			args.field(valid(a.Name), a.Value)
		}
		o.raw("args", args.close())
	}
	o.flows("flows", e.Flows)
	o.flows("end_flows", e.EndFlows)
	_, err := w.Write(append(o.close(), '\n'))
	return err
}

// object is a JSON object whose fields keep their order.
type object struct{ b bytes.Buffer }

func (o *object) raw(name string, value []byte) {
	sep := byte('{')
	if o.b.Len() > 0 {
		sep = ','
	}
	o.b.WriteByte(sep)
	o.b.Write(marshal(name))
	o.b.WriteByte(':')
	o.b.Write(value)
}

func (o *object) field(name string, value any) { o.raw(name, marshal(plain(value))) }

func (o *object) flows(name string, list []uint64) {
	if len(list) == 0 {
		return
	}
	values := make([]any, len(list))
	for i, f := range list {
		values[i] = f
	}
	o.field(name, values)
}

func (o *object) close() []byte { return append(o.b.Bytes(), '}') }

// marshal cannot fail: plain makes only what JSON has.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("BUG: %T does not marshal: %v", v, err))
	}
	return b
}

// exact is the largest integer that a double holds with all below it.
const exact = 1 << 53

func plain(v any) any {
	switch v := v.(type) {
	case int64:
		if v > exact || v < -exact {
			return fmt.Sprint(v)
		}
		return v
	case uint64:
		if v > exact {
			return fmt.Sprint(v)
		}
		return v
	case Pointer:
		return fmt.Sprintf("0x%x", uint64(v))
	case string:
		return valid(v)
	case bool:
		return v
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	}
	return valid(fmt.Sprint(v))
}
