package stap

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
)

// variable is a global or a local one.
type variable struct {
	name  string
	tok   *token
	typ   vtype
	decl  *global // nil for a local one
	arity int     // -1 where it is not known; 0 for what has no keys
	keys  []vtype
	// read and written: the script reads and writes the global; one that is written only is printed at
	// the end. met is its number in the order in which the script uses globals, from 1 on; 0 means unused.
	read, written bool
	met           int
	hist          script.Histogram
	// asked has the buckets that the script asks for, possible or not.
	asked script.Histogram
	// ctype is the type to which the integer points, nil if it is not known.
	ctype *ctype.Type
	// gone: the code that is left neither reads nor writes the local.
	gone bool
	n    int // of a local
	v    *script.Var
	a    *script.Array
}

// scope is a function or a probe's handler.
type scope struct {
	locals map[string]*variable
	order  []*variable
	fn     *fn
	// library: the code is the library's own, and sees the library's globals.
	library bool
}

func newScope() *scope { return &scope{locals: map[string]*variable{}} }

// fn is a function that is called.
type fn struct {
	decl *function
	// body has the statements that are left; nil for embedded C.
	body   *block
	scope  *scope
	result vtype
	ctype  *ctype.Type
	out    *script.Func
	next   *fn
}

// body is the code of a derived probe: the statements of its aliases around its own. Several
// places may run it.
type body struct {
	probe  *probe
	list   []stmt
	scope  *scope
	places []*derived
	cond   expr
}

// analysis is a script on its way to a program.
type analysis struct {
	// resolved counts the probe points.
	resolved  int
	o         *Options
	k         *Kernel
	user, lib *parsed
	globals   map[string]*variable
	functions map[string][]*fn // by name and number of parameters
	order     []*fn
	aliases   []*probe
	bodies    []*body
	problems  Problems
	changed   bool
	// final is set once types do not change any more.
	final   bool
	used    []*variable
	points  []*Probe
	program *script.Program
	// at is the probe that is being generated; made are aliases of system calls.
	at   *Probe
	made map[string]*probe
	// met is the number of globals that the script uses.
	met int
	// discarded is the expression of the current statement if its value is not used.
	discarded expr
	// entered are the families of the library's aliases that are in aliases.
	entered map[string]bool
}

func semantic(message string, t *token) *Problem {
	return &Problem{Kind: semanticError, Message: message, at: t}
}

// fail ends the current step of the analysis with a problem.
func (a *analysis) fail(t *token, format string, args ...any) {
	panic(semantic(fmt.Sprintf(format, args...), t))
}

// untranslated is fail for what stap finds in pass 3. It does nothing if the script is only analyzed.
func (a *analysis) untranslated(t *token, format string, args ...any) {
	if a.o.Types {
		return
	}
	p := semantic(fmt.Sprintf(format, args...), t)
	p.translating = true
	panic(p)
}

// note keeps a problem and goes on.
func (a *analysis) note(p *Problem) {
	if len(a.problems) < bounded.StapProblems {
		a.problems = append(a.problems, p)
	}
}

func (a *analysis) catch(do func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			p, is := r.(*Problem)
			if !is || p.last {
				panic(r)
			}
			a.note(p)
			ok = false
		}
	}()
	do()
	return true
}

// exceed ends the analysis with one problem, whatever was tried: what leads to the bound may be tried without end.
func (a *analysis) exceed(t *token, format string, args ...any) {
	p := semantic(fmt.Sprintf(format, args...), t)
	p.last = true
	panic(p)
}

// whole does a step of the analysis, which a problem may end.
func (a *analysis) whole(step func()) {
	defer func() {
		if r := recover(); r != nil {
			p, is := r.(*Problem)
			if !is {
				panic(r)
			}
			a.problems = []*Problem{p}
		}
	}()
	a.catch(step)
}

// collect enters what the files declare.
func (a *analysis) collect() {
	a.globals, a.functions = map[string]*variable{}, map[string][]*fn{}
	for _, s := range []*parsed{a.user, a.lib} {
		for _, g := range s.globals {
			if old := a.globals[g.name]; old != nil {
				if !g.library {
					a.note(semantic("conflicting global variable declarations", g.tok))
				}
				continue
			}
			v := &variable{name: g.name, tok: g.tok, decl: g, arity: -1}
			if g.max > 0 || g.wrap {
				v.arity = -2 // an array whose keys are not known
			}
			if l, ok := g.init.(*literal); ok {
				v.arity, v.typ = 0, long
				if l.isText {
					v.typ = str
				}
			}
			a.globals[g.name] = v
		}
		a.aliases = append(a.aliases, s.aliases...)
	}
	user := map[string]bool{}
	for _, s := range []*parsed{a.user, a.lib} {
		for _, f := range s.functions {
			key := signature(f.name, len(f.params))
			if s == a.user {
				user[key] = true
			} else if user[key] {
				continue // a function of the script's own comes before the library's
			}
			one := &fn{decl: f, body: f.body, result: f.result, scope: newScope()}
			one.scope.fn, one.scope.library = one, f.library
			for _, p := range f.params {
				one.scope.add(p.name, p.tok).typ = p.typ
			}
			a.functions[key] = append(a.functions[key], one)
		}
	}
	for _, list := range a.functions {
		sort.SliceStable(list, func(i, j int) bool { return list[i].priority() < list[j].priority() })
		for i := 1; i < len(list); i++ {
			list[i-1].next = list[i]
		}
	}
}

func (f *fn) priority() int64 {
	if f.decl.priority >= 0 {
		return f.decl.priority
	}
	return truth(f.decl.library)
}

func signature(name string, params int) string { return fmt.Sprintf("%s/%d", name, params) }

func (s *scope) add(name string, t *token) *variable {
	v := &variable{name: name, tok: t, n: len(s.order)}
	s.locals[name] = v
	s.order = append(s.order, v)
	return v
}

// find returns the variable of a name: a parameter or a local, else a global, else a new local.
func (a *analysis) find(s *scope, t *token, name string) *variable {
	if v := s.locals[name]; v != nil {
		return v
	}
	if v := a.globals[name]; v != nil && s.sees(v) {
		return a.meet(v)
	}
	return s.add(name, t)
}

// sees reports whether a global is visible: a private one to its own side alone, the script's not to the library's functions,
// whose locals may have any name.
func (s *scope) sees(v *variable) bool {
	if v.decl.library == s.library {
		return true
	}
	return !v.decl.private && (s.fn == nil || !s.library)
}

// meet gives a global its number in the order of use.
func (a *analysis) meet(v *variable) *variable {
	if v.met == 0 {
		a.met++
		v.met = a.met
	}
	return v
}

// array returns the global array of a name, which must have so many keys.
func (a *analysis) array(s *scope, t *token, name string, keys int) *variable {
	v := a.globals[name]
	if v == nil || s.locals[name] != nil || v.decl.private && v.decl.library != s.library {
		a.fail(t, "unresolved arity-%d global array %s, missing global declaration?", keys, name)
	}
	if a.meet(v); v.arity < 0 {
		v.arity, v.keys = keys, make([]vtype, keys)
		a.changed = true
	}
	if v.arity != keys {
		a.problems = append(a.problems, semantic(fmt.Sprintf("inconsistent arity (%d vs %d)", v.arity, keys), t))
		a.fail(v.tok, "arity %d first inferred here", v.arity)
	}
	a.needType(v.typ, t)
	return v
}

// scalar returns a variable without keys.
func (a *analysis) scalar(s *scope, t *token, name string) *variable {
	v := a.find(s, t, name)
	if v.decl == nil {
		return v
	}
	if v.arity == -1 {
		v.arity = 0
		a.changed = true
	}
	if v.arity != 0 {
		a.problems = append(a.problems, semantic(fmt.Sprintf("inconsistent arity (%d vs 0)", max(v.arity, 1)), t))
		a.fail(v.tok, "arity %d first inferred here", max(v.arity, 1))
	}
	return v
}

// settle gives a variable a type, and refuses it if the variable has another one.
func (a *analysis) settle(v *vtype, want vtype, t *token, at *token) vtype {
	switch {
	case want == unknown || *v == want:
	case *v == unknown:
		*v = want
		a.changed = true
	default:
		if at != nil {
			a.problems = append(a.problems, semantic(fmt.Sprintf("type mismatch (%s)", want), t))
			a.fail(at, "type was first inferred here (%s)", *v)
		}
		a.fail(t, "type mismatch: expected %s but found %s", *v, want)
	}
	return *v
}

// callee returns the function that a call means, nil if there is none. It notes the function and the next ones of
// its name as used.
func (a *analysis) callee(c *call) *fn {
	list := a.functions[signature(c.name, len(c.args))]
	if len(list) == 0 {
		return nil
	}
	for f := list[0]; f != nil; f = f.next {
		if !containsFn(a.order, f) {
			a.order = append(a.order, f)
			a.changed = true
		}
	}
	return list[0]
}

func containsFn(list []*fn, f *fn) bool {
	for _, one := range list {
		if one == f {
			return true
		}
	}
	return false
}

// unresolved reports a call of a function that does not exist, and names similar functions.
func (a *analysis) unresolved(c *call) {
	if why, ok := missing[c.name]; ok {
		a.fail(c.tok, "function %s: %s", c.name, why)
	}
	var names []string
	for n := range builtins {
		names = append(names, n)
	}
	for _, list := range a.functions {
		names = append(names, list[0].decl.name)
		if list[0].decl.name == c.name {
			a.fail(c.tok, "arity mismatch found (function '%s' takes %d args)", c.name, len(list[0].decl.params))
		}
	}
	if b := builtins[c.name]; b != nil {
		a.fail(c.tok, "arity mismatch found (function '%s' takes %d args)", c.name, len(b.params))
	}
	sort.Slice(names, func(i, j int) bool {
		x, y := distance(names[i], c.name), distance(names[j], c.name)
		if x != y {
			return x < y
		}
		return names[i] < names[j]
	})
	a.fail(c.tok, "unresolved function %s (similar: %s)", c.name, strings.Join(names[:min(5, len(names))], ", "))
}

// distance returns the number of letters to change, add or remove between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := before
			if a[i-1] != b[j-1] {
				cost = min(before, row[j], row[j-1]) + 1
			}
			before, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}

// possible reports whether something can be done. It forgets the problems that this finds, but for those with always.
func (a *analysis) possible(do func()) bool {
	before := len(a.problems)
	ok := a.catch(do)
	a.problems = append(a.problems[:before], slices.DeleteFunc(a.problems[before:], func(p *Problem) bool { return !p.always })...)
	return ok
}
