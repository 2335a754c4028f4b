package stap

// names finds the variable or function of each name, in all code that probes reach. As with stap, names must be known even in
// code that simplify leaves out afterwards. Types come last.
func (a *analysis) names() {
	if a.o.List {
		return
	}
	for _, b := range a.bodies {
		a.catch(func() {
			n := naming{a: a, s: b.scope}
			n.expr(b.cond)
			for _, st := range b.list {
				n.stmt(st)
			}
		})
	}
	for i := 0; i < len(a.order); i++ {
		if f := a.order[i]; f.body != nil {
			a.catch(func() { (&naming{a: a, s: f.scope}).stmt(f.body) })
		}
	}
}

// naming looks at the names of a probe or of a function.
type naming struct {
	a *analysis
	s *scope
	// whole are the variables of delete, which may be arrays.
	whole expr
}

func (n *naming) stmt(st stmt) { walkAll(st, n.on, n.see) }

func (n *naming) expr(x expr) { walkExpr(x, n.see) }

func (n *naming) on(st stmt) {
	switch st := st.(type) {
	case *foreachStmt:
		for _, k := range append(st.keys[:len(st.keys):len(st.keys)], st.value) {
			if k != nil {
				n.a.scalar(n.s, k.tok, k.name)
			}
		}
		if st.hist != nil {
			n.expr(st.hist.of)
		} else {
			n.a.array(n.s, st.array.tok, st.array.name, len(st.keys))
		}
	case *tryStmt:
		if st.to != nil {
			n.a.scalar(n.s, st.to.tok, st.to.name)
		}
	case *deleteStmt:
		x, ok := st.x.(*symbol)
		if !ok {
			return
		}
		// It has to be a global, or a local that is there by now: a parameter is none.
		if v := n.s.locals[x.name]; v == nil && n.a.globals[x.name] == nil || v != nil && n.s.fn != nil && v.n < len(n.s.fn.decl.params) {
			n.a.fail(x.tok, "unresolved array in delete statement")
		}
		n.whole = x
	}
}

func (n *naming) see(x expr) {
	a := n.a
	switch x := x.(type) {
	case *symbol:
		if n.whole != x {
			a.scalar(n.s, x.tok, x.name)
		}
	case *index:
		if x.hist != nil {
			n.expr(x.hist.of)
			return
		}
		a.array(n.s, x.tok, x.name, len(x.keys))
	case *inArray:
		if x.hist != nil {
			n.expr(x.hist.of)
			return
		}
		a.array(n.s, x.tok, x.name, len(x.keys))
	case *printExpr:
		if x.hist != nil {
			n.expr(x.hist.of)
		}
	case *call:
		if a.callee(x) == nil && !a.isBuiltin(x) {
			a.unresolved(x)
		}
	}
}

// isBuiltin reports whether a call is one of a function in Go.
func (a *analysis) isBuiltin(x *call) bool {
	b := builtins[x.name]
	return b != nil && len(x.args) >= b.least && len(x.args) <= len(b.params)
}
