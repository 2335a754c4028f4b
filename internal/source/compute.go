package source

import (
	"debug/dwarf"

	"kprobelab/internal/bounded"
	"kprobelab/internal/source/formula"
)

// entry is an entry of the stack of DWARF's expressions (DWARF 5, 2.5.1). The generic type is 64
// bits wide; its numbers count as signed in operations for which that matters.
type entry struct {
	*formula.Formula
	size   int64
	signed bool
}

func generic(f *formula.Formula) entry { return entry{f, word, true} }

// onTwo are the operations on two, by their codes; for unsigned types the second.
var onTwo = map[byte][2]formula.Op{
	opAnd: {formula.And, formula.And}, opDiv: {formula.Div, formula.DivU}, opMinus: {formula.Sub, formula.Sub}, opMod: {formula.ModU, formula.ModU},
	opMul: {formula.Mul, formula.Mul}, opOr: {formula.Or, formula.Or}, opPlus: {formula.Add, formula.Add},
	opShl: {formula.Shl, formula.Shl}, opShr: {formula.ShrU, formula.ShrU}, opShra: {formula.Shr, formula.Shr}, opXor: {formula.Xor, formula.Xor},
	opEq: {formula.Eq, formula.Eq}, opGe: {formula.Ge, formula.GeU}, opGt: {formula.Gt, formula.GtU},
	opLe: {formula.Le, formula.LeU}, opLt: {formula.Lt, formula.LtU}, opNe: {formula.Ne, formula.Ne},
}

// formula makes a formula of operations. It is nil if an operation is unknown here: jumps, calls,
// floating-point numbers, registers as they were at the entry.
func (p *Place) formula(v *node, ops []op) *formula.Formula {
	var stack []entry
	for _, o := range ops {
		var ok bool
		if stack, ok = p.compute(v, stack, o); !ok {
			return nil
		}
	}
	if len(stack) == 0 || nodes(stack[len(stack)-1].Formula, bounded.FormulaNodes) > bounded.FormulaNodes {
		return nil
	}
	return stack[len(stack)-1].Formula
}

// nodes counts the operations of a formula up to a limit.
func nodes(f *formula.Formula, most int) int {
	if f == nil || most < 0 {
		return 0
	}
	n := 1 + nodes(f.X, most-1)
	return n + nodes(f.Y, most-n)
}

// compute makes one operation.
func (p *Place) compute(v *node, stack []entry, o op) ([]entry, bool) {
	top := len(stack) - 1
	if two, ok := onTwo[o.code]; ok {
		if top < 1 {
			return nil, false
		}
		return append(stack[:top-1], calculate(o.code, two, stack[top-1], stack[top])), true
	}
	if made, ok := p.start(v, o); ok {
		return append(stack, made), true
	}
	if top < 0 {
		return nil, false
	}
	switch x := stack[top]; o.code {
	case opDup:
		return append(stack, x), true
	case opDrop:
		return stack[:top], true
	case opOver, opPick:
		n := top - int(o.a)
		if o.code == opOver {
			n = top - 1
		}
		if n < 0 || n > top {
			return nil, false
		}
		return append(stack, stack[n]), true
	case opSwap:
		if top < 1 {
			return nil, false
		}
		stack[top], stack[top-1] = stack[top-1], x
		return stack, true
	case opRot:
		if top < 2 {
			return nil, false
		}
		stack[top], stack[top-1], stack[top-2] = stack[top-1], stack[top-2], x
		return stack, true
	default:
		changed, ok := v.change(x, o)
		stack[top] = changed
		return stack, ok
	}
}

// start returns the value that an operation puts on the stack, if the operation takes none from it.
func (p *Place) start(v *node, o op) (entry, bool) {
	if (o.code == opRegvalType || o.code == opGNURegvalType) && named(int(o.a)) {
		return v.cut(formula.In(int(o.a), 0), o.b)
	}
	if o.code == opConstType || o.code == opGNUConstType {
		return v.cut(formula.Of(fixed(o.data, false)), o.a)
	}
	at := p.simple(v, o)
	if o.code == opEntryValue || o.code == opGNUEntryValue {
		at = p.entryValue(v, o)
	}
	switch {
	case at.Kind == Register && len(o.data) > 0 && named(at.Reg):
		return generic(formula.In(at.Reg, 0)), true
	case at.Kind == Memory && named(at.Reg):
		return generic(formula.In(at.Reg, at.Offset)), true
	case at.Kind == Static && at.Addr != 0:
		return generic(formula.Of(int64(at.Addr) + at.Offset)), true
	case isConst(o):
		return generic(formula.Of(o.a)), true
	}
	return entry{}, false
}

// named reports a register that probes have.
func named(register int) bool { return register >= 0 && register < registers }

// loadable reports a size of numbers in memory.
func loadable(size int64) bool { return size == 1 || size == 2 || size == 4 || size == 8 }

// change is the top of the stack after an operation on it alone.
func (n *node) change(x entry, o op) (entry, bool) {
	switch o.code {
	case opPlusUconst:
		return x.narrow(formula.Two(formula.Add, x.Formula, formula.Of(o.a))), true
	case opDeref:
		return generic(formula.At(x.Formula, word)), true
	case opDerefSize:
		return generic(formula.At(x.Formula, o.a)), loadable(o.a)
	case opDerefType, opGNUDerefType:
		y, ok := n.cut(formula.At(x.Formula, o.a), o.b)
		return y, ok && loadable(o.a)
	case opNeg:
		return x.narrow(formula.One(formula.Neg, x.Formula)), true
	case opNot:
		return x.narrow(formula.One(formula.Complement, x.Formula)), true
	case opConvert, opGNUConvert, opReinterpret, opGNUReinterpret:
		return n.cut(x.Formula, o.a)
	}
	return x, false
}

// cut cuts a number to a base type, by the type's offset in the unit; 0 is the generic type.
func (n *node) cut(f *formula.Formula, at int64) (entry, bool) {
	if at == 0 {
		return generic(f), true
	}
	base := n.unit.node(dwarf.Offset(n.unit.h.start + uint64(at)))
	if base == nil || base.Tag != dwarf.TagBaseType {
		return entry{}, false
	}
	t := base.asType()
	if t.Float || t.Bytes <= 0 || t.Bytes > word {
		return entry{}, false
	}
	x := entry{size: t.Bytes, signed: t.Signed}
	return x.narrow(f), true
}

// narrow is a result of the entry's type.
func (x entry) narrow(f *formula.Formula) entry {
	x.Formula = formula.Narrow(f, x.size, x.signed)
	return x
}

// calculate is an operation on two of one type.
func calculate(code byte, of [2]formula.Op, x, y entry) entry {
	op := of[0]
	if !x.signed {
		op = of[1]
	}
	a := x.Formula
	if code == opShr && x.signed && x.size < word {
		a = formula.Narrow(a, x.size, false) // a logical shift takes no signs in
	}
	f := formula.Two(op, a, y.Formula)
	if code >= opEq { // a comparison
		return generic(f)
	}
	return x.narrow(f)
}
