package perfprobe

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"kprobelab/internal/ctype"
	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
	"kprobelab/x86"
)

// argument is an argument at one place.
type argument struct {
	name, value, typ string
	// empty marks a variable that has no value at this place.
	empty bool
	why   error
}

func (a argument) text() string {
	s := a.value
	if a.name != "" {
		s = a.name + "=" + s
	}
	if a.typ != "" {
		s += ":" + a.typ
	}
	return s
}

// Absent stands for a variable that is missing at one place of several (DEFAULT_PROBE_MAGIC_NUM). PerfAbsent is how
// perf writes it: without the 0x, so that the kernel refuses it.
const Absent, PerfAbsent = `\0xdeade12d`, `\deade12d`

// Unread stands, as perf has it, for the number of a structure that is always the same bytes: perf reads
// only numbers, and writes what happens to be in its memory.
const Unread = "?"

// ErrNothingThere is perf's refusal of $vars and $params if no place of the probe has a variable.
var ErrNothingThere = errors.New("perf refuses $vars and $params where there are none")

// ErrNotByItsName is perf's refusal of a symbol that the source has under another name, where arguments are
// asked for: since it writes a number for what is missing (Immediate), it takes no place at all for an error
// before it looks for the symbol.
var ErrNotByItsName = errors.New("perf refuses arguments at a symbol that the source has under another name")

// byPlace writes the definitions for the places that the debugging information has.
func (w *Writer) byPlace(p *Probe, where source.Where) ([]Definition, error) {
	var list []Definition
	var args [][]argument
	var left error
	err := w.File.Places(where, func(at *source.Place) error {
		here, err := w.arguments(p, at)
		var gone *missing
		if errors.As(err, &gone) {
			// perf leaves out what follows in the unit, without a word.
			left = err
			return skip{err}
		} else if err != nil {
			return err
		}
		one := Definition{Module: w.File.Module(), Symbol: at.Symbol, Offset: at.Offset, Place: at}
		if w.AsPerf && w.initial(at.Addr) {
			one.Symbol, one.Offset = at.InSource()
		}
		list = append(list, one)
		args = append(args, here)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = left
	}
	if err != nil || len(list) == 0 {
		return nil, err
	}
	absent := Absent
	if w.AsPerf {
		absent = PerfAbsent
	}
	if err := fill(args, absent); err != nil {
		return nil, err
	}
	if w.AsPerf && w.Features.Immediate {
		for i := range p.Args {
			if !slices.ContainsFunc(args, func(at []argument) bool { return len(at) > i }) {
				return nil, ErrNothingThere
			}
		}
	}
	for i := range list {
		for _, a := range args[i] {
			list[i].Args = append(list[i].Args, a.text())
		}
	}
	return list, nil
}

// initial reports code that a kernel throws away after it has booted. perf does not find it in the symbol
// table, and keeps the source's name.
func (w *Writer) initial(addr uint64) bool {
	from, to := w.File.Symbols("_sinittext"), w.File.Symbols("_einittext")
	return len(from) == 1 && len(to) == 1 && addr >= from[0].Start && addr < to[0].Start
}

// fill gives a variable that is missing at some of the places a number that says so.
func fill(all [][]argument, absent string) error {
	for i := range all[0] {
		typ, found := "", false
		var why error
		for _, at := range all {
			if i >= len(at) {
				continue
			}
			if !at[i].empty {
				typ, found = at[i].typ, true
				break
			}
			why = at[i].why
		}
		if !found {
			return why
		}
		for _, at := range all {
			if i < len(at) && at[i].empty {
				at[i].value, at[i].typ = absent, typ
			}
		}
	}
	return nil
}

// arguments returns the arguments of p at the place at.
func (w *Writer) arguments(p *Probe, at *source.Place) ([]argument, error) {
	list, err := w.expand(p.Args, at)
	if err != nil {
		return nil, err
	}
	var out []argument
	for _, a := range list {
		one, err := w.argument(a, at)
		var gone *missing
		switch {
		case err == nil:
		case errors.As(err, &gone) && w.Features.Immediate:
			one.empty, one.why = true, err
		default:
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// expand replaces $params and $vars by the variables of the place that the kernel's events can read. If several
// variables have one name, it writes only the variable that the name means, because a kernel refuses two arguments
// of one name. With AsPerf it writes all of them, as perf does.
func (w *Writer) expand(args []Arg, at *source.Place) ([]Arg, error) {
	var out []Arg
	names := map[string]bool{}
	for _, a := range args {
		if a.Var != allParams && a.Var != allVars {
			out = append(out, a)
			continue
		}
		vars, err := at.Variables()
		if err != nil {
			return nil, err
		}
		for _, v := range vars {
			if !v.Parameter && a.Var == allParams {
				continue
			}
			if !w.AsPerf {
				if names[v.Name] {
					continue
				}
				names[v.Name] = true
				if v, err = at.Variable(v.Name); err != nil {
					return nil, err
				}
			}
			if x, err := w.value(v); err == nil && !x.Address && w.takes(x) {
				out = append(out, Arg{Var: v.Name})
			}
		}
	}
	if len(out) > definition.MaxArgs {
		return nil, wrong("%s has more than %d arguments", at.Function, definition.MaxArgs)
	}
	return out, nil
}

// takes reports a value that the kernel's events can have.
func (w *Writer) takes(x source.Value) bool {
	switch x.Kind {
	case source.Constant:
		return w.Features.Immediate
	case source.Bytes:
		return w.AsPerf && w.Features.Immediate
	}
	return true
}

// missing is a variable that has no value at a place, but may have one at another.
type missing struct{ error }

func (e *missing) Unwrap() error { return e.error }

// skip ends the walk over the copies of one function in one unit.
type skip struct{ error }

func (e skip) Unwrap() []error { return []error{e.error, source.ErrSkipCopies} }

func (w *Writer) value(v *source.Variable) (source.Value, error) {
	if !w.AsPerf {
		return v.Value()
	}
	x, err := v.FirstValue()
	if err == nil && x.Kind == source.Constant && !x.Type.Real().Signed {
		x.Value = asSigned(x.Value)
	}
	return x, err
}

// asSigned returns the number that perf reads for the unsigned constant v. A compiler writes v in the fewest bytes
// that hold it, and perf takes the highest bit of these bytes for a sign.
func asSigned(v int64) int64 {
	switch {
	case v < 0 || v > math.MaxUint32:
		return v
	case v > math.MaxUint16:
		return int64(int32(v))
	case v > math.MaxUint8:
		return int64(int16(v))
	}
	return int64(int8(v))
}

// argument writes one argument at one place.
func (w *Writer) argument(a Arg, at *source.Place) (argument, error) {
	if !isName(a.Var) {
		return argument{name: a.Name, value: a.Var, typ: a.Type}, nil
	}
	out := argument{name: a.Name}
	if out.name == "" {
		if out.name = a.Var; a.Type != "" {
			out.name += "_" + a.Type
		}
	}
	if a.User && !w.Features.User {
		return out, wrong("this kernel's kprobe_events cannot read user memory (5.3 and later can)")
	}
	v, err := at.Variable(a.Var)
	if err != nil {
		return out, &missing{err}
	}
	x, err := w.value(v)
	switch {
	case err != nil && (v.Location.Kind == source.Dropped || !w.AsPerf):
		return out, &missing{err}
	case err != nil:
		return out, err
	case x.Kind == source.Bytes && w.AsPerf && len(a.Fields) > 0:
		return out, &source.Unreadable{What: a.Var + " is a constant, of which perf takes no member"}
	case (x.Kind == source.Constant || x.Kind == source.Bytes) && !w.Features.Immediate:
		return out, &source.Unreadable{What: fmt.Sprintf("%s is %s, and this kernel's kprobe_events takes no such value (5.5 and later does)", a.Var, v.Location)}
	}
	x.User = a.User
	x, err = w.part(x, a)
	if err != nil {
		return out, err
	}
	if out.typ, err = w.typeOf(&x, a.Type); err != nil {
		return out, err
	}
	if x.Kind == source.Bytes && len(x.Reads) == 0 && !w.AsPerf {
		return out, &missing{&source.Unreadable{What: fmt.Sprintf("%s is %s; a member of it can be fetched", x.Name, v.Location)}}
	}
	if x.Address {
		return out, &missing{&source.Unreadable{What: fmt.Sprintf("%s is %s; what it points to can be fetched, the address cannot", a.Var, v.Location)}}
	}
	out.value = w.fetch(x)
	return out, nil
}

// part returns the part of a variable that an argument names.
func (w *Writer) part(x source.Value, a Arg) (_ source.Value, err error) {
	for _, f := range a.Fields {
		if of := x.Type.Real().Target().Real(); f.Element && w.AsPerf && of.Incomplete {
			// perf takes what says that there is no size, -1, for the size.
			if x, err = x.Index(0); err == nil {
				x = x.Shift(-f.Index)
			}
		} else if f.Element {
			x, err = x.Index(f.Index)
		} else {
			x, err = x.Field(f.Name, f.Arrow)
		}
		if err != nil {
			return x, err
		}
	}
	return x, nil
}

// typeOf is the type of an argument; to read a string, a pointer is followed.
func (w *Writer) typeOf(x *source.Value, cast string) (string, error) {
	t := x.Type.Real()
	switch {
	case x.Bits > 0 && w.AsPerf:
		return "", &source.Unreadable{What: x.Name + " is a bitfield, which perf 6.1 does not read from this DWARF"}
	case cast != "" && cast != "string" && cast != "ustring" && cast != "x" && cast != "s" && cast != "u":
		return cast, nil
	case x.Bits > 0:
		word := x.Type.Real().Size() * 8
		if x.Bit < 0 || int64(x.Bit+x.Bits) > word || word > maxBits {
			return "", &source.Unreadable{What: x.Name + " is a bitfield that crosses its words, which no probe fetches"}
		}
		return fmt.Sprintf("b%d@%d/%d", x.Bits, x.Bit, word), nil
	case cast == "string" || cast == "ustring":
		return cast, w.text(x, t)
	}
	prefix := "u"
	switch {
	case cast == "s", cast == "" && t.Signed || cast == "x" && !w.Features.Hex && t.Signed:
		prefix = "s"
	case cast != "u" && w.Features.Hex:
		prefix = "x"
	}
	if t.Size() <= 0 || t.Kind == ctype.Array {
		return "", nil
	}
	return prefix + strconv.FormatInt(min(t.Size()*8, maxBits), 10), nil
}

// maxBits is the widest number that can be fetched.
const maxBits = 64

// text makes a string's address of a pointer or an array of characters.
func (w *Writer) text(x *source.Value, t *ctype.Type) error {
	if t.Kind != ctype.Pointer && t.Kind != ctype.Array {
		return &source.Misuse{What: x.Name + " is no pointer and no array, so it is no string"}
	}
	if name := t.Target().Real().Name; name != "char" && name != "unsigned char" {
		return &source.Misuse{What: x.Name + " is no char* and no array of char, so it is no string"}
	}
	if t.Kind == ctype.Pointer {
		*x = x.Follow()
	}
	return nil
}

// fetch is a value in the words of kprobe_events.
func (w *Writer) fetch(x source.Value) string {
	var s string
	switch x.Kind {
	case source.Bytes:
		s = `\` + Unread
	case source.Constant:
		s = fmt.Sprintf(`\%d`, x.Value)
	case source.Static:
		s = fmt.Sprintf("@%s%+d", w.symbol(x), x.Offset)
	default:
		s = "%" + x86.DWARF[x.Reg]
	}
	for _, r := range x.Reads {
		if r.User {
			s = fmt.Sprintf("+u%d(%s)", r.Offset, s)
		} else {
			s = fmt.Sprintf("%+d(%s)", r.Offset, s)
		}
	}
	return s
}

// symbol returns the name of the variable x in the symbol table. A static variable of a function
// has a number after its name there.
func (w *Writer) symbol(x source.Value) string {
	if x.Addr == 0 || w.AsPerf {
		return x.Symbol
	}
	for _, s := range w.File.Symbols(x.Symbol) {
		if s.Start == x.Addr {
			return x.Symbol
		}
	}
	if s, ok := w.File.Symbol(x.Addr); ok && s.Start == x.Addr {
		return s.Name
	}
	return x.Symbol
}
