package stap

// prune leaves out what aliases of the library set and nobody reads, as stap does: reading it costs,
// and the kernel need not have it.
func (a *analysis) prune() {
	if a.o.List {
		return
	}
	for _, b := range a.bodies {
		for b.pruneOnce(a.globals) {
		}
	}
}

// pruneOnce leaves out what no statement that is left reads, and reports whether there was
// anything.
func (b *body) pruneOnce(globals map[string]*variable) (changed bool) {
	// read is how often a name is there, but for where it is set.
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

// sets is the variable that a statement does nothing but set.
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
