package tracing

import (
	"strings"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/x86"
)

// Offsets of the fields that follow a record's common ones: a kprobe's record
// has the probed address, a return probe's has the function and the return
// address.
const (
	offIP     = event.CommonSize
	offFunc   = event.CommonSize
	offRetIP  = event.CommonSize + 8
	headEntry = event.CommonSize + 8
	headRet   = event.CommonSize + 16
)

// headSize returns the offset of a record's arguments, in bytes.
func headSize(isReturn bool) int {
	if isReturn {
		return headRet
	}
	return headEntry
}

// formatOf returns the format of the events of a definition.
func (t *Tracing) formatOf(d *definition.Definition, id int) *event.Format {
	f := &event.Format{
		Name: d.Event, Group: d.Group, ID: id, Common: event.Common(), Print: printFormat(d),
		BareArrays: t.c.BareArrays, Filters: t.filters(),
	}
	if d.Return {
		f.Fields = append(f.Fields, address("__probe_func", offFunc), address("__probe_ret_ip", offRetIP))
	} else {
		f.Fields = append(f.Fields, address("__probe_ip", offIP))
	}
	for i := range d.Args {
		f.Fields = append(f.Fields, fetch.Field(&d.Args[i], headSize(d.Return)))
	}
	return f
}

// filters returns the features that filters of the events may use.
func (t *Tracing) filters() *event.Filters {
	return &event.Filters{
		RefuseOpenEnd: t.c.RefuseOpenEnd, Functions: t.c.FilterFunctions, CPUSets: t.c.FilterCPUSets, Stack: t.c.FilterStack,
		NoTasks: t.o.NoTasks, CPUs: t.m.NumCPU(), Lookup: t.lookup, Bounds: t.bounds,
	}
}

// lookup is kallsyms_lookup_name: the first symbol of the name.
func (t *Tracing) lookup(name string) (uint64, bool) {
	found := t.k.View().Lookup(name)
	if len(found) == 0 {
		return 0, false
	}
	return uint64(found[0].Addr), true
}

// bounds is kallsyms_lookup_size_offset.
func (t *Tracing) bounds(addr uint64) (from, to uint64, ok bool) {
	s, ok := t.k.View().SymbolAt(x86.Addr(addr))
	return uint64(s.Addr), uint64(s.Addr) + s.Size, ok
}

func address(name string, off int) event.Field {
	return event.Field{Name: name, Type: "unsigned long", Offset: off, Size: 8}
}

// printFormat returns the text after "print fmt: " (docs/spec 9.11).
func printFormat(d *definition.Definition) string {
	var text, args strings.Builder
	text.WriteString(`"(%lx)`)
	args.WriteString(", REC->__probe_ip")
	if d.Return {
		text.Reset()
		text.WriteString(`"(%lx <- %lx)`)
		args.Reset()
		args.WriteString(", REC->__probe_func, REC->__probe_ret_ip")
	}
	for i := range d.Args {
		printArg(&d.Args[i], &text, &args)
	}
	return text.String() + `"` + args.String()
}

func printArg(a *definition.Arg, text, args *strings.Builder) {
	text.WriteString(" " + a.Name + "=")
	if a.Count == 0 {
		text.WriteString(a.Type.Format)
		args.WriteString(", " + reference(a, a.Name))
		return
	}
	text.WriteString("{" + strings.Repeat(a.Type.Format+",", a.Count-1) + a.Type.Format + "}")
	for i := range a.Count {
		args.WriteString(", " + reference(a, a.Name+"["+itoa(i)+"]"))
	}
}

func reference(a *definition.Arg, name string) string {
	if a.Type.IsString() {
		return "__get_str(" + name + ")"
	}
	return "REC->" + name
}
