package source

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/source"
)

// drawer draws probes: functions by the symbol table, so that each is as likely, and
// inlined ones by the addresses of their copies.
type drawer struct {
	f         *source.File
	r         *rand.Rand
	functions []source.Symbol
}

// kinds are the kinds of probes, each as often as it stands here.
var kinds = []struct {
	name string
	draw func(*drawer) (string, bool)
}{
	{"a function with $params", func(d *drawer) (string, bool) { return d.function().Name + " $params", true }},
	{"a variable", (*drawer).variable},
	{"a variable", (*drawer).variable},
	{"parts of a variable", (*drawer).parts},
	{"parts of a variable", (*drawer).parts},
	{"parts of a variable", (*drawer).parts},
	{"an offset with $vars", (*drawer).offset},
	{"a line of a function with $vars", (*drawer).line},
	{"a line of a function with $vars", (*drawer).line},
	{"a line of a file", (*drawer).fileLine},
	{"an inlined function with $params", (*drawer).inlined},
	{"an inlined function with $params", (*drawer).inlined},
	{"a variable of an inlined function", (*drawer).inlinedVariable},
	{"a global variable", (*drawer).global},
	{"a function of a file with $vars", (*drawer).ofFile},
	{"a return", func(d *drawer) (string, bool) { return d.function().Name + "%return ret=$retval", true }},
}

func (d *drawer) draw() (kind, probe string) {
	for {
		k := kinds[d.r.IntN(len(kinds))]
		if probe, ok := k.draw(d); ok {
			return k.name, probe
		}
	}
}

// function is any function outside of what boot throws away.
func (d *drawer) function() source.Symbol {
	if d.functions == nil {
		end := ^uint64(0)
		if s := d.f.Symbols("_etext"); len(s) > 0 {
			end = s[0].Start
		}
		for _, s := range d.f.Symbols("*") {
			if s.Start < end && s.End > s.Start && !strings.Contains(s.Name, ".") {
				d.functions = append(d.functions, s)
			}
		}
	}
	return d.functions[d.r.IntN(len(d.functions))]
}

// place is the first place of a function.
func (d *drawer) place(w source.Where) *source.Place {
	var first *source.Place
	_ = d.f.Places(w, func(p *source.Place) error {
		if first == nil {
			first = p
		}
		return nil
	})
	return first
}

func (d *drawer) pick(vars []*source.Variable, err error) *source.Variable {
	if err != nil || len(vars) == 0 {
		return nil
	}
	return vars[d.r.IntN(len(vars))]
}

func (d *drawer) variable() (string, bool) {
	fn := d.function().Name
	p := d.place(source.Where{Function: fn})
	if p == nil {
		return "", false
	}
	v := d.pick(p.Variables())
	if v == nil {
		return "", false
	}
	return fn + " " + v.Name + d.cast(v.Type), true
}

// cast is a type that is asked for, now and then.
func (d *drawer) cast(t *ctype.Type) string {
	r := t.Real()
	if (r.Kind == ctype.Pointer || r.Kind == ctype.Array) && r.Target().Real().Char && d.r.IntN(2) == 0 {
		return []string{":string", ":ustring"}[d.r.IntN(2)]
	}
	if d.r.IntN(4) == 0 {
		return []string{":u", ":s", ":x", ":u8", ":s32", ":x16", ":symbol"}[d.r.IntN(7)]
	}
	return ""
}

func (d *drawer) parts() (string, bool) {
	fn := d.function().Name
	p := d.place(source.Where{Function: fn})
	if p == nil {
		return "", false
	}
	v := d.pick(p.Variables())
	if v == nil {
		return "", false
	}
	path, t := d.path(v.Type)
	if path == "" {
		return "", false
	}
	return fn + " " + v.Name + path + d.cast(t), true
}

// maxPath bounds the steps of a path to a part of a variable.
const maxPath = 5

// path is a way into a type.
func (d *drawer) path(t *ctype.Type) (string, *ctype.Type) {
	s := ""
	for range 1 + d.r.IntN(maxPath) {
		r := t.Real()
		to := r
		if r.Kind == ctype.Pointer {
			to = r.Target().Real()
		}
		switch {
		case r.Kind == ctype.Array || r.Kind == ctype.Pointer && to.Kind != ctype.Void && to.Kind != ctype.Function && d.r.IntN(4) == 0:
			s += fmt.Sprintf("[%d]", d.r.IntN(4))
			t = r.Target()
		case to.Composite():
			m := d.member(to, 0)
			if m == nil {
				return s, t
			}
			op := "."
			if r.Kind == ctype.Pointer {
				op = "->"
			}
			s += op + m.Name
			t = m.Type
		default:
			return s, t
		}
	}
	return s, t
}

// member returns a random named member, which may lie in an unnamed member.
func (d *drawer) member(t *ctype.Type, depth int) *ctype.Member {
	list := t.Members()
	if len(list) == 0 || depth > maxPath {
		return nil
	}
	m := list[d.r.IntN(len(list))]
	if m.Name == "" {
		return d.member(m.Type.Real(), depth+1)
	}
	return &m
}

func (d *drawer) offset() (string, bool) {
	s := d.function()
	return fmt.Sprintf("%s+%d $vars", s.Name, d.r.Uint64N(s.End-s.Start)), true
}

func (d *drawer) line() (string, bool) {
	fn := d.function().Name
	l, err := d.f.Lines(source.Where{Function: fn}, 0, -1)
	if err != nil {
		return "", false
	}
	no := l.Lines[d.r.IntN(len(l.Lines))] - l.Base
	return fmt.Sprintf("%s:%d $vars", fn, no), no > 0
}

func (d *drawer) fileLine() (string, bool) {
	l, err := d.f.Lines(source.Where{Function: d.function().Name}, 0, -1)
	if err != nil {
		return "", false
	}
	dir, file := filepath.Split(l.Path)
	return fmt.Sprintf("%s/%s:%d $vars", filepath.Base(dir), file, l.Lines[d.r.IntN(len(l.Lines))]), true
}

// copy is an inlined copy that some address is in.
func (d *drawer) copy() *source.Place {
	for range 50 {
		s := d.function()
		p, err := d.f.At(s.Start + d.r.Uint64N(s.End-s.Start))
		if err == nil && p.Inlined {
			return p
		}
	}
	return nil
}

func (d *drawer) inlined() (string, bool) {
	p := d.copy()
	if p == nil {
		return "", false
	}
	return p.Function + " $params", true
}

func (d *drawer) inlinedVariable() (string, bool) {
	p := d.copy()
	if p == nil {
		return "", false
	}
	return d.variableOf(p.Function, d.pick(p.Variables()))
}

// variableOf is a variable of a function, with a path in it now and then; v is nil for none.
func (d *drawer) variableOf(function string, v *source.Variable) (string, bool) {
	if v == nil {
		return "", false
	}
	path := ""
	if d.r.IntN(2) == 0 {
		path, _ = d.path(v.Type)
	}
	return function + " " + v.Name + path, true
}

func (d *drawer) global() (string, bool) {
	fn := d.function().Name
	p := d.place(source.Where{Function: fn})
	if p == nil {
		return "", false
	}
	return d.variableOf(fn, d.pick(p.Globals()))
}

func (d *drawer) ofFile() (string, bool) {
	p := d.place(source.Where{Function: d.function().Name})
	if p == nil {
		return "", false
	}
	return fmt.Sprintf("%s@%s $vars", p.Function, filepath.Base(p.DeclaredIn())), true
}
