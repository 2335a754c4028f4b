package stap

// impure are the functions in Go that do more than compute, by stap's own text of them.
var impure = map[string]bool{
	"abort": true, "caller": true, "caller_addr": true, "callers": true, "error": true, "exit": true, "log": true,
	"print_backtrace": true, "print_regs": true, "print_stack": true, "print_syms": true, "printk": true, "randint": true,
	"register": true, "sprint_stack": true, "sprint_syms": true, "stack": true, "tokenize": true, "u_register": true,
	"user_buffer_quoted": true, "warn": true,
}

// uses are the variables that code reads and writes, and the functions that it calls.
type uses struct {
	a             *analysis
	s             *scope
	read, written map[*variable]bool
	// effect is set where more is done than variables are written.
	effect bool
	calls  []*fn
	// both and only are the places that are read and written, and the places that are written.
	both, only map[expr]bool
}

func (a *analysis) uses(s *scope) *uses {
	return &uses{a: a, s: s, read: map[*variable]bool{}, written: map[*variable]bool{}, both: map[expr]bool{}, only: map[expr]bool{}}
}

func (u *uses) stmt(st stmt) { walkAll(st, u.on, u.see) }

func (u *uses) exprs(list ...expr) *uses {
	for _, x := range list {
		walkExpr(x, u.see)
	}
	return u
}

func (u *uses) on(st stmt) {
	switch st := st.(type) {
	case *foreachStmt:
		if st.hist != nil {
			u.exprs(st.hist.of)
		} else {
			v := u.a.find(u.s, st.array.tok, st.array.name)
			u.read[v] = true
			u.written[v] = u.written[v] || st.sort >= 0 // it is sorted in its place
		}
		for _, k := range append(st.keys[:len(st.keys):len(st.keys)], st.value) {
			if k != nil {
				u.written[u.a.find(u.s, k.tok, k.name)] = true
			}
		}
	case *tryStmt:
		if st.to != nil {
			u.written[u.a.find(u.s, st.to.tok, st.to.name)] = true
		}
	case *deleteStmt:
		u.changes(st.x, u.both)
	}
}

// changes notes a variable that is written. A write to anything else is an effect.
func (u *uses) changes(x expr, how map[expr]bool) {
	switch x.(type) {
	case *symbol, *index:
		how[x] = true
	default:
		u.effect = true
	}
}

func (u *uses) variable(x expr, t *token, name string) {
	v := u.a.find(u.s, t, name)
	if u.both[x] || u.only[x] {
		u.written[v] = true
	}
	if !u.only[x] {
		u.read[v] = true
	}
}

func (u *uses) see(x expr) {
	switch x := x.(type) {
	case *assign:
		if x.op == "=" || x.op == "<<<" {
			u.changes(x.x, u.only)
		} else {
			u.changes(x.x, u.both)
		}
	case *crement:
		u.changes(x.x, u.both)
	case *symbol:
		u.variable(x, x.tok, x.name)
	case *index:
		if x.hist != nil {
			u.exprs(x.hist.of)
			return
		}
		u.variable(x, x.tok, x.name)
	case *inArray:
		if x.hist != nil {
			u.exprs(x.hist.of)
			return
		}
		u.variable(x, x.tok, x.name)
	case *printExpr:
		u.effect = u.effect || x.name[0] != 's'
		if x.hist != nil {
			u.exprs(x.hist.of)
		}
	case *embeddedExpr, *perfExpr:
		u.effect = true
	case *call:
		f := u.a.callee(x)
		if f == nil {
			b := builtins[x.name]
			u.effect = u.effect || b == nil || b.guru || impure[x.name]
		}
		for ; f != nil; f = f.next {
			u.calls = append(u.calls, f)
		}
	}
}
