package stap

// stap leaves out what has no effect, until nothing more can be left out: a value that nobody reads, a
// branch that is never taken, a loop without statements, a call of a function that only computes. A script
// of which no probe is left is refused.

// effects refuses a script whose probes all have no effect.
func (a *analysis) effects() {
	if a.o.List {
		return
	}
	for _, b := range a.bodies {
		if b.cond != nil || !a.idle(b) {
			return
		}
	}
	a.noProbes()
}

// idle reports whether nothing is left of a probe's statements.
func (a *analysis) idle(b *body) bool {
	w := work{a: a, s: b.scope, unread: map[string]bool{}, within: map[*fn]bool{}}
	for {
		w.read, w.assigned = map[string]bool{}, map[string]bool{}
		left := false
		for _, st := range b.list {
			left = w.stmt(st) || left
		}
		if !left {
			return true
		}
		found := false
		for name := range w.assigned {
			if !w.read[name] && !w.unread[name] {
				w.unread[name] = true
				found = true
			}
		}
		if !found {
			return false
		}
	}
}

// work looks for effects in a probe's statements.
type work struct {
	a *analysis
	s *scope
	// unread are the local variables whose values nobody reads; read and assigned are those of the statements
	// that are left.
	unread, read, assigned map[string]bool
	// within are the functions that are being looked at.
	within map[*fn]bool
}

// stmt reports whether something is left of a statement, and notes what that reads and assigns.
func (w *work) stmt(st stmt) (left bool) {
	switch st := st.(type) {
	case nil, *nothing:
		return false
	case *block:
		if st == nil {
			return false
		}
		for _, one := range st.list {
			left = w.stmt(one) || left
		}
		return left
	case *exprStmt:
		return w.unlessPure(false, st.x)
	case *ifStmt:
		if v, ok := folded(st.cond); ok {
			if v != 0 {
				return w.stmt(st.then)
			}
			return w.stmt(st.other)
		}
		left = w.stmt(st.then)
		left = w.stmt(st.other) || left
		return w.unlessPure(left, st.cond)
	case *forStmt:
		return w.unlessPure(w.stmt(st.body), st.start, st.cond, st.post)
	case *foreachStmt:
		return w.unlessPure(w.stmt(st.body), append(st.slice[:len(st.slice):len(st.slice)], st.limit)...)
	case *tryStmt:
		if left = w.stmt(st.body); left {
			w.stmt(st.catch)
		}
		return left
	case *deleteStmt:
		return w.unlessPure(true, st.x)
	}
	return true
}

// unlessPure reports whether something is left of a statement with these expressions, whose own statements are left or
// not.
func (w *work) unlessPure(left bool, list ...expr) bool {
	for _, x := range list {
		left = left || !w.pure(x)
	}
	if !left {
		return false
	}
	target := map[expr]bool{}
	for _, x := range list {
		walkExpr(x, func(x expr) {
			switch x := x.(type) {
			case *assign:
				if to, ok := x.x.(*symbol); ok && x.op == "=" && w.s.locals[to.name] != nil {
					target[to] = true
					w.assigned[to.name] = true
				}
			case *symbol:
				w.read[x.name] = w.read[x.name] || !target[x]
			}
		})
	}
	return true
}

// pure reports whether an expression has no effect but its value.
func (w *work) pure(x expr) bool {
	pure := true
	walkExpr(x, func(x expr) {
		switch x := x.(type) {
		case *assign:
			to, ok := x.x.(*symbol)
			pure = pure && ok && x.op == "=" && w.unread[to.name]
		default:
			pure = pure && w.computes(x)
		}
	})
	return pure
}

// computes reports whether an expression, without the expressions in it, only computes a value.
func (w *work) computes(x expr) bool {
	switch x := x.(type) {
	case *crement, *assign, *embeddedExpr, *perfExpr:
		return false
	case *printExpr:
		return x.name[0] == 's'
	case *call:
		return w.onlyComputes(w.a.callee(x))
	}
	return true
}

// onlyComputes reports whether a function, and all others of its name, changes its own variables alone.
func (w *work) onlyComputes(f *fn) bool {
	for ; f != nil; f = f.next {
		switch {
		case w.within[f]:
			return true
		case f.decl == nil || f.decl.body == nil:
			return false
		}
		w.within[f] = true
		only := w.changesOwn(f)
		delete(w.within, f)
		if !only {
			return false
		}
		if f.next == nil {
			return true
		}
	}
	return false
}

func (w *work) changesOwn(f *fn) bool {
	own := func(x expr) bool {
		to, ok := x.(*symbol)
		return ok && f.scope.locals[to.name] != nil
	}
	only := true
	walkAll(f.decl.body, func(st stmt) {
		if _, deletes := st.(*deleteStmt); deletes {
			only = false
		}
	}, func(x expr) {
		switch x := x.(type) {
		case *assign:
			only = only && own(x.x)
		case *crement:
			only = only && own(x.x)
		default:
			only = only && w.computes(x)
		}
	})
	return only
}

// folded is the value of a number, or of a comparison of numbers.
func folded(x expr) (v int64, ok bool) {
	switch x := x.(type) {
	case *literal:
		return x.number, !x.isText
	case *unary:
		v, ok := folded(x.x)
		return truth(v == 0), ok && x.op == "!"
	case *binary:
		one, okOne := folded(x.x)
		two, okTwo := folded(x.y)
		compare, known := comparisons[x.op]
		if okOne && okTwo && known {
			return truth(compare(one, two)), true
		}
	}
	return 0, false
}

var comparisons = map[string]func(a, b int64) bool{
	"==": func(a, b int64) bool { return a == b }, "!=": func(a, b int64) bool { return a != b },
	"<": func(a, b int64) bool { return a < b }, "<=": func(a, b int64) bool { return a <= b },
	">": func(a, b int64) bool { return a > b }, ">=": func(a, b int64) bool { return a >= b },
	"&&": func(a, b int64) bool { return a != 0 && b != 0 }, "||": func(a, b int64) bool { return a != 0 || b != 0 },
}
