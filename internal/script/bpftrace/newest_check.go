package bpftrace

import (
	"slices"
	"strings"

	"kprobelab/internal/script"
)

// newestType finds the type of an expression that 0.23 does not have.
func (c *checker) newestType(n *node) *Type {
	switch n.op {
	case nBool:
		return boolT
	case nBlock:
		return c.blockType(n)
	case nIfValue:
		return c.ifType(n)
	case nRecord:
		return c.recordType(n)
	}
	return c.addressType(n)
}

func (c *checker) blockType(n *node) (t *Type) {
	s := scope{of: n}
	c.scopes = append(c.scopes, s)
	for i, k := range n.body {
		c.statement(k)
		c.warnUnreachable(k, i < len(n.body)-1)
	}
	t = none
	if len(n.kids) > 0 {
		n.kids[0].forMap, n.kids[0].forVar, n.kids[0].forKey = n.forMap, n.forVar, n.forKey
		t = c.expr(n.kids[0])
	}
	c.scopes = c.scopes[:len(c.scopes)-1]
	return t
}

func (c *checker) ifType(n *node) *Type {
	cond := c.expr(n.kids[0])
	if c.final && !cond.isInt() && cond.Kind != Pointer {
		c.error(n.at, "Invalid condition in if(): %s", cond)
	}
	l := c.expr(n.kids[1])
	if len(n.kids) < 3 {
		return none
	}
	r := c.expr(n.kids[2])
	if l.isInt() && r.isInt() {
		return l.promoted(r)
	}
	return l.widen(r)
}

func (c *checker) recordType(n *node) *Type {
	var list []*Type
	for _, k := range n.kids {
		t := c.expr(k)
		if t.stored() == 0 {
			return n.typ // what it was in an earlier pass
		}
		list = append(list, t.read())
	}
	made := tuple(list)
	made.Names = n.names
	return made
}

// reorder puts the fields of a record into the order of a type that has the same ones.
func (n *node) reorder(t *Type) {
	if len(t.Names) != len(n.names) || slices.Equal(t.Names, n.names) {
		return
	}
	var kids []*node
	for _, name := range t.Names {
		i := slices.Index(n.names, name)
		if i < 0 {
			return
		}
		kids = append(kids, n.kids[i])
	}
	n.names, n.kids = t.Names, kids
}

// addressType is the address of a variable or a map. The checker reads only the value at that address.
func (c *checker) addressType(n *node) *Type {
	x := n.kids[0]
	if x.op != nVar && x.op != nMap {
		c.error(n.at, "syntax: address-of operator (&) can only be used on a map or variable")
		return none
	}
	c.error(n.at, "the address of a variable or a map is not there: the script's memory is not the kernel's")
	return none
}

// reach goes through the pointers before a member, and finds a record's member by its name. It returns the type whose
// member is meant.
func (c *checker) reach(n *node, t *Type) *Type {
	for t.Kind == Pointer && n.op == nField {
		d := &node{op: nDeref, kids: []*node{n.kids[0]}, at: n.at}
		n.kids[0] = d
		t = c.expr(d)
	}
	if t.Kind != TupleKind || n.op != nField {
		return t
	}
	i := slices.Index(t.Names, n.text)
	if i < 0 {
		return t
	}
	n.op, n.num = nIndex, uint64(i)
	return t
}

// indexed is an element of a tuple, or a character of a string.
func (c *checker) indexed(n *node, t *Type) *Type {
	i := n.kids[1]
	v, ok := c.number(i)
	if t.Kind == TupleKind {
		if !ok || v < 0 {
			c.error(n.at, "Tuples must be indexed with a constant and non-negative integer")
			return none
		}
		n.op, n.num, n.kids = nIndex, uint64(v), n.kids[:1]
		return c.typeOf(n)
	}
	if c.final && ok && v >= int64(t.Size) {
		c.error(n.at, "the index %d is out of bounds for array of size %d", v, t.Size)
	}
	return integer(1, false)
}

// newestBinop is the type of an operation: a comparison gives a truth value, all others at least 64 bits.
func (c *checker) newestBinop(n *node, l, r *Type) *Type {
	logical := n.text == "&&" || n.text == "||"
	equal := n.text == "==" || n.text == "!="
	ints := (l.isInt() || l.castable()) && (r.isInt() || r.castable())
	var t *Type
	switch {
	case compares[n.text] || logical:
		t = boolT
	case n.text == "-":
		t = int64T
	case n.text == "<<" || n.text == ">>":
		t = integer(8, l.Signed)
	default:
		signed := l.Signed && r.Signed
		if l.Signed != r.Signed {
			x, at := n.kids[0], l
			if r.Signed {
				x, at = n.kids[1], r
			}
			unsigned := l
			if l.Signed {
				unsigned = r
			}
			v, literal := c.number(x)
			signed = !(literal && v >= 0) && !(unsigned.Size == 8 && at.Size == 8 && false)
		}
		t = integer(8, signed)
	}
	t = withSpace(t, l.Space)
	if l.Space == script.AnySpace {
		t = withSpace(t, r.Space)
	} else if r.Space != script.AnySpace && r.Space != l.Space {
		t = withSpace(t, script.AnySpace)
	}
	switch {
	case !c.final || ints:
	case logical && (l.isInt() || l.Kind == Pointer) && (r.isInt() || r.Kind == Pointer):
	case equal && l.Kind == r.Kind && (l.Kind == String || l.Kind == TupleKind || l.Kind == Array):
		if l.Kind == String {
			c.warnStrings(n, l, r)
		}
	case l.Kind != r.Kind || !equal:
		c.error(n.at, "Type mismatch for '%s': comparing %s with %s", n.text, l, r)
		c.error(n.kids[0].at, "left (%s)", l)
		c.error(n.kids[1].at, "right (%s)", r)
	}
	return t
}

// forRange checks a loop over a range.
func (c *checker) forRange(n *node) {
	v := n.kids[0]
	if c.find(v.text) != nil {
		c.error(v.at, "Loop declaration shadows existing variable: %s", v.text)
	}
	from, to := c.expr(n.kids[1]), c.expr(n.kids[2])
	if c.final && !from.isInt() && !from.castable() {
		c.error(n.kids[1].at, "Loop range requires an integer for the start value")
	}
	if c.final && !to.isInt() && !to.castable() {
		c.error(n.kids[2].at, "Loop range requires an integer for the end value")
	}
	s := scope{of: n}
	one := c.vars[s][v.text]
	if one == nil {
		one = c.declare(s, &variable{name: v.text, resizable: true, assigned: true})
		c.slot(one)
	}
	one.typ = int64T
	if from.isInt() && to.isInt() {
		one.typ = integer(8, from.promoted(to).Signed)
	}
	v.variable = one
	c.loops++
	c.looping++
	c.body(s, n.body)
	c.looping--
	c.loops--
}

// upcast gives a variable a type that holds a further value, or checks that the value fits the declared type.
func (c *checker) upcast(n *node, v *variable, x *node, t *Type) {
	switch value, literal := c.number(x); {
	case literal && x.op == nInt && value >= 0 && !x.negative && holds(v.typ, x):
	case v.declared != nil && !v.resizable:
		if x.op == nInt && !holds(v.typ, x) || x.negative && !v.typ.Signed {
			c.error(n.at, "Type mismatch for %s: trying to assign value '%d' which does not fit into the variable of type '%s'", v.name, int64(x.num), v.typ)
		}
	case v.flexible && !t.Signed && t.Size >= v.typ.Size:
		v.typ, v.flexible = t, false
	default:
		v.typ = v.typ.promoted(t)
	}
	if x.op != nInt {
		v.flexible = false
	}
}

// counted gives a variable or a map the type that ++ and -- need.
func (c *checker) counted(n *node, t *Type) {
	if !t.isInt() || t.Size == 8 && n.text == "++" {
		return
	}
	switch x := n.kids[0]; {
	case x.op == nMap && c.maps[x.text] != nil:
		c.maps[x.text].val = int64T
	case x.op == nVar && x.variable.resizable:
		x.variable.typ, x.typ = int64T, int64T
	}
}

// newestIdentifier is a name that is a mode of a stack in a call of one.
func (c *checker) newestIdentifier(n *node) *Type {
	if (c.call == "kstack" || c.call == "ustack" || c.call == "dw_ustack") && (stackModes[n.text] != 0 || n.text == "build_id") {
		n.op = nStackMode
		return &Type{Kind: StackMode, Name: n.text}
	}
	if (c.call == "pid" || c.call == "tid") && (n.text == "init" || n.text == "curr_ns") {
		return int64T
	}
	if c.call == "nsecs" {
		return nil
	}
	if strings.HasPrefix(n.text, "sarg") {
		c.error(n.at, "Unknown identifier: '%s'", n.text)
		return none
	}
	if words[n.text] == tBuiltin || words[n.text] == tCallBuiltin {
		n.op = nBuiltin
		return c.builtin(n)
	}
	if _, _, ok := c.enumerator(n.text); !ok && words[n.text] != tCall {
		c.error(n.at, "Unknown identifier: '%s'", strings.SplitN(n.text, "#", 2)[0])
		return none
	}
	return nil
}
