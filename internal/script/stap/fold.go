package stap

import (
	"math"
	"strings"
)

// folding replaces expressions by their values, if these are known before the script runs.
type folding struct {
	e *effects
	s *scope
}

// maxFolded bounds a string that is put together.
const maxFolded = 100

// literalNumber returns the value of a literal number; ok is false for other expressions.
func literalNumber(x expr) (v int64, ok bool) {
	l, ok := x.(*literal)
	if !ok || l.isText {
		return 0, false
	}
	return l.number, true
}

// literalText returns the text of a literal string; ok is false for other expressions, and for strings with escapes.
func literalText(x expr) (s string, ok bool) {
	l, ok := x.(*literal)
	if !ok || !l.isText || strings.Contains(l.text, `\`) {
		return "", false
	}
	return l.text, true
}

func (f folding) pure(x expr) bool { return f.e.none(f.e.a.uses(f.s).exprs(x)) }

func (f folding) stmt(st stmt) stmt {
	out := f.branch(st)
	f.e.changed = f.e.changed || out != st
	return out
}

func (f folding) expr(x expr) expr {
	out := f.value(x)
	f.e.changed = f.e.changed || out != x
	return out
}

// branch returns the rest of a statement whose condition is known.
func (f folding) branch(st stmt) stmt {
	switch st := st.(type) {
	case *ifStmt:
		v, ok := literalNumber(st.cond)
		switch {
		case !ok:
		case v != 0 && st.then != nil:
			return st.then
		case v == 0 && st.other != nil:
			return st.other
		default:
			return &nothing{st.base}
		}
	case *forStmt:
		if v, ok := literalNumber(st.cond); ok && v == 0 {
			if st.start == nil {
				return &nothing{st.base}
			}
			return &exprStmt{base{st.start.position()}, st.start}
		}
	case *foreachStmt:
		if v, ok := literalNumber(st.limit); ok && v <= 0 {
			return &nothing{st.base}
		}
	}
	return st
}

// value returns an expression's value as a literal if it is known, or the expression with its known parts computed.
func (f folding) value(x expr) expr {
	at := base{x.position()}
	whole := func(v int64) expr { return &literal{base: at, number: v} }
	switch x := x.(type) {
	case *unary:
		if v, ok := literalNumber(x.x); ok {
			switch x.op {
			case "+":
				return whole(v)
			case "-":
				return whole(-v)
			case "!":
				return whole(truth(v == 0))
			case "~":
				return whole(^v)
			}
		}
	case *ternary:
		if v, ok := literalNumber(x.cond); ok {
			if v != 0 {
				return x.x
			}
			return x.y
		}
	case *binary:
		if compare, ok := comparisons[x.op]; ok {
			if v, ok := f.compared(x, compare); ok {
				return whole(v)
			}
			return x
		}
		switch x.op {
		case "&&", "||":
			if v, ok := f.logical(x); ok {
				return whole(v)
			}
			return x
		case ".":
			return f.joined(x)
		}
		return f.computed(x, whole)
	}
	return x
}

// logical returns the value of && or ||; ok is false if the known sides do not decide it.
func (f folding) logical(x *binary) (v int64, ok bool) {
	decides := truth(x.op == "||")
	one, okOne := literalNumber(x.x)
	two, okTwo := literalNumber(x.y)
	switch {
	case okOne && okTwo:
		if x.op == "||" {
			return truth(one != 0 || two != 0), true
		}
		return truth(one != 0 && two != 0), true
	case okOne && truth(one != 0) == decides, okTwo && truth(two != 0) == decides && f.pure(x.x):
		return decides, true
	}
	return 0, false
}

var comparisons = map[string]func(order int) bool{
	"==": func(o int) bool { return o == 0 }, "!=": func(o int) bool { return o != 0 },
	"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 },
	">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
}

// compared returns the value of a comparison of literals, or of a comparison that is always or never true. ok is false
// for others.
func (f folding) compared(x *binary, holds func(order int) bool) (v int64, ok bool) {
	if one, ok := literalText(x.x); ok {
		if two, ok := literalText(x.y); ok {
			return truth(holds(strings.Compare(one, two))), true
		}
	}
	one, okOne := literalNumber(x.x)
	two, okTwo := literalNumber(x.y)
	switch {
	case okOne && okTwo:
		order := 0
		if one < two {
			order = -1
		} else if one > two {
			order = 1
		}
		return truth(holds(order)), true
	case okOne && (one == math.MinInt64 && (x.op == "<=" || x.op == ">") || one == math.MaxInt64 && (x.op == ">=" || x.op == "<")):
		return truth(len(x.op) == 2), f.pure(x.y)
	case okTwo && (two == math.MinInt64 && (x.op == ">=" || x.op == "<") || two == math.MaxInt64 && (x.op == "<=" || x.op == ">")):
		return truth(len(x.op) == 2), f.pure(x.x)
	}
	return 0, false
}

// joined puts literal strings together, and leaves out an empty one.
func (f folding) joined(x *binary) expr {
	one, okOne := literalText(x.x)
	two, okTwo := literalText(x.y)
	switch {
	case okOne && okTwo && len(one)+len(two) <= maxFolded:
		return &literal{base: base{x.x.position()}, isText: true, text: one + two}
	case okOne && one == "":
		return x.y
	case okTwo && two == "":
		return x.x
	}
	return x
}

// computed folds arithmetic with a literal: division by 0 stays.
func (f folding) computed(x *binary, whole func(int64) expr) expr {
	one, okOne := literalNumber(x.x)
	two, okTwo := literalNumber(x.y)
	switch {
	case okTwo && two == 0 && (x.op == "/" || x.op == "%"):
		return x
	case okOne && okTwo:
		if v, ok := arithmetic(x.op, one, two); ok {
			return whole(v)
		}
		return x
	}
	left := func(v int64, ops string) bool { return okOne && one == v && strings.Contains(ops, " "+x.op+" ") }
	right := func(v int64, ops string) bool { return okTwo && two == v && strings.Contains(ops, " "+x.op+" ") }
	switch {
	case left(0, " * & >> << ") || left(-1, " | >> "):
		if f.pure(x.y) {
			return whole(one)
		}
	case right(0, " * & ") || right(-1, " | "):
		if f.pure(x.x) {
			return whole(two)
		}
	case right(1, " % ") || right(-1, " % "):
		if f.pure(x.x) {
			return whole(0)
		}
	case left(0, " + | ^ ") || left(1, " * ") || left(-1, " & "):
		return x.y
	case right(0, " + - | ^ >> << ") || right(1, " * / ") || right(-1, " & "):
		return x.x
	}
	return x
}

// arithmetic computes with two numbers, where that has a result.
func arithmetic(op string, x, y int64) (v int64, ok bool) {
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "&":
		return x & y, true
	case "|":
		return x | y, true
	case "^":
		return x ^ y, true
	case "/":
		return x / y, true
	case "%":
		return x % y, true
	case "<<":
		return x << uint64(y), y >= 0 && y < 64
	case ">>":
		return x >> uint64(y), y >= 0 && y < 64
	}
	return 0, false
}
