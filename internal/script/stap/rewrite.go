package stap

// rewriting replaces statements and expressions, first the parts and then the whole. It makes new statements and changes no
// old ones.
type rewriting struct {
	// stmt returns the replacement of a statement, nil to leave it out. expr returns the replacement of an expression. Either
	// function may be nil.
	stmt func(stmt) stmt
	expr func(expr) expr
}

// whole rewrites the statements of a body that stays, though it may be empty.
func (r *rewriting) whole(list []stmt) []stmt {
	if list = r.list(list); r.stmt == nil {
		return list
	}
	switch st := r.stmt(&block{list: list}).(type) {
	case nil:
		return nil
	case *block:
		return st.list
	default:
		return []stmt{st}
	}
}

// list rewrites statements that follow each other.
func (r *rewriting) list(list []stmt) []stmt {
	var out []stmt
	for _, st := range list {
		if st = r.of(st); st != nil {
			out = append(out, st)
		}
	}
	return out
}

// of rewrites a statement: nil if it is left out.
func (r *rewriting) of(st stmt) stmt {
	switch s := st.(type) {
	case nil:
		return nil
	case *block:
		if s == nil {
			return nil
		}
		st = &block{s.base, r.list(s.list)}
	case *exprStmt:
		st = &exprStmt{s.base, r.x(s.x)}
	case *ifStmt:
		st = &ifStmt{s.base, r.x(s.cond), r.of(s.then), r.of(s.other)}
	case *forStmt:
		st = &forStmt{s.base, r.x(s.start), r.x(s.cond), r.x(s.post), r.of(s.body)}
	case *foreachStmt:
		c := *s
		c.slice, c.limit, c.body = r.all(s.slice), r.x(s.limit), r.of(s.body)
		st = &c
	case *tryStmt:
		c := *s
		c.body, c.catch = r.block(s.body), r.block(s.catch)
		st = &c
	case *deleteStmt:
		st = &deleteStmt{s.base, r.x(s.x)}
	case *returnStmt:
		st = &returnStmt{s.base, r.x(s.x)}
	}
	if r.stmt == nil {
		return st
	}
	return r.stmt(st)
}

// block rewrites a block that stays one.
func (r *rewriting) block(b *block) *block {
	if b == nil {
		return nil
	}
	return &block{b.base, r.whole(b.list)}
}

func (r *rewriting) all(list []expr) []expr {
	if list == nil {
		return nil
	}
	out := make([]expr, len(list))
	for i, x := range list {
		out[i] = r.x(x)
	}
	return out
}

// x rewrites an expression.
func (r *rewriting) x(x expr) expr {
	if x == nil || r.expr == nil {
		return x
	}
	switch e := x.(type) {
	case *index:
		c := *e
		c.keys = r.all(e.keys)
		x = &c
	case *binary:
		x = &binary{e.base, e.op, r.x(e.x), r.x(e.y)}
	case *unary:
		x = &unary{e.base, e.op, r.x(e.x)}
	case *crement:
		x = &crement{e.base, e.op, e.post, r.x(e.x)}
	case *assign:
		x = &assign{e.base, e.op, r.x(e.x), r.x(e.y)}
	case *ternary:
		x = &ternary{e.base, r.x(e.cond), r.x(e.x), r.x(e.y)}
	case *inArray:
		c := *e
		c.keys = r.all(e.keys)
		x = &c
	case *match:
		x = &match{e.base, e.op, r.x(e.x), e.pattern}
	case *call:
		x = &call{e.base, e.name, r.all(e.args)}
	case *printExpr:
		c := *e
		c.args = r.all(e.args)
		x = &c
	case *target:
		c := *e
		c.of = r.x(e.of)
		c.path = append([]access(nil), e.path...)
		for i := range c.path {
			c.path[i].index = r.x(c.path[i].index)
		}
		x = &c
	case *memoryExpr:
		c := *e
		c.x = r.x(e.x)
		x = &c
	}
	return r.expr(x)
}
