package stap

// prune leaves out the variables that aliases of the library set and nothing reads, as stap does:
// setting them takes time, and the kernel need not have their sources.
func (a *analysis) prune() {
	if a.o.List {
		return
	}
	for _, b := range a.bodies {
		for b.pruneOnce(a.globals) {
		}
	}
}

// pruneOnce leaves out the variables that none of the statements reads, and reports whether there
// were any.
func (b *body) pruneOnce(globals map[string]*variable) (changed bool) {
	// read counts the uses of a name, without the statements that only set it.
	read := map[string]int{}
	count := func(x expr) {
		if s, ok := x.(*symbol); ok {
			read[s.name]++
		}
	}
	for _, s := range b.list {
		walkAll(s, func(s stmt) {
			if name, ok := sets(s); ok {
				read[name]--
			}
		}, count)
	}
	walkExpr(b.cond, count)
	for i, s := range b.list {
		bl, ok := s.(*block)
		if !ok || !bl.tok.pos.file.library {
			continue
		}
		var left []stmt
		for _, one := range bl.list {
			if name, ok := sets(one); !ok || read[name] > 0 || globals[name] != nil {
				left = append(left, one)
			}
		}
		if len(left) < len(bl.list) {
			b.list[i], changed = &block{base: bl.base, list: left}, true
		}
	}
	return changed
}

// sets returns the name of the variable that a statement sets; false if it does anything else.
func sets(s stmt) (name string, ok bool) {
	x, ok := s.(*exprStmt)
	if !ok {
		return "", false
	}
	as, ok := x.x.(*assign)
	if !ok || as.op != "=" {
		return "", false
	}
	to, ok := as.x.(*symbol)
	if !ok {
		return "", false
	}
	return to.name, true
}
