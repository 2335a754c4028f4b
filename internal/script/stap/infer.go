package stap

import (
	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
)

// infer finds the types of all variables.
func (a *analysis) infer() {
	for range bounded.StapRounds {
		a.changed = false
		if !a.round() || !a.changed {
			return
		}
	}
}

// typed goes over all code once more after the last change: all used variables must have a type.
// If probes are only listed it checks nothing.
func (a *analysis) typed() {
	if a.o.List {
		return
	}
	a.final = true
	if a.round() {
		a.variables()
	}
	a.final = false
}

// variables refuses variables that are left and have no type, and locals that are aggregates: only globals are.
func (a *analysis) variables() {
	check := func(list []*variable) {
		for _, v := range list {
			switch {
			case v.gone || v.tok.pos.inLibrary():
			case v.typ == stats && v.decl == nil:
				a.fail(v.tok, "stat locals not supported, missing global declaration? ")
			default:
				a.needType(v.typ, v.tok)
			}
		}
	}
	for _, f := range a.order {
		a.catch(func() { check(f.scope.order[len(f.decl.params):]) })
	}
	for _, b := range a.bodies {
		a.catch(func() { check(b.scope.order) })
	}
	a.catch(func() {
		for _, name := range a.globalNames() {
			check([]*variable{a.globals[name]})
		}
	})
}

// round goes over all probes and functions once, and reports whether it has found no error.
func (a *analysis) round() bool {
	for _, b := range a.bodies {
		a.at = b.places[0].probe
		ok := a.catch(func() {
			if b.cond != nil {
				a.expr(b.scope, b.cond, long)
			}
			for _, s := range b.list {
				a.stmt(b.scope, s)
			}
		})
		if !ok {
			return false
		}
	}
	a.at = nil
	for i := 0; i < len(a.order); i++ {
		f := a.order[i]
		if f.body == nil {
			continue
		}
		if !a.catch(func() { a.stmt(f.scope, f.body) }) {
			return false
		}
	}
	return true
}

// needType refuses a used variable that has no type at the end. The library's own arrays are let through:
// they get their types from its probes, which are there only if the script needs them.
func (a *analysis) needType(t vtype, at *token) {
	if a.final && t == unknown && !at.pos.inLibrary() {
		a.fail(at, "unresolved type ")
	}
}

// invalid refuses an aggregate in a wrong place, after all that can be left out is left out.
func (a *analysis) invalid(at *token) {
	if a.final {
		a.fail(at, "invalid type stats")
	}
}

func (a *analysis) stmt(s *scope, st stmt) {
	switch st := st.(type) {
	case *block:
		for _, one := range st.list {
			a.stmt(s, one)
		}
	case *exprStmt:
		a.discard(s, st.x)
	case *ifStmt:
		a.expr(s, st.cond, long)
		a.stmt(s, st.then)
		if st.other != nil {
			a.stmt(s, st.other)
		}
	case *forStmt:
		if st.start != nil {
			a.discard(s, st.start)
		}
		if st.cond != nil {
			a.expr(s, st.cond, long)
		}
		if st.post != nil {
			a.discard(s, st.post)
		}
		a.stmt(s, st.body)
	case *foreachStmt:
		a.foreach(s, st)
	case *tryStmt:
		a.stmt(s, st.body)
		if st.to != nil {
			v := a.scalar(s, st.to.tok, st.to.name)
			v.written = true
			a.settle(&v.typ, str, st.to.tok, v.tok)
		}
		a.stmt(s, st.catch)
	case *deleteStmt:
		a.deleted(s, st)
	case *returnStmt:
		if st.x != nil {
			f := s.fn
			a.settle(&f.result, a.expr(s, st.x, f.result), st.x.position(), nil)
			if f.ctype == nil {
				f.ctype = a.ctypeOf(s, st.x)
			}
			// All functions of one name give the same.
			if f.next != nil && f.next.result == unknown && f.result != unknown {
				f.next.result = f.result
				a.changed = true
			}
		}
	}
}

// discard finds the type of an expression whose value is not used.
func (a *analysis) discard(s *scope, x expr) {
	a.discarded = x
	a.expr(s, x, unknown)
}

// changes notes that an expression writes a variable. If the expression's value is used, and is more than the new
// value, the variable is read, too.
func (a *analysis) changes(x expr, v *variable, op string) {
	v.written = true
	v.read = v.read || x != a.discarded && op != "=" && op != "<<<"
}

func (a *analysis) foreach(s *scope, st *foreachStmt) {
	if st.hist != nil {
		a.histogram(s, st.hist)
		for _, k := range append(st.keys[:len(st.keys):len(st.keys)], st.value) {
			if k != nil {
				v := a.scalar(s, k.tok, k.name)
				v.written = true
				a.settle(&v.typ, long, k.tok, v.tok)
			}
		}
	} else {
		v := a.array(s, st.array.tok, st.array.name, len(st.keys))
		v.read = true
		for i, k := range st.keys {
			key := a.scalar(s, k.tok, k.name)
			key.written = true
			a.settle(&v.keys[i], key.typ, k.tok, v.tok)
			a.settle(&key.typ, v.keys[i], k.tok, key.tok)
			a.needType(key.typ, k.tok)
		}
		if st.value != nil {
			val := a.scalar(s, st.value.tok, st.value.name)
			val.written = true
			a.settle(&v.typ, val.typ, st.value.tok, v.tok)
			if v.typ == stats {
				a.invalid(st.value.tok)
			}
			a.settle(&val.typ, v.typ, st.value.tok, val.tok)
		}
		if st.sliced && len(st.slice) != len(st.keys) {
			a.fail(st.array.tok, "unresolved arity-%d global array %s, missing global declaration?", len(st.slice), st.array.name)
		}
		for i, x := range st.slice {
			if x != nil {
				a.settle(&v.keys[i], a.expr(s, x, v.keys[i]), x.position(), v.tok)
			}
		}
		if st.by != "" {
			a.settle(&v.typ, stats, st.array.tok, v.tok)
		}
	}
	if st.limit != nil {
		a.expr(s, st.limit, long)
	}
	a.stmt(s, st.body)
}

func (a *analysis) deleted(s *scope, st *deleteStmt) {
	switch x := st.x.(type) {
	case *symbol:
		v := a.find(s, x.tok, x.name)
		v.written = true
		a.needType(v.typ, x.tok)
	case *index:
		if x.hist != nil {
			a.fail(x.tok, "cannot delete histogram bucket entries")
		}
		a.element(s, x)
	case *target:
		a.written(s, x, st.tok, "delete", nil)
	default:
		a.fail(x.position(), "Cannot take reference to expression")
	}
}

// element gives an element's keys their types.
func (a *analysis) element(s *scope, x *index) *variable {
	v := a.array(s, x.tok, x.name, len(x.keys))
	for i, k := range x.keys {
		if k != nil {
			a.settle(&v.keys[i], a.expr(s, k, v.keys[i]), k.position(), v.tok)
			a.needType(v.keys[i], k.position())
		}
	}
	return v
}

// lvalue is the variable that an expression stands for.
func (a *analysis) lvalue(s *scope, x expr) *variable {
	switch x := x.(type) {
	case *symbol:
		return a.scalar(s, x.tok, x.name)
	case *index:
		if x.hist != nil {
			a.fail(x.tok, "cannot write to histogram buckets")
		}
		return a.element(s, x)
	}
	a.fail(x.position(), "invalid lvalue")
	return nil
}

// expr finds an expression's type; want is what it has to be, if that is known.
func (a *analysis) expr(s *scope, x expr, want vtype) vtype {
	t := a.exprType(s, x, want)
	if want != unknown && t != unknown && t != want {
		a.fail(x.position(), "type mismatch: expected %s but found %s", want, t)
	}
	return t
}

func (a *analysis) exprType(s *scope, x expr, want vtype) vtype {
	switch x := x.(type) {
	case *literal:
		if x.isText {
			return str
		}
		return long
	case *symbol:
		v := a.scalar(s, x.tok, x.name)
		v.read = true
		return a.settle(&v.typ, want, x.tok, v.tok)
	case *index:
		if x.hist != nil {
			a.histogram(s, x.hist)
			if len(x.keys) != 1 || x.keys[0] == nil {
				a.fail(x.tok, "histogram index is one number")
			}
			a.expr(s, x.keys[0], long)
			return long
		}
		v := a.element(s, x)
		v.read = true
		for _, k := range x.keys {
			if k == nil {
				a.fail(x.tok, "wildcard not allowed in array index")
			}
		}
		return a.settle(&v.typ, want, x.tok, v.tok)
	case *binary:
		return a.binary(s, x)
	case *unary:
		a.expr(s, x.x, long)
		return long
	case *crement:
		switch to := x.x.(type) {
		case *target:
			return a.written(s, to, x.tok, x.op, nil)
		case *memoryExpr:
			return a.expr(s, to, long)
		}
		v := a.lvalue(s, x.x)
		a.changes(x, v, x.op)
		return a.settle(&v.typ, long, x.tok, v.tok)
	case *assign:
		return a.assign(s, x, want)
	case *ternary:
		a.expr(s, x.cond, long)
		one := a.expr(s, x.x, want)
		two := a.expr(s, x.y, one)
		if one == unknown {
			one = a.expr(s, x.x, two)
		}
		return one
	case *inArray:
		if x.hist != nil {
			a.histogram(s, x.hist)
			for _, k := range x.keys {
				if k != nil {
					a.expr(s, k, long)
				}
			}
			return long
		}
		v := a.array(s, x.tok, x.name, len(x.keys))
		v.read = true
		for i, k := range x.keys {
			if k != nil {
				a.settle(&v.keys[i], a.expr(s, k, v.keys[i]), k.position(), v.tok)
				a.needType(v.keys[i], k.position())
			}
		}
		return long
	case *match:
		a.expr(s, x.x, str)
		return long
	case *call:
		return a.call(s, x, want)
	case *printExpr:
		return a.print(s, x)
	case *embeddedExpr:
		a.fail(x.tok, "embedded C is not compiled here")
	case *target:
		return a.target(s, x)
	case *statExpr:
		v := a.aggregate(s, x.of, x.tok)
		if x.shift != nil {
			v.hist.Shift = int(*x.shift)
		}
		return long
	case *definedExpr, *probewriteExpr:
		return long
	case *entryExpr:
		return a.expr(s, x.x, want)
	case *perfExpr:
		a.fail(x.tok, "@perf: there are no hardware counters here")
	case *constExpr:
		a.constant(x)
		return long
	case *memoryExpr:
		if x.x != nil {
			a.expr(s, x.x, long)
			switch x.size {
			case 1, 2, 4, 8:
			default:
				a.fail(x.tok, "invalid size %d for %s: want 1, 2, 4 or 8", x.size, x.what)
			}
		}
		return long
	case *histExpr:
		a.fail(x.tok, "base histogram operator where expression expected")
	}
	return unknown
}

func (a *analysis) binary(s *scope, x *binary) vtype {
	switch x.op {
	case ".":
		a.expr(s, x.x, str)
		a.expr(s, x.y, str)
		return str
	case "==", "!=", "<", ">", "<=", ">=":
		one := a.expr(s, x.x, unknown)
		two := a.expr(s, x.y, one)
		if one == unknown && two != unknown {
			a.expr(s, x.x, two)
		}
		if two == unknown {
			a.needType(one, x.x.position())
		}
		return long
	}
	a.expr(s, x.x, long)
	a.expr(s, x.y, long)
	return long
}

func (a *analysis) assign(s *scope, x *assign, want vtype) vtype {
	switch to := x.x.(type) {
	case *target:
		return a.written(s, to, x.tok, x.op, x.y)
	case *memoryExpr:
		if x.op == ".=" || x.op == "<<<" {
			a.fail(x.tok, "%s is for no number", x.op)
		}
		a.expr(s, to, long)
		return a.expr(s, x.y, long)
	}
	v := a.lvalue(s, x.x)
	a.changes(x, v, x.op)
	switch x.op {
	case "<<<":
		a.settle(&v.typ, stats, x.x.position(), v.tok)
		a.expr(s, x.y, long)
		return long
	case "=":
		t := a.expr(s, x.y, v.typ)
		if t == unknown && want != unknown { // else a chain of assignments would be looked at twice for each
			t = a.expr(s, x.y, want)
		}
		if t == stats {
			a.invalid(x.y.position())
			return v.typ
		}
		a.settle(&v.typ, t, x.x.position(), v.tok)
		if c := a.ctypeOf(s, x.y); c != nil {
			v.ctype = c
		}
		return v.typ
	case ".=":
		a.expr(s, x.y, str)
		return a.settle(&v.typ, str, x.x.position(), v.tok)
	}
	a.expr(s, x.y, long)
	return a.settle(&v.typ, long, x.x.position(), v.tok)
}

func (a *analysis) call(s *scope, x *call, want vtype) vtype {
	if f := a.callee(x); f != nil {
		for g := f; g != nil; g = g.next {
			for i, arg := range x.args {
				p := g.scope.order[i]
				t := a.expr(s, arg, p.typ)
				a.settle(&p.typ, t, arg.position(), p.tok)
				a.needType(t, arg.position())
				if c := a.ctypeOf(s, arg); c != nil && p.ctype == nil {
					p.ctype = c
				}
			}
			if want != unknown && g.result == unknown {
				a.settle(&g.result, want, x.tok, nil)
			}
		}
		return f.result
	}
	if !a.isBuiltin(x) {
		a.unresolved(x)
	}
	b := builtins[x.name]
	if b.guru && !a.o.Guru {
		a.fail(x.tok, "function may not be used unless -g is specified")
	}
	for i, arg := range x.args {
		a.expr(s, arg, b.params[i])
	}
	if a.final && want == unknown && valueless[x.name] {
		return unknown
	}
	return b.result
}

func (a *analysis) print(s *scope, x *printExpr) vtype {
	if x.hist != nil {
		a.histogram(s, x.hist)
		return long
	}
	if x.pieces != nil || x.format != nil && len(x.name) > 0 && x.name[len(x.name)-1] == 'f' {
		a.formatted(s, x)
	} else {
		for _, arg := range x.args {
			t := a.expr(s, arg, unknown)
			a.needType(t, arg.position())
			if t == stats {
				a.untranslated(arg.position(), "an aggregate cannot be printed; ask it for something, as with @count")
			}
		}
	}
	if x.name[0] == 's' {
		return str
	}
	return long
}

func (a *analysis) formatted(s *scope, x *printExpr) {
	n := 0
	next := func(t vtype) {
		if n >= len(x.args) {
			a.fail(x.tok, "Wrong number of args to formatted print operator")
		}
		a.expr(s, x.args[n], t)
		n++
	}
	for i := range x.pieces {
		d := &x.pieces[i]
		if d.verb == 0 {
			continue
		}
		if d.starWidth {
			next(long)
		}
		if d.starPrecision {
			next(long)
		}
		if d.verb == 's' {
			next(str)
		} else {
			next(long)
		}
	}
	if n < len(x.args) {
		a.fail(x.tok, "Wrong number of args to formatted print operator")
	}
}

// aggregate returns the variable that an operator on an aggregate reads, and makes it an aggregate.
func (a *analysis) aggregate(s *scope, of expr, op *token) *variable {
	v := a.lvalue(s, of)
	v.read = true
	a.settle(&v.typ, stats, op, v.tok)
	return v
}

// late reports an error of stap's third pass, after the second pass has found none.
func (a *analysis) late(at *token, text string) {
	if a.final {
		a.untranslated(at, "%s", text)
	}
}

// histogram enters which buckets an aggregate has to keep.
func (a *analysis) histogram(s *scope, x *histExpr) {
	v := a.aggregate(s, x.of, x.tok)
	h := script.Histogram{Kind: script.Logarithmic, Shift: v.hist.Shift}
	if x.what == "@hist_linear" {
		h.Kind = script.Linear
		h.Start, h.Stop, h.Interval = x.params[0], x.params[1], x.params[2]
	}
	// Impossible buckets count as asked for, too.
	if v.asked.Kind != script.NoHistogram && v.asked != h {
		a.fail(x.tok, "multiple histogram types declared on '__global_%s'", v.name)
	}
	v.asked = h
	if h.Kind == script.Linear {
		switch {
		case h.Interval <= 0:
			a.late(x.tok, "histogram interval needs to be positive")
			return
		case h.Stop <= h.Start:
			a.late(x.tok, "histogram needs to have its stop after its start")
			return
		case uint64(h.Stop-h.Start)/uint64(h.Interval) > script.MaxBuckets:
			a.fail(x.tok, "histogram has more than %d buckets", script.MaxBuckets)
		}
	}
	if v.hist != h {
		v.hist = h
		a.changed = true
	}
}
