package values

import (
	"fmt"
	"math/rand/v2"
)

// integer is an expression of a script, with the type that bpftrace gives it.
type integer struct {
	text   string
	size   int
	signed bool
	// bit is for the result of a comparison, which has one bit.
	bit bool
}

// cast is the name of a type.
func cast(size int, signed bool) string {
	if signed {
		return fmt.Sprintf("int%d", 8*size)
	}
	return fmt.Sprintf("uint%d", 8*size)
}

var sizes = []int{1, 2, 4, 8}

// drawer draws the parts of one script.
type drawer struct {
	*rand.Rand
	// n is the script's number: its variables and maps have it in their names.
	n int
	// known holds the integers that an expression may read: variables, members, arguments.
	known []integer
	vars  int
	maps  int
	// shared has only what bpftrace 0.23.2 and 0.27.1 mean the same by.
	shared bool
}

func pick[T any](d *drawer, list ...T) T { return list[d.IntN(len(list))] }

// literal is a number that a type may have, one at its ends as likely as others.
func (d *drawer) literal(size int, signed bool) integer {
	bits := 8 * size
	v := d.Uint64() >> (64 - bits)
	switch d.IntN(5) {
	case 0:
		v = uint64(d.IntN(4))
	case 1:
		v = 1<<(bits-1) - uint64(d.IntN(2))
	case 2:
		v = 1<<bits - 1 - uint64(d.IntN(3))
		if bits == 64 {
			v = ^uint64(0) - uint64(d.IntN(3))
		}
	}
	text := fmt.Sprint(v)
	if signed {
		n := int64(v<<(64-bits)) >> (64 - bits)
		if n == -1<<63 {
			n++
		}
		text = fmt.Sprint(n)
	}
	return integer{text: fmt.Sprintf("(%s)%s", cast(size, signed), text), size: size, signed: signed}
}

// operand is something without operators.
func (d *drawer) operand() integer {
	if len(d.known) > 0 && d.IntN(3) > 0 {
		return pick(d, d.known...)
	}
	if d.IntN(5) == 0 {
		return integer{text: fmt.Sprint(d.IntN(300)), size: 8, signed: true}
	}
	return d.literal(pick(d, sizes...), d.IntN(2) == 0)
}

// expr is an expression of a depth.
func (d *drawer) expr(depth int) integer {
	if depth == 0 {
		return d.operand()
	}
	if d.shared {
		return d.sharedExpr(depth)
	}
	x := d.expr(depth - 1)
	switch d.IntN(10) {
	case 0:
		op := pick(d, "~", "-", "!")
		out := integer{text: fmt.Sprintf("%s(%s)", op, x.text), size: 8, signed: x.signed, bit: x.bit}
		if op == "!" {
			out.size, out.signed = x.size, false
		}
		return out
	case 1, 2:
		size, signed := pick(d, sizes...), d.IntN(2) == 0
		return integer{text: fmt.Sprintf("(%s)(%s)", cast(size, signed), x.text), size: size, signed: signed}
	case 3:
		// One with another ternary, && or || in it has the tool die.
		y := d.operand()
		return integer{text: fmt.Sprintf("(%s ? %s : %s)", x.text, y.text, d.operand().text), size: 8, signed: y.signed}
	case 4:
		y, op := d.expr(depth-1), pick(d, "<", "<=", ">", ">=", "==", "!=")
		return integer{text: fmt.Sprintf("(%s %s %s)", x.text, op, y.text), size: max(x.size, y.size), signed: x.signed && y.signed, bit: true}
	case 5:
		// The tool writes eight bytes of it, wherever it is put: into fewer, what comes of it is undefined.
		y, op := d.expr(depth-1), pick(d, "&&", "||")
		return integer{text: fmt.Sprintf("((%s)(%s) %s %s)", cast(8, x.signed), x.text, op, y.text), size: 8, signed: x.signed && y.signed}
	case 6:
		// What shifts is smaller than the width, and does not change it.
		op := pick(d, "<<", ">>")
		return integer{text: fmt.Sprintf("(%s %s (uint8)%d)", x.text, op, d.IntN(8*x.size)), size: x.size, signed: x.signed}
	case 7:
		// By 0 nothing is divided: with constants a compiler may make anything of it.
		y, op := d.operand(), pick(d, "/", "%")
		return integer{text: fmt.Sprintf("(%s %s (%s | (%s)1))", x.text, op, y.text, cast(y.size, y.signed)), size: max(x.size, y.size), signed: x.signed && y.signed}
	}
	y, op := d.operand(), pick(d, "+", "-", "*", "+", "-", "&", "|", "^")
	return integer{text: fmt.Sprintf("(%s %s %s)", x.text, op, y.text), size: max(x.size, y.size), signed: x.signed && y.signed}
}

// variable makes a variable of an expression, which later ones may read.
func (d *drawer) variable() string {
	x := d.stored(d.expr(d.IntN(3)))
	v := x
	v.text, v.bit = fmt.Sprintf("$v%d_%d", d.n, d.vars), false
	d.vars++
	out := fmt.Sprintf("%s = %s;", v.text, x.text)
	d.known = append(d.known, v)
	switch d.IntN(4) {
	case 0:
		// Another value that fits, of a type that may be narrower.
		y := d.stored(d.expr(1))
		if y.signed == v.signed && y.size <= v.size {
			out += fmt.Sprintf(" %s = %s;", v.text, y.text)
		}
	case 1:
		if d.shared && !v.signed {
			break
		}
		out += " " + pick(d, v.text+"++", "++"+v.text, v.text+"--", "--"+v.text) + ";"
	}
	return out
}

// newMap is the name of another map.
func (d *drawer) newMap() string {
	d.maps++
	return fmt.Sprintf("@m%d_%d", d.n, d.maps)
}
