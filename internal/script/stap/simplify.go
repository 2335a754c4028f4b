package stap

import "kprobelab/internal/script"

// stap leaves out code without an effect before it looks at types, until nothing more can be left out: values that are not
// read, statements that only compute, branches that are never taken, statements after a jump. A script without any probe left
// is refused.

// maxSimplified bounds how many statements and expressions are looked at for it.
const maxSimplified = 1e6

// simplify leaves out the code that has no effect.
func (a *analysis) simplify() {
	if a.o.List {
		return
	}
	functions := len(a.order)
	for looked, first := 0, true; looked < maxSimplified; first = false {
		looked += a.size()
		changed := a.unused(&functions)
		changed = a.each(func(e *effects, s *scope) rewriting { return rewriting{stmt: e.uncaught(s), expr: e.unread(s)} }) || changed
		changed = a.each(func(e *effects, s *scope) rewriting { return rewriting{stmt: e.left(s)} }) || changed
		changed = a.each(func(e *effects, _ *scope) rewriting { return rewriting{stmt: e.parts} }) || changed
		if first {
			// Errors of types are reported now, even in code that later turns leave out.
			if a.infer(); len(a.problems) > 0 {
				return
			}
		}
		changed = a.each(func(e *effects, s *scope) rewriting {
			f := folding{e, s}
			return rewriting{stmt: f.stmt, expr: f.expr}
		}) || changed
		changed = a.each(func(e *effects, _ *scope) rewriting { return rewriting{stmt: e.reached} }) || changed
		if !changed {
			break
		}
	}
	a.forget()
	for _, b := range a.bodies {
		if b.cond != nil || len(b.list) > 0 {
			return
		}
	}
	a.noProbes()
}

// size counts the statements and expressions.
func (a *analysis) size() (n int) {
	count := func(st stmt) { walkAll(st, func(stmt) { n++ }, func(expr) { n++ }) }
	for _, b := range a.bodies {
		for _, st := range b.list {
			count(st)
		}
	}
	for _, f := range a.order {
		if f.body != nil {
			count(f.body)
		}
	}
	return n
}

// each rewrites all probes and functions, and reports whether to look once more.
func (a *analysis) each(how func(e *effects, s *scope) rewriting) bool {
	e := a.effects()
	for _, b := range a.bodies {
		r := how(e, b.scope)
		b.list = r.whole(b.list)
	}
	for _, f := range e.list {
		r := how(e, f.scope)
		f.body = r.block(f.body)
	}
	return e.changed
}

// unused leaves out variables that nothing reads or writes, and functions that nothing calls: it reports whether there were any.
// What was used by a loop or a branch alone that was left out last stays, as with stap, and needs a type.
func (a *analysis) unused(functions *int) (changed bool) {
	e := a.effects()
	changed = len(e.list) < *functions
	*functions = len(e.list)
	leave := func(v *variable) {
		if !v.gone && !e.used.read[v] && !e.used.written[v] {
			v.gone, changed = true, true
		}
	}
	for _, b := range a.bodies {
		for _, v := range b.scope.order {
			leave(v)
		}
	}
	for _, f := range e.list {
		for _, v := range f.scope.order[len(f.decl.params):] {
			leave(v)
		}
	}
	for _, v := range a.globals {
		if v.met == 0 {
			v.gone = true // stap never came to it
		} else if !v.decl.library {
			leave(v)
		}
	}
	return changed
}

// forget takes back which variables are read and which functions are called: less may be, now.
func (a *analysis) forget() {
	a.order = nil
	for _, v := range a.globals {
		v.read, v.written, v.hist, v.asked = false, false, script.Histogram{}, script.Histogram{}
	}
}

// unread replaces an assignment to a local that is never read by the assigned value.
func (e *effects) unread(s *scope) func(expr) expr {
	return func(x expr) expr {
		as, ok := x.(*assign)
		if !ok {
			return x
		}
		to, ok := as.x.(*symbol)
		if !ok {
			return x
		}
		if v := e.a.find(s, to.tok, to.name); v.decl != nil || e.used.read[v] {
			return x
		}
		e.changed = true
		return as.y
	}
}

// uncaught takes the variable out of a catch if it is never read.
func (e *effects) uncaught(s *scope) func(stmt) stmt {
	return func(st stmt) stmt {
		if try, ok := st.(*tryStmt); ok && try.to != nil && !e.used.read[e.a.find(s, try.to.tok, try.to.name)] {
			c := *try
			c.to = nil
			return &c
		}
		return st
	}
}

// left leaves out statements without an effect.
func (e *effects) left(s *scope) func(stmt) stmt {
	none := func(list ...expr) bool { return e.none(e.a.uses(s).exprs(list...)) }
	return func(st stmt) stmt {
		switch st := st.(type) {
		case *nothing:
			return nil
		case *block:
			return e.flat(st)
		case *exprStmt:
			if e.noneFor(e.a.uses(s).exprs(st.x)) {
				e.changed = true
				return nil
			}
		case *ifStmt:
			switch {
			case st.then != nil:
			case st.other != nil:
				return &ifStmt{st.base, &unary{base{st.cond.position()}, "!", st.cond}, st.other, nil}
			case none(st.cond):
				return nil
			default:
				return &exprStmt{base{st.cond.position()}, st.cond}
			}
		case *forStmt:
			if st.body == nil {
				if none(st.start, st.cond, st.post) {
					return nil
				}
				st.body = &nothing{st.base}
			}
		case *foreachStmt:
			if st.body == nil {
				return nil
			}
		case *tryStmt:
			if len(st.body.list) == 0 {
				return nil
			}
		}
		return st
	}
}

// flat is a block without blocks in it: nil for an empty one, its statement for one of one statement.
func (e *effects) flat(b *block) stmt {
	var list []stmt
	for _, st := range b.list {
		if inner, ok := st.(*block); ok {
			e.changed = true
			list = append(list, inner.list...)
		} else {
			list = append(list, st)
		}
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &block{b.base, list}
}

// parts replaces a statement whose value is not used by statements for its parts that have an effect.
func (e *effects) parts(st stmt) stmt {
	s, ok := st.(*exprStmt)
	if !ok {
		return st
	}
	out := e.statement(s.x)
	if same, ok := out.(*exprStmt); ok && same.x == s.x {
		return st
	}
	e.changed = true
	return out
}

// statement returns a statement with the effects of an expression whose value is not used.
func (e *effects) statement(x expr) stmt {
	at := base{x.position()}
	all := func(list ...expr) stmt {
		b := &block{base: at}
		for _, one := range list {
			if one != nil {
				b.list = append(b.list, e.statement(one))
			}
		}
		return b
	}
	switch x := x.(type) {
	case *binary:
		switch x.op {
		case "||":
			return &ifStmt{at, &unary{at, "!", x.x}, e.statement(x.y), nil}
		case "&&":
			return &ifStmt{at, x.x, e.statement(x.y), nil}
		}
		return all(x.x, x.y)
	case *ternary:
		return &ifStmt{at, x.cond, e.statement(x.x), e.statement(x.y)}
	case *unary:
		return e.statement(x.x)
	case *match:
		return e.statement(x.x)
	case *call:
		if f := e.a.callee(x); len(x.args) > 0 && (f != nil && e.pure(f) || f == nil && e.none(e.a.uses(nil).exprs(&call{x.base, x.name, nil}))) {
			return all(x.args...)
		}
	case *printExpr:
		if x.name[0] == 's' && len(x.args) > 0 {
			return all(x.args...)
		}
	case *target:
		list := []expr{x.of}
		for _, step := range x.path {
			list = append(list, step.index)
		}
		return all(list...)
	case *definedExpr:
		return &nothing{at}
	}
	return &exprStmt{at, x}
}

// reached leaves out what follows a jump.
func (e *effects) reached(st stmt) stmt {
	b, ok := st.(*block)
	if !ok {
		return st
	}
	for i, one := range b.list {
		switch one.(type) {
		case *returnStmt, *jumpStmt:
			if i+1 < len(b.list) {
				e.changed = true
				return &block{b.base, b.list[:i+1]}
			}
		}
	}
	return b
}
