package fetch

import (
	"fmt"
	"strings"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
)

// Field is an argument's field in records whose fixed head has that many bytes.
func Field(a *definition.Arg, head int) event.Field {
	f := event.Field{
		Name: a.Name, Type: a.Decl(), Offset: head + a.Offset, Size: a.Size(), Signed: a.Type.Signed, Len: a.Count,
	}
	switch {
	case a.Type.IsString() && a.Count > 0:
		f.Kind = event.KindStringArray
	case a.Type.IsString():
		f.Kind = event.KindString
	case a.Count > 0:
		f.Kind = event.KindArray
	}
	return f
}

// Print writes an argument's value as trace has it, arrays as {value,value}.
// symbol is an address as %pS prints it.
func Print(b *strings.Builder, a *definition.Arg, f *event.Field, rec []byte, symbol func(addr uint64) string) {
	if a.Count == 0 {
		value(b, a.Type, f, rec, 0, symbol)
		return
	}
	for i := range a.Count {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		value(b, a.Type, f, rec, i, symbol)
	}
	b.WriteByte('}')
}

func value(b *strings.Builder, typ *definition.Type, f *event.Field, rec []byte, i int, symbol func(addr uint64) string) {
	if typ.IsString() {
		if s, ok := f.Text(rec, i); ok {
			fmt.Fprintf(b, "\"%s\"", s)
		} else {
			b.WriteString("(fault)")
		}
		return
	}
	v := f.Number(rec, i)
	switch typ.Show {
	case definition.ShowSigned:
		fmt.Fprintf(b, "%d", int64(v))
	case definition.ShowHex:
		fmt.Fprintf(b, "%#x", v)
	case definition.ShowBareHex:
		fmt.Fprintf(b, "%x", v)
	case definition.ShowChar:
		b.WriteString("'" + string([]byte{byte(v)}) + "'")
	case definition.ShowSymbol:
		b.WriteString(symbol(v))
	default:
		fmt.Fprintf(b, "%d", v)
	}
}
