package perfprobe

import (
	"fmt"
	"path"
	"strings"

	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
)

// Features lists the optional parts of the kprobe_events language that a kernel accepts. perf probe
// finds them in the tracing README of the running kernel; if it cannot read the README, it uses none.
type Features struct {
	// Hex: the kernel has the types x8 to x64 (4.9). Immediate: it has \VALUE (5.5). Several: one
	// event may have several places (5.4). User: arguments may read user memory (5.3).
	Hex, Immediate, Several, User bool
}

// readme lists the texts that perf looks for in a README. A feature is there if one line has all
// parts in their order.
var readme = []struct {
	parts []string
	set   func(*Features)
}{
	{[]string{"type: ", " x8/16/32/64,"}, func(f *Features) { f.Hex = true }},
	{[]string{"imm-value,"}, func(f *Features) { f.Immediate = true }},
	{[]string{"Create/append/"}, func(f *Features) { f.Several = true }},
	{[]string{"u]<offset>"}, func(f *Features) { f.User = true }},
}

// ReadFeatures finds the features in the text of a kernel's tracing README.
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

// Definition is one line for kprobe_events, or for uprobe_events if File is set.
type Definition struct {
	Group, Event string
	Return       bool
	// Module is empty for the kernel's own code.
	Module, Symbol string
	Offset         uint64
	Args           []string
	// Place is the probed place in the debugging information; nil if the symbol table placed the
	// probe, as it does for return probes.
	Place *source.Place
	// File is the probed program's file, "" for a kernel. FileOffset is the probe's offset in it, in bytes.
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

// group is the group of a kernel's events that name no group.
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

// alternative finds the function of the source that a symbol names, if the source has another name
// for it; false means that there is none.
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

// raw returns the argument as text, NAME=VAR:TYPE, without looking the variable up.
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

// placeAll fills in the file offsets of a program's probes.
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

// programGroup returns the group of a program's events that name no group: "probe_" and the file's
// name up to the first byte that an event's name cannot have (convert_exec_to_group).
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
