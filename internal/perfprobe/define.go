package perfprobe

import (
	"fmt"
	"path"
	"strings"

	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
)

// Features are what a kernel's kprobe_events understands; perf probe reads them in the
// tracing README of the kernel it runs on, and knows none where it cannot.
type Features struct {
	// Hex is for types x8 to x64 (4.9), Immediate for \VALUE (5.5), Several for several
	// places under one event's name (5.4), User for reads of user memory (5.3).
	Hex, Immediate, Several, User bool
}

// readme has what perf looks for in the lines of a README, in this order within a line.
var readme = []struct {
	parts []string
	set   func(*Features)
}{
	{[]string{"type: ", " x8/16/32/64,"}, func(f *Features) { f.Hex = true }},
	{[]string{"imm-value,"}, func(f *Features) { f.Immediate = true }},
	{[]string{"Create/append/"}, func(f *Features) { f.Several = true }},
	{[]string{"u]<offset>"}, func(f *Features) { f.User = true }},
}

// ReadFeatures reads them in the text of a kernel's tracing README.
func ReadFeatures(text string) Features {
	var f Features
	for _, line := range strings.Split(text, "\n") {
		for _, r := range readme {
			if inOrder(line, r.parts) {
				r.set(&f)
			}
		}
	}
	return f
}

func inOrder(line string, parts []string) bool {
	for _, p := range parts {
		i := strings.Index(line, p)
		if i < 0 {
			return false
		}
		line = line[i+len(p):]
	}
	return true
}

// Definition is one line for kprobe_events or, of a program, for uprobe_events.
type Definition struct {
	Group, Event string
	Return       bool
	// Module is empty for the kernel's own code.
	Module, Symbol string
	Offset         uint64
	Args           []string
	// Place is where it is, nil for a return probe, which the symbol table places.
	Place *source.Place
	// File is a program's, and FileOffset where in it the probe is; "" for kernels.
	File       string
	FileOffset uint64
	addr       uint64
}

// Line is the definition in its words.
func (d Definition) Line() definition.Line {
	kind, module := "p", ""
	if d.Return {
		kind = "r"
	}
	if d.Module != "" {
		module = d.Module + ":"
	}
	place := fmt.Sprintf("%s%s+%d", module, d.Symbol, d.Offset)
	if d.File != "" {
		place = fmt.Sprintf("%s:0x%x", d.File, d.FileOffset)
	}
	return definition.LineOf(append([]string{fmt.Sprintf("%s:%s/%s", kind, d.Group, d.Event), place}, d.Args...)...)
}

// Writer writes definitions. Events of one Writer have different names, but for the
// places of one probe where the kernel takes them under one.
type Writer struct {
	File     *source.File
	Features Features
	// AsPerf writes what perf 6.1 does where that is wrong: it takes the first operation of
	// a location for all of it, knows no bitfields of DWARF 4 and later, and finds no symbols in
	// .init.text.
	AsPerf bool
	names  map[string]bool
}

// group is that of events that name none.
const group = "probe"

// Define writes the definitions of a probe, one for each of its places.
func (w *Writer) Define(p *Probe) ([]Definition, error) {
	if p.Where.Return || p.Absolute {
		return w.bySymbol(p)
	}
	list, err := w.byPlace(p, p.Where)
	if err == nil && len(list) == 0 {
		if w.AsPerf && w.Features.Immediate && len(p.Args) > 0 {
			return nil, ErrNotByItsName
		}
		// A symbol that the source does not know by its name, such as a clone's.
		if where, ok := w.alternative(p.Where); ok {
			list, err = w.byPlace(p, where)
		}
	}
	if len(list) == 0 && !p.needsSource() {
		if list, err := w.bySymbol(p); err == nil {
			return list, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, &source.NotFound{Place: true, What: fmt.Sprintf("the debugging information has no %s", p.Where)}
	}
	return list, w.nameAll(p, list)
}

// needsSource reports whether only debugging information can answer.
func (p *Probe) needsSource() bool {
	if p.Where.File != "" || p.Where.Line != 0 {
		return true
	}
	for _, a := range p.Args {
		if isName(a.Var) || a.Var == allParams || a.Var == allVars {
			return true
		}
	}
	return false
}

// alternative is the source's function of a symbol.
func (w *Writer) alternative(where source.Where) (source.Where, bool) {
	if where.File != "" || where.Function == "" {
		return where, false
	}
	list := w.File.Symbols(where.Function)
	if len(list) == 0 {
		return where, false
	}
	at, err := w.File.At(list[0].Start)
	if err != nil || at.Function == where.Function {
		return where, false
	}
	where.Function, where.File = at.Outer(), at.DeclaredIn()
	return where, true
}

// bySymbol writes definitions from the symbol table alone: return probes, absolute
// addresses, and functions without debugging information.
func (w *Writer) bySymbol(p *Probe) ([]Definition, error) {
	var list []Definition
	if p.Absolute {
		s, ok := w.File.Symbol(p.Address)
		if !ok {
			return nil, &source.NotFound{Place: true, What: fmt.Sprintf("no symbol is at %#x", p.Address)}
		}
		list = append(list, Definition{Symbol: s.Name, Offset: p.Address - s.Start, Return: p.Where.Return, addr: p.Address})
	} else {
		seen := map[uint64]bool{}
		for _, s := range w.File.Symbols(p.Where.Function) {
			if !s.Func || seen[s.Start] {
				continue
			}
			seen[s.Start] = true
			if p.Where.Offset > s.End-s.Start {
				return nil, &source.NotFound{Place: true, What: fmt.Sprintf("%s is outside of %s, which has %d bytes", p.Where, s.Name, s.End-s.Start)}
			}
			list = append(list, Definition{Symbol: s.Name, Offset: p.Where.Offset, Return: p.Where.Return, addr: s.Start + p.Where.Offset})
		}
	}
	if len(list) == 0 {
		return nil, &source.NotFound{Place: true, What: fmt.Sprintf("the file has no symbol %s", p.Where.Function)}
	}
	if len(list) > source.MaxPlaces {
		return nil, &source.NotFound{Place: true, What: fmt.Sprintf("%s is more than %d symbols", p.Where.Function, source.MaxPlaces)}
	}
	for i := range list {
		list[i].Module = w.File.Module()
		for _, a := range p.Args {
			list[i].Args = append(list[i].Args, a.raw())
		}
	}
	return list, w.nameAll(p, list)
}

// raw is an argument that is passed on as it is.
func (a Arg) raw() string {
	s := a.Var
	if a.Name != "" {
		s = a.Name + "=" + s
	}
	if a.Type != "" {
		s += ":" + a.Type
	}
	return s
}

// nameAll gives the events their names (get_new_event_name).
func (w *Writer) nameAll(p *Probe, list []Definition) error {
	if w.names == nil {
		w.names = map[string]bool{}
	}
	if err := w.placeAll(list); err != nil {
		return err
	}
	for i := range list {
		d := &list[i]
		if d.Group = p.Group; d.Group == "" {
			d.Group = group
			if d.File != "" {
				d.Group = programGroup(d.File)
			}
		}
		name := p.Event
		switch {
		case name != "":
		case p.Where.Function != "" && !p.Absolute && !strings.ContainsAny(p.Where.Function, "*?["):
			name = p.Where.Function
		case d.Place != nil:
			name = d.Place.Function
		default:
			name = d.Symbol
		}
		name = strings.TrimPrefix(name, ".")
		if at := strings.IndexAny(name, ".@"); at > 0 {
			name = name[:at]
		}
		full := name
		if d.Return {
			full += "__return"
		}
		for n := 1; w.names[full]; n++ {
			full = fmt.Sprintf("%s_%d", name, n)
		}
		if !definition.IsName(full) || len(full) > definition.MaxName {
			return wrong("%s is no name for an event; give one: NAME=%s", full, p.text)
		}
		d.Event = full
		if !w.Features.Several {
			w.names[full] = true
		}
	}
	return nil
}

// placeAll says where in its file the probes of a program are.
func (w *Writer) placeAll(list []Definition) error {
	file := w.File.Program()
	if file == "" {
		return nil
	}
	for i := range list {
		d := &list[i]
		if d.Place != nil {
			d.addr = d.Place.Addr
		}
		at, ok := w.File.FileOffset(d.addr)
		if !ok {
			return &source.NotFound{Place: true, What: fmt.Sprintf("%s+%d is not in what the file loads", d.Symbol, d.Offset)}
		}
		d.File, d.FileOffset = file, at
	}
	return nil
}

// programGroup is the group of a program's events that name none: "probe_" and its name up to what
// no name of an event has (convert_exec_to_group).
func programGroup(file string) string {
	name := path.Base(file)
	for i, c := range []byte(name) {
		if c != '_' && (c|0x20 < 'a' || 'z' < c|0x20) && (c < '0' || '9' < c) {
			name = name[:i]
			break
		}
	}
	return group + "_" + name
}
