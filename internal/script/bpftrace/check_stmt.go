package bpftrace

import (
	"fmt"
	"iter"
	"strings"
)

func (c *checker) statement(n *node) {
	switch n.op {
	case sExpr:
		c.expr(n.kids[0])
	case sAssign:
		if n.kids[0].op == nMap {
			c.assignMap(n)
		} else {
			c.assignVar(n)
		}
	case sLet:
		c.let(n)
	case sIf:
		t := c.expr(n.kids[0])
		if c.final && !t.isInt() && t.Kind != Pointer {
			c.error(n.at, "Invalid condition in if(): %s", t.kind())
		}
		if n.kids[0].comptime && c.pruned(n) {
			return
		}
		c.body(scope{of: n}, n.body)
		c.body(scope{of: n, other: true}, n.other)
	case sWhile:
		c.expr(n.kids[0])
		c.loops++
		c.body(scope{of: n}, n.body)
		c.loops--
	case sUnroll:
		c.unroll(n)
	case sFor:
		if len(n.kids) == 3 {
			c.forRange(n)
		} else {
			c.forEach(n)
		}
	case sJump:
		for _, k := range n.kids {
			c.expr(k)
		}
		if n.text != "return" && c.loops == 0 {
			c.error(n.at, "%s used outside of a loop", n.text)
		}
	}
}

// number is an integer that is known beforehand.
func (c *checker) number(n *node) (int64, bool) {
	switch n.op {
	case nInt:
		return int64(n.num), true
	case nParam:
		if int(n.num) > len(c.o.Args) {
			return 0, true
		}
		text := c.param(int(n.num))
		v, err := parseSigned(text)
		if err == "" {
			return v, true
		}
		c.atOnce(n.at, "$%d used numerically but given \"%s\"", n.num, text)
	case nParamCount:
		return int64(len(c.o.Args)), true
	}
	return 0, false
}

func parseSigned(s string) (int64, string) {
	t, minus := strings.CutPrefix(s, "-")
	if strings.Contains(t, "_") {
		return 0, trailing // only a script may part digits
	}
	v, err := parseUint(t)
	if minus {
		v = -v
	}
	return int64(v), err
}

func (c *checker) unroll(n *node) {
	c.expr(n.kids[0])
	v, ok := c.number(n.kids[0])
	switch {
	case !ok:
		c.error(n.at, "invalid unroll value")
		return
	case v > 100:
		c.error(n.at, "unroll maximum value is 100")
	case v < 1:
		c.error(n.at, "unroll minimum value is 1")
	}
	n.num = uint64(v)
	c.body(scope{of: n}, n.body)
}

func (c *checker) forEach(n *node) {
	v, m := n.kids[0], n.kids[1]
	if c.find(v.text) != nil {
		c.error(v.at, "Loop declaration shadows existing variable: %s", v.text)
	}
	if m.op != nMap {
		c.error(m.at, "Loop expression must be a map")
		return
	}
	if m.typ != nil && m.typ.multiple() {
		c.error(m.at, "Loop expression does not support type: %s", m.typ)
		return
	}
	for j := range inside(n.body, sJump) {
		if !c.o.Language.newest() {
			c.error(j.at, "'%s' statement is not allowed in a for-loop", j.text)
		}
	}
	m.skip = true
	c.expr(m)
	a := c.maps[m.text]
	if c.errors() > 0 || a == nil || a.val == nil {
		return
	}
	if a.key == nil || a.key.Kind == None {
		if c.final {
			c.error(m.at, "Maps used as for-loop expressions must have keys to iterate over")
		}
		return
	}
	s := scope{of: n}
	one := c.vars[s][v.text]
	if one == nil {
		one = c.declare(s, &variable{name: v.text, resizable: true, assigned: true})
		c.slot(one)
	}
	one.typ = tuple([]*Type{a.key.read(), a.val.read()})
	v.variable = one
	c.loops++
	c.looping++
	c.body(s, n.body)
	c.looping--
	c.loops--
	for b := range inside(n.body, nBuiltin) {
		if b.typ != nil && b.typ.Context || b.text == "retval" || strings.HasPrefix(b.text, "arg") && b.text != "args" {
			c.error(b.at, "'%s' builtin is not allowed in a for-loop", b.text)
		}
	}
}

// inside are the nodes of a kind in a block and in the ones inside it.
func inside(list []*node, op op) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		var walk func(list []*node) bool
		walk = func(list []*node) bool {
			for _, n := range list {
				if n.op == op && !yield(n) || !walk(n.kids) || !walk(n.body) || !walk(n.other) {
					return false
				}
			}
			return true
		}
		walk(list)
	}
}

func (c *checker) let(n *node) {
	name := n.kids[0].text
	t, sized := none, false
	if n.ctype != nil {
		t, _ = c.named(n.ctype)
		if t.sizeless() && c.o.Language.newest() {
			t = boolT
		}
		if t.aggregate() || t.Kind == StackMode || t.Kind == Void {
			c.error(n.at, "Invalid variable declaration type: %s", t)
		}
		sized = t.Size != 0 || t.sizeless()
	}
	if c.pass == 1 {
		for _, s := range c.scopes {
			if v := c.vars[s][name]; v != nil && v.declared != nil && v.declared != n {
				c.error(n.at, "Variable %s was already declared. Variable shadowing is not allowed.", name)
				c.error(v.declared.at, "Initial declaration")
			}
		}
	}
	switch v := c.find(name); {
	case v == nil && c.pass == 1:
		c.slot(c.declare(c.inner(), &variable{name: name, typ: t, resizable: !sized, declared: n}))
	case v != nil && v.declared == nil && c.pass == 1:
		c.error(n.at, "Variable declarations need to occur before variable usage or assignment. Variable: %s", name)
	case v != nil && !v.assigned && c.final:
		c.warn(n.at, "Variable %s never assigned to.", name)
		if v.typ.sizeless() {
			c.error(n.at, noBool)
		}
	}
}

// noBool is said where bpftrace 0.23.2 dies.
const noBool = "a value of type 'bool' cannot be made: bpftrace gives it no size"

func (c *checker) assignable(to, x *node) bool {
	if x.op != nMap {
		return true
	}
	if x.typ.multiple() {
		return false
	}
	if to.op == nMap {
		a := c.maps[to.text]
		if x.typ.castable() && (a == nil || a.val == nil) {
			return false
		}
	}
	return true
}

func (c *checker) assignMap(n *node) {
	m, x := n.kids[0], n.kids[1]
	m.forMap = true
	c.expr(m)
	x.forMap = true
	if a := c.maps[m.text]; x.op == nRecord && a != nil && a.val != nil {
		x.reorder(a.val)
	}
	c.expr(x)
	if !c.assignable(m, x) {
		hint := map[Kind]string{Count: "count()", Sum: "sum(retval)", Min: "min(retval)", Max: "max(retval)", Avg: "avg(retval)", Hist: "hist(retval)", Lhist: "lhist(rand %10, 0, 10, 1)", Stats: "stats(arg2)", Tseries: "tseries(rand %10, 10s, 1)"}
		c.error(n.at, "Map value '%s' cannot be assigned from one map to another. The function that returns this type must be called directly e.g. `%s = %s;`.", x.typ, m.text, hint[x.typ.Kind])
		if x.typ.castable() {
			c.problems.list[len(c.problems.list)-1].Hint = fmt.Sprintf("Add a cast to integer if you want the value of the aggregate, e.g. `%s = (int64)%s;`.", m.text, x.text)
		}
	}
	t := x.typ
	if a := c.maps[m.text]; a != nil && a.val != nil && a.val.isInt() && x.op == nMap && t.castable() {
		t = a.val
	}
	c.setMap(m, t)
	a := c.maps[m.text]
	switch t.Kind {
	case Record:
		if a.val.Kind == Record && a.val.Name != t.Name {
			c.error(n.at, "Type mismatch for %s: trying to assign value of type '%s' when map already contains a value of type '%s'", m.text, t.Name, a.val.Name)
		}
	case String:
		const truncated = "String size mismatch: %d < %d. The value may be truncated."
		switch {
		case a.val.Size >= t.Size:
		case a.val.Kind != String: // it is no warning that counts: the types differ
			c.problems.warn(n.at, truncated, a.val.Size, t.Size)
		default:
			c.warn(n.at, truncated, a.val.Size, t.Size)
		}
	case Buffer:
		if a.val.stored() > t.stored() {
			c.error(n.at, "Buffer size mismatch: %d != %d.", a.val.stored(), t.stored())
		} else if a.val.stored() < t.stored() {
			c.problems.warn(n.at, "Buffer size mismatch: %d != %d. The value may be truncated.", a.val.stored(), t.stored())
		}
	case TupleKind:
		if c.final && !t.fits(a.val) && !(c.o.Language.newest() && t.same(a.val)) {
			c.error(n.at, "Tuple type mismatch: %s != %s.", a.val, t)
		}
	case Array:
		if !a.val.equal(t) {
			c.error(n.at, "Array type mismatch: %s != %s.", a.val, t)
		}
	}
	if t.Context {
		c.error(n.at, "context cannot be assigned to a map")
	}
}

// setMap takes a type for a map's values.
func (c *checker) setMap(m *node, t *Type) {
	a := c.array(m.text)
	switch {
	case a.val == nil:
		a.val = t
		if t.isInt() && t.Size < 8 && !t.Bool {
			wide := *t
			wide.Size = 8
			a.val = &wide
		}
		return
	case a.val.Kind == None:
		c.unresolved++
		if c.final {
			c.error(m.at, "Undefined map: %s", m.text)
			return
		}
		a.val = t
	case a.val.kind() != t.kind() || a.val.Bool != t.Bool:
		c.error(m.at, "Type mismatch for %s: trying to assign value of type '%s' when map already contains a value of type '%s'", m.text, t, a.val)
	}
	if a.val.Made != None && a.val.Made == t.Kind {
		a.val = t // a copy of an aggregate, which the map's own function goes on with
	}
	a.val = a.val.widen(t)
	if c.o.Language.newest() {
		a.val = a.val.promoted(t)
	}
}

func (c *checker) assignVar(n *node) {
	name, x := n.kids[0].text, n.kids[1]
	x.forVar = true
	if v := c.find(name); x.op == nRecord && v != nil {
		x.reorder(v.typ)
	}
	c.expr(x)
	for _, l := range n.other {
		c.let(l)
	}
	if !c.assignable(n.kids[0], x) {
		c.error(n.at, "Map value '%s' cannot be assigned to a scratch variable.", x.typ)
		return
	}
	t := x.typ
	if x.op == nMap && t.castable() {
		t = int64T
	}
	v := c.find(name)
	if v == nil {
		v = c.declare(c.inner(), &variable{name: name, typ: t, resizable: true, assigned: true, flexible: x.op == nInt && !x.negative})
		c.slot(v)
	} else {
		c.reassign(n, v, x, t)
	}
	n.kids[0].variable, n.kids[0].typ = v, v.typ
	if c.final && v.typ.Kind == None {
		c.error(x.at, "Invalid expression for assignment: %s", v.typ)
	}
}

func (c *checker) reassign(n *node, v *variable, x *node, t *Type) {
	mismatch := false
	switch stored := v.typ; {
	case stored.Kind == None:
		v.typ = t
	case c.o.Language.newest() && stored.isInt() && t.isInt() && stored.Bool == t.Bool:
		c.upcast(n, v, x, t)
	case !stored.same(t):
		if t.Kind != None || c.final {
			mismatch = true
		} else {
			c.unresolved++
		}
	case t.Kind == String:
		if v.resizable {
			v.typ = stored.widen(t)
		} else {
			mismatch = !t.fits(stored)
		}
	case stored.isInt() && x.op == nInt:
		if stored.equal(t) {
			break
		}
		if x.negative && !stored.Signed {
			mismatch = true
		} else if !holds(stored, x) {
			c.error(n.at, "Type mismatch for %s: trying to assign value '%d' which does not fit into the variable of type '%s'", v.name, uint64(x.num), stored)
			v.assigned = true
			return
		} else {
			n.kids[1] = &node{op: nCast, at: x.at, ctype: &typeName{name: integer(stored.Size, stored.Signed).String(), at: x.at}, kids: []*node{x}}
		}
	case stored.isInt() && x.op == nParam:
		if !stored.equal(t) {
			n.kids[1] = &node{op: nCast, at: x.at, typ: stored, ctype: &typeName{name: integer(stored.Size, stored.Signed).String(), at: x.at}, kids: []*node{x}}
		}
	case stored.isInt():
		if stored.Signed != t.Signed {
			mismatch = true
		} else if !t.fits(stored) {
			c.error(n.at, "Integer size mismatch. Assignment type '%s' is larger than the variable type '%s'.", t, stored)
		}
	case t.Kind == Buffer && stored.Size != t.Size:
		may := "be truncated"
		if stored.Size > t.Size {
			may = "contain garbage"
		}
		c.problems.warn(n.at, "Buffer size mismatch: %d != %d. The value may %s.", stored.stored(), t.stored(), may)
	case t.Kind == TupleKind:
		v.typ = stored.widen(t)
		if c.o.Language.newest() {
			v.typ = v.typ.promoted(t)
			break
		}
		mismatch = c.final && !t.fits(v.typ)
	}
	if mismatch {
		when := "already has a type"
		if v.assigned {
			when = "already contains a value of type"
		}
		c.error(n.at, "Type mismatch for %s: trying to assign value of type '%s' when variable %s '%s'", v.name, t, when, v.typ)
		return
	}
	if !v.assigned && c.o.Language.newest() {
		v.assigned = true
		if v.declared == nil || v.resizable {
			v.typ = t
		}
	}
	if !v.assigned {
		// The first value gives its type to a variable that was declared with another one; a literal
		// gives its own, and is cast to the declared one, as bpftrace 0.23.2 has it.
		v.typ, v.assigned = t, true
	}
}

// holds reports whether a literal fits into an integer's type.
func holds(t *Type, x *node) bool {
	bits := 8 * t.Size
	if x.negative {
		return int64(x.num) >= -1<<(bits-1)
	}
	if t.Signed {
		bits--
	}
	return bits >= 64 || x.num < 1<<bits
}
