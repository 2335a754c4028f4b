package bpftrace

import "kprobelab/internal/script"

// bpftrace computes integers in the widths of their types (docs/bpftrace.md, "Integers"). An expression of
// the core has 64 bits, so a value of fewer is held with zeros above them, and each operation cuts its result.

// bits returns the number of bits of an integer.
func (v value) bits() int {
	if v.width == 0 {
		return 64
	}
	return v.width
}

// convert changes the width of a number. A wider number is extended by the sign, a narrower one has the low bits.
func convert(x script.Expr, from, to int, signed bool) script.Expr {
	switch {
	case to < from:
		return script.Low(x, to)
	case to == from || !signed:
		return x
	}
	return script.Low(script.Signed(x, from), to)
}

// printed returns the number that is printed for n: n cut to the bytes of the type, with the type's sign.
func (t *Type) printed(n int64) int64 {
	bits := 8 * t.Size
	switch {
	case bits == 0 || bits >= 64:
		return n
	case t.Signed:
		return script.Extend(n, bits)
	}
	return n & script.Mask(bits)
}

// newest reports whether the script is of 0.27.
func (g *generator) newest() bool { return g.c.o.Language.newest() }

// slot returns the number of bits of a place for a value of the type.
func (t *Type) slot() int {
	if t.isInt() && t.Size > 0 && t.Size < 8 {
		return 8 * t.Size
	}
	return 64
}

// wide is an integer with 64 bits, by the sign of its type.
func (g *generator) wide(v value) script.Expr {
	return convert(v.x, v.bits(), 64, v.t.Signed)
}

// stored is an integer as it is put into a place that has been made 0: so many bits.
func stored(v value, bits int) script.Expr { return convert(v.x, v.bits(), bits, false) }

// setVariable returns the content of a variable after v is stored in it. If v has fewer bytes than the variable,
// the bytes above keep their content.
func (g *generator) setVariable(to script.Local, t *Type, v value) script.Expr {
	if g.newest() {
		return convert(v.x, v.bits(), t.slot(), v.t.Signed)
	}
	width := (v.bits() + 7) &^ 7
	if width >= t.slot() {
		return script.Low(v.x, t.slot())
	}
	kept := script.Binary{Op: script.And, X: to, Y: script.Number(script.Mask(t.slot()) &^ script.Mask(width))}
	return script.Binary{Op: script.Or, X: kept, Y: v.x}
}

// fitted is a tuple as another type of tuple has it: its integers get that one's width, by their own signs.
func (g *generator) fitted(x script.Expr, from, to *Type) script.Expr {
	if from.Kind != TupleKind || !from.differs(to) {
		return x
	}
	if made, ok := x.(script.Tuple); ok && len(made.Parts) == len(to.Fields) {
		var parts []script.Expr
		for i, p := range made.Parts {
			parts = append(parts, g.fittedPart(p, from.Fields[i], to.Fields[i]))
		}
		return script.Tuple{Parts: parts}
	}
	held := g.local(script.String)
	var whole script.Expr = script.Assign{To: held, Op: script.Set, X: x}
	var parts []script.Expr
	for i := range to.Fields {
		parts = append(parts, g.fittedPart(script.Part{X: whole, Layout: from.layout(), N: i}, from.Fields[i], to.Fields[i]))
		whole = held
	}
	return script.Tuple{Parts: parts}
}

func (g *generator) fittedPart(x script.Expr, from, to *Type) script.Expr {
	switch {
	case from.Kind == TupleKind && to.Kind == TupleKind:
		return g.fitted(x, from, to)
	case from.isInt():
		return script.Low(convert(x, from.slot(), 64, from.Signed), to.slot())
	}
	return x
}

// differs reports whether integers in a tuple have other widths than in another type of tuple.
func (t *Type) differs(o *Type) bool {
	if t.Kind != TupleKind || o.Kind != TupleKind || len(t.Fields) != len(o.Fields) {
		return t.isInt() && o.isInt() && t.slot() != o.slot()
	}
	for i, f := range t.Fields {
		if f.differs(o.Fields[i]) {
			return true
		}
	}
	return false
}
