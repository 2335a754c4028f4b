package stap

// effects has the effect of each function of a script. The effect includes the functions that it calls.
type effects struct {
	a    *analysis
	of   map[*fn]*effect
	list []*fn // called functions come before their callers, if that is possible
	// used are the variables that probes and functions read and write.
	used *uses
	// changed: something was found, and stap makes another pass.
	changed bool
}

// effect is the effect of a function's call.
type effect struct {
	own *uses
	// does: the call does more than write variables. writes: it writes a variable. global: it writes a global.
	does, writes, global bool
	// ring is a number; functions that call each other in a circle have the same.
	ring int
}

// effects looks at all probes and at the functions that they reach.
func (a *analysis) effects() *effects {
	e := &effects{a: a, of: map[*fn]*effect{}, used: a.uses(nil)}
	for _, b := range a.bodies {
		u := a.uses(b.scope).exprs(b.cond)
		for _, st := range b.list {
			u.stmt(st)
		}
		e.enter(u)
	}
	e.rings()
	for changed := true; changed; {
		changed = false
		for _, f := range e.list {
			one := e.of[f]
			before := *one
			for _, g := range one.own.calls {
				to := e.of[g]
				one.does, one.writes, one.global = one.does || to.does, one.writes || to.writes, one.global || to.global
			}
			changed = changed || before.does != one.does || before.writes != one.writes || before.global != one.global
		}
	}
	return e
}

// enter notes the variables that are read, and the functions that are called.
func (e *effects) enter(u *uses) {
	for v := range u.read {
		e.used.read[v] = true
	}
	for v := range u.written {
		e.used.written[v] = true
	}
	for _, f := range u.calls {
		if e.of[f] != nil {
			continue
		}
		own := e.a.uses(f.scope)
		one := &effect{own: own, does: f.body == nil}
		e.of[f] = one
		if f.body != nil {
			own.stmt(f.body)
		}
		one.does = one.does || own.effect
		one.writes = len(own.written) > 0
		for v := range own.written {
			one.global = one.global || v.decl != nil
		}
		e.enter(own)
		e.list = append(e.list, f)
	}
}

// none reports whether code has no effect: it and the functions that it calls write nothing and only compute.
func (e *effects) none(u *uses) bool {
	if u.effect || len(u.written) > 0 {
		return false
	}
	for _, f := range u.calls {
		if to := e.of[f]; to == nil || to.does || to.writes {
			return false
		}
	}
	return true
}

// pure reports whether a call of a function, or of another one of its name, only computes and writes no global.
func (e *effects) pure(f *fn) bool {
	for ; f != nil; f = f.next {
		if to := e.of[f]; to == nil || to.does || to.global {
			return false
		}
	}
	return true
}

// noneFor reports whether code has no effect that the probe or function around it can see: the functions that it
// calls may write variables of their own.
func (e *effects) noneFor(u *uses) bool {
	if u.effect || len(u.written) > 0 {
		return false
	}
	for _, f := range u.calls {
		if !e.pure(f) {
			return false
		}
		if here := e.of[u.s.fn]; here != nil && here.ring == e.of[f].ring && len(here.own.written) > 0 {
			return false
		}
	}
	return true
}

// rings gives functions that lead to each other the same number (Tarjan's way).
func (e *effects) rings() {
	number, low := map[*fn]int{}, map[*fn]int{}
	var open []*fn
	var visit func(f *fn)
	visit = func(f *fn) {
		number[f] = len(number) + 1
		low[f] = number[f]
		open = append(open, f)
		for _, g := range e.of[f].own.calls {
			switch {
			case number[g] == 0:
				visit(g)
				low[f] = min(low[f], low[g])
			case e.of[g].ring == 0:
				low[f] = min(low[f], number[g])
			}
		}
		for low[f] == number[f] && e.of[f].ring == 0 {
			last := open[len(open)-1]
			open = open[:len(open)-1]
			e.of[last].ring = number[f]
		}
	}
	for _, f := range e.list {
		if number[f] == 0 {
			visit(f)
		}
	}
}
