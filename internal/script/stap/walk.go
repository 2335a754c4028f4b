package stap

// walk visits the expressions of a statement.
func walk(s stmt, visit func(expr)) { walkAll(s, func(stmt) {}, visit) }

// walkAll visits the statements of a statement, and their expressions.
func walkAll(s stmt, on func(stmt), visit func(expr)) {
	more := func(list ...stmt) {
		for _, one := range list {
			if one != nil {
				walkAll(one, on, visit)
			}
		}
	}
	exprs := func(list ...expr) {
		for _, x := range list {
			if x != nil {
				walkExpr(x, visit)
			}
		}
	}
	if s == nil {
		return
	}
	on(s)
	switch s := s.(type) {
	case *block:
		if s != nil {
			more(s.list...)
		}
	case *exprStmt:
		exprs(s.x)
	case *ifStmt:
		exprs(s.cond)
		more(s.then, s.other)
	case *forStmt:
		exprs(s.start, s.cond, s.post)
		more(s.body)
	case *foreachStmt:
		exprs(s.slice...)
		exprs(s.limit)
		more(s.body)
	case *tryStmt:
		more(s.body, s.catch)
	case *deleteStmt:
		exprs(s.x)
	case *returnStmt:
		exprs(s.x)
	}
}

func walkExpr(x expr, visit func(expr)) {
	if x == nil {
		return
	}
	visit(x)
	list := func(all ...expr) {
		for _, one := range all {
			if one != nil {
				walkExpr(one, visit)
			}
		}
	}
	switch x := x.(type) {
	case *index:
		list(x.keys...)
	case *binary:
		list(x.x, x.y)
	case *unary:
		list(x.x)
	case *crement:
		list(x.x)
	case *assign:
		list(x.x, x.y)
	case *ternary:
		list(x.cond, x.x, x.y)
	case *inArray:
		list(x.keys...)
	case *match:
		list(x.x)
	case *call:
		list(x.args...)
	case *printExpr:
		list(x.args...)
	case *target:
		list(x.of)
		for _, s := range x.path {
			list(s.index)
		}
	case *statExpr:
		list(x.of)
	case *definedExpr:
		list(x.x)
	case *entryExpr:
		list(x.x)
	case *memoryExpr:
		list(x.x)
	}
}
