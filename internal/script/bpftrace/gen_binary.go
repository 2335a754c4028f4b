package bpftrace

import "kprobelab/internal/script"

// binaryOps are the operators on unsigned integers. Division and the shift to the right are unsigned for all integers.
var binaryOps = map[string]script.Op{
	"+": script.Add, "-": script.Sub, "*": script.Mul, "/": script.DivU, "%": script.ModU, "<<": script.Shl, ">>": script.ShrU, "&": script.And,
	"|": script.Or, "^": script.Xor, "==": script.Eq, "!=": script.Ne, "<": script.LtU, "<=": script.LeU, ">": script.GtU, ">=": script.GeU,
	"&&": script.AndAlso, "||": script.OrElse,
}

// signedOps are the operators that differ for signed integers.
var signedOps = map[string]script.Op{"<": script.Lt, "<=": script.Le, ">": script.Gt, ">=": script.Ge}

// grows are the operators whose result may have more bits than their operands.
var grows = map[string]bool{"+": true, "-": true, "*": true, "<<": true}

// compares are the comparisons; their result has one bit.
var compares = map[string]bool{"==": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true}

func (g *generator) binop(n *node) value {
	if g.newest() {
		return g.newestBinop(n)
	}
	l, r := n.kids[0], n.kids[1]
	out := value{t: n.typ}
	if compares[n.text] && l.typ.Kind != String && l.typ.Kind != Array {
		out.width = 1 // of texts and arrays it is 64 bits
	}
	op := binaryOps[n.text]
	v, w := g.loaded(l), g.loaded(r)
	if v.x.Type() != w.x.Type() || v.x.Type() == script.String && op != script.Eq && op != script.Ne {
		g.fail(n.at, "the operator %s cannot be used here", n.text)
	}
	x, y := v.x, w.x
	switch {
	case x.Type() == script.String || n.text == "&&" || n.text == "||":
	case l.typ.Kind == Pointer || r.typ.Kind == Pointer:
		x, y = pointerOperands(n, x, y)
	default:
		// Both get the width of the wider one, each by its own sign.
		bits := n.typ.slot()
		x, y = convert(x, v.bits(), bits, l.typ.Signed), convert(y, w.bits(), bits, r.typ.Signed)
		if s, ok := signedOps[n.text]; ok && l.typ.Signed && r.typ.Signed {
			op, x, y = s, convert(x, bits, 64, true), convert(y, bits, 64, true)
		}
		if !compares[n.text] {
			out.width = bits
		}
	}
	out.x = script.Binary{Op: op, X: x, Y: y, Near: g.near(n.at)}
	if grows[n.text] {
		out.x = script.Low(out.x, out.bits())
	}
	return out
}

// pointerOperands returns the operands of an operator on a pointer. For + and - it multiplies the integer by the
// size of the pointer's target.
func pointerOperands(n *node, x, y script.Expr) (script.Expr, script.Expr) {
	l, r := n.kids[0].typ, n.kids[1].typ
	switch {
	case n.text != "+" && n.text != "-":
	case l.Kind == Pointer && r.isInt():
		y = times(y, l.target().Size)
	case r.Kind == Pointer && l.isInt():
		x = times(x, r.target().Size)
	}
	return x, y
}

func times(x script.Expr, n int) script.Expr {
	if n <= 1 {
		return x
	}
	return script.Binary{Op: script.Mul, X: x, Y: script.Number(n)}
}
