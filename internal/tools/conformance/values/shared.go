package values

import (
	"fmt"
	"strings"
)

// wide is the expression in the eight bytes that both tools compute in: a cast to more bytes keeps the sign.
func (x integer) wide() integer {
	if x.size == 8 {
		return x
	}
	return integer{text: fmt.Sprintf("(%s)%s", cast(8, x.signed), x.text), size: 8, signed: x.signed}
}

// as gives the expression a sign, in eight bytes.
func (x integer) as(signed bool) integer {
	x = x.wide()
	if x.signed == signed {
		return x
	}
	return integer{text: fmt.Sprintf("(%s)%s", cast(8, signed), x.text), size: 8, signed: signed}
}

// sharedExpr is an expression of a depth that both tools compute the same: in eight bytes, of one sign, and without
// dividing or shifting what has a sign. What is left out has a row in docs/bpftrace.md.
func (d *drawer) sharedExpr(depth int) integer {
	x := d.expr(depth - 1).wide()
	switch d.IntN(8) {
	case 0:
		return integer{text: fmt.Sprintf("-(%s)", x.as(true).text), size: 8, signed: true}
	case 1:
		size := pick(d, sizes...)
		return integer{text: fmt.Sprintf("(%s)(%s)", cast(size, x.signed), x.text), size: size, signed: x.signed}
	case 2:
		return integer{text: fmt.Sprintf("(%s)(%s)", cast(8, !x.signed), x.text), size: 8, signed: !x.signed}
	case 3:
		y := d.operand().wide()
		return integer{text: fmt.Sprintf("(%s ? %s : %s)", d.condition(x), y.text, d.operand().as(y.signed).text), size: 8, signed: y.signed}
	case 4:
		x = x.as(false)
		return integer{text: fmt.Sprintf("(%s %s (uint8)%d)", x.text, pick(d, "<<", ">>"), d.IntN(64)), size: 8}
	case 5:
		x = x.as(false)
		return integer{text: fmt.Sprintf("(%s %s (%s | (uint64)1))", x.text, pick(d, "/", "%"), d.operand().as(false).text), size: 8}
	}
	return integer{text: fmt.Sprintf("(%s %s %s)", x.text, pick(d, d.operators(x, "&", "|", "^", "+", "-", "*", "+", "-")...), d.operand().as(x.signed).text), size: 8, signed: x.signed}
}

// condition asks something of an expression.
func (d *drawer) condition(x integer) string {
	out := fmt.Sprintf("%s %s %s", x.text, pick(d, "<", "<=", ">", ">=", "==", "!="), d.operand().as(x.signed).text)
	if d.IntN(3) == 0 {
		y := d.operand().wide()
		out = fmt.Sprintf("(%s) %s (%s != %s)", out, pick(d, "&&", "||"), y.text, d.operand().as(y.signed).text)
	}
	return out
}

// stored is the expression as a map or a variable takes it: both tools make eight bytes of it where both mean the same.
func (d *drawer) stored(x integer) integer {
	if d.shared {
		return x.wide()
	}
	return x
}

// like is the other expression with the sign of the first, where both tools mean the same.
func (d *drawer) like(x, y integer) integer {
	if d.shared {
		return y.as(x.signed)
	}
	return y
}

// key is the expression as a key or a tuple's part has it: 0.23.2 prints eight bytes with a sign, 0.27.1 by their type.
func (d *drawer) key(x integer) integer {
	if d.shared && x.size == 8 {
		return x.as(true)
	}
	return x
}

// operators are the bitwise and arithmetic ones, in this order, that both tools compute the same:
// 0.27.1 gives a sum of constants without a sign one.
func (d *drawer) operators(x integer, list ...string) []string {
	if !d.shared || x.signed {
		return list
	}
	var out []string
	for _, op := range list {
		if op == "&" || op == "|" || op == "^" {
			out = append(out, op)
		}
	}
	return out
}

// aggregates are the functions whose maps both tools print the same.
func (d *drawer) aggregates() []string {
	list := []string{"sum", "min", "max", "count", "avg", "stats"}
	if d.shared {
		return list[:4]
	}
	return list
}

// own are the statements for a place: 0.27.1 takes what is added to a kprobe's argument for the kernel's, uptr or not.
func (d *drawer) own(at place) (list []string) {
	for _, statement := range at.own {
		if !d.shared || !strings.Contains(statement, "(uptr(arg1) + ") {
			list = append(list, statement)
		}
	}
	return list
}
