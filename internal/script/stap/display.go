package stap

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/ctype"
)

// printGlobals adds a probe for each global that is written and never read. The probe prints the global at
// the end.
func (a *analysis) printGlobals() {
	for _, name := range a.globalNames() {
		v := a.globals[name]
		if v.decl.library || v.read || !v.written {
			continue
		}
		f := newFile("library", "probe end {\n"+v.printed()+"}\n")
		out, p := parse(f, &Options{}, nil)
		if p.problems != nil {
			panic("BUG: " + p.problems.Text())
		}
		pr := out.probes[0]
		a.point(pr, pr.points[0], chain{written: "end"}, 0)
	}
	a.infer()
}

// printed returns the statements that print a variable. They have stap's own text and names (__idx0, __val),
// because -p2 shows them.
func (v *variable) printed() string {
	label, args, each := v.name, "", ""
	if v.arity > 0 {
		var keys, formats []string
		for i, k := range v.keys {
			keys = append(keys, fmt.Sprintf("__idx%d", i))
			if k == str {
				formats = append(formats, `\"%#s\"`)
			} else {
				formats = append(formats, "%#d")
			}
		}
		list := strings.Join(keys, ", ")
		label, args = v.name+"["+strings.Join(formats, ",")+"]", ", "+list
		each = fmt.Sprintf("foreach (__val = [%s] in %s-) ", list, v.name)
		if v.typ == stats {
			each = fmt.Sprintf("foreach ([%s] in %s-) ", list, v.name)
		}
	}
	value := v.name
	switch {
	case v.arity > 0 && v.typ == stats:
		value += "[" + args[2:] + "]"
	case v.arity > 0:
		value = "__val"
	}
	switch {
	case v.typ == str:
		return fmt.Sprintf("%sprintf(\"%s=\\\"%%#s\\\"\\n\"%s, %s)\n", each, label, args, value)
	case v.typ != stats:
		return fmt.Sprintf("%sprintf(\"%s=%%d\\n\"%s, %s)\n", each, label, args, value)
	}
	if v.arity == 0 {
		each = fmt.Sprintf("if (@count(%s) == 0) printf(\"%s @count=0x0\\n\")\nelse ", v.name, v.name)
	}
	for _, what := range [...]string{"count", "min", "max", "sum", "avg"} {
		label += fmt.Sprintf(" @%s=%%#d", what)
		args += fmt.Sprintf(", @%s(%s)", what, value)
	}
	return fmt.Sprintf("%sprintf(\"%s\\n\"%s)\n", each, label, args)
}

// Dump returns the output of -p2: the globals, the functions and the probes with their types.
func (s *Script) Dump() string {
	d := &dumper{}
	a := s.a
	if len(a.used) > 0 {
		d.f("# globals\n")
	}
	for _, v := range a.used {
		d.f("%s", v.name)
		if v.decl.wrap {
			d.f("%%")
		}
		if v.decl.max > 0 {
			d.f("[%d]", v.decl.max)
		}
		d.f(":%s", v.typ.shown())
		if v.arity > 0 {
			var keys []string
			for _, k := range v.keys {
				keys = append(keys, k.shown())
			}
			d.f(" [%s]", strings.Join(keys, ", "))
		}
		if v.decl.init != nil {
			d.f(" = ")
			d.expr(v.decl.init)
		}
		d.f("\n")
	}
	if len(a.order) > 0 {
		d.f("# functions\n")
	}
	for _, f := range a.order {
		var params []string
		for _, p := range f.scope.order[:len(f.decl.params)] {
			params = append(params, p.name+":"+p.typ.shown())
		}
		d.f("%s:%s (%s)\n", f.decl.name, f.result.String(), strings.Join(params, ", "))
		d.locals(f.scope.order[len(f.decl.params):])
	}
	d.f("# probes\n")
	for _, b := range a.bodies {
		for _, one := range b.places {
			if one.probe.Handler == nil && one.probe.Kind != Never {
				continue
			}
			d.f("%s", one.probe.Point)
			if one.probe.Addr != 0 {
				if start := a.textStart(); start != 0 && one.probe.Module == "" {
					d.f(" /* pc=_stext+%#x */", one.probe.Addr-start)
				} else {
					d.f(" /* pc=%s+%#x */", one.probe.Symbol, one.probe.Offset)
				}
			}
			d.f(" /* <- %s */\n", one.probe.Written)
			d.locals(b.scope.order)
		}
	}
	return d.String()
}

// textStart returns the address of the beginning of the kernel's code (_stext), 0 if it is not known.
func (a *analysis) textStart() uint64 {
	if a.k != nil && a.k.Functions != nil {
		for _, f := range a.k.Functions("_stext") {
			return f.Addr
		}
	}
	return 0
}

func (d *dumper) locals(list []*variable) {
	list = slices.DeleteFunc(slices.Clone(list), func(v *variable) bool { return v.gone })
	if len(list) > 0 {
		d.f("  # locals\n")
	}
	for _, v := range list {
		d.f("  %s:%s\n", v.name, v.typ.shown())
	}
}

// List returns the output of -L: each probe point with the variables that can be read in all of its
// places. Without variables it returns the output of -l.
func (s *Script) List(variables bool) string {
	var names []string
	of := map[string][][]string{}
	for _, p := range s.Probes {
		name := p.Point
		switch {
		case p.Alias != "":
			name = p.Alias
		case p.Kind == Data:
			name = p.Written
		case p.Optional && !strings.HasSuffix(name, "?"):
			name += "?"
		}
		if of[name] == nil {
			names = append(names, name)
		}
		of[name] = append(of[name], listed(p))
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name)
		for _, v := range inAll(of[name]) {
			if variables {
				b.WriteString(" " + v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// listed returns the variables of one place with their types: first the ones that an alias sets, then the
// source's.
func listed(p *Probe) (out []string) {
	if p.Alias != "" {
		out = slices.Clone(p.Locals)
	}
	add := func(name string, t *ctype.Type) { out = append(out, "$"+name+":"+t.Postfix()) }
	if p.Trace != nil {
		for _, v := range p.Trace.Params {
			add(v.Name, v.Type)
		}
	}
	if p.Place == nil {
		return out
	}
	if r := p.Place.Returns(); p.Kind == Return && r.Kind != ctype.Void {
		add("return", r)
	}
	vars, err := p.Place.Visible()
	if err != nil {
		return out
	}
	for _, v := range vars {
		add(v.Name, v.Type)
	}
	return out
}

// inAll returns the words that all lists together have as often as there are lists, in the order of the first
// list. As with stap, this leaves out a name that an inner block has again.
func inAll(lists [][]string) (out []string) {
	count := map[string]int{}
	for _, w := range slices.Concat(lists...) {
		count[w]++
	}
	for _, w := range lists[0] {
		if count[w] == len(lists) {
			out = append(out, w)
		}
		count[w] = 0
	}
	return out
}
