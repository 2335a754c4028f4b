package bpftrace

import (
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
)

var stackModes = map[string]int{"bpftrace": 1, "perf": 2, "raw": 3}

// stackLimit is the tool's message about a tuple that is too large, in the compiler's words.
const stackLimit = "Looks like the BPF stack limit is exceeded. Please move large on stack variables into BPF per-cpu array map."

// expr finds the type of an expression.
func (c *checker) expr(n *node) *Type {
	n.typ = c.typeOf(n)
	if n.typ == nil {
		n.typ = none
	}
	return n.typ
}

func (c *checker) typeOf(n *node) *Type {
	switch n.op {
	case nBool, nBlock, nIfValue, nRecord, nAddress:
		return c.newestType(n)
	case nInt:
		if c.o.Language.newest() {
			return smallest(n)
		}
		if n.negative || n.num <= 1<<31-1 {
			return int64T
		}
		return uint64T
	case nString:
		// A format, and a path that is looked up while the script is read, may be as long as they like.
		free := c.call == "printf" && c.argument == 0 || c.call == "cgroupid"
		if !free && len(n.text) > c.maxStr-1 {
			c.error(n.at, "String is too long (over %d bytes): %s", c.maxStr, n.text)
		}
		return withSpace(stringOf(len(n.text)+1), script.KernelSpace)
	case nStackMode:
		return &Type{Kind: StackMode, Name: n.text}
	case nParam:
		return c.parameter(n)
	case nParamCount:
		if c.call == "str" {
			c.error(n.at, "use $#, not str($#)")
		}
		return int64T
	case nIdent:
		return c.identifier(n)
	case nBuiltin:
		return c.builtin(n)
	case nMap:
		return c.mapRead(n)
	case nVar:
		v := c.find(n.text)
		if v == nil {
			c.error(n.at, "Undefined or undeclared variable: %s", n.text)
			return none
		}
		if n.variable = v; !v.assigned { // in each pass
			c.problems.warn(n.at, "Variable used before it was assigned: %s", n.text)
		}
		return v.typ
	case nTuple:
		var list []*Type
		for _, k := range n.kids {
			t := c.expr(k)
			if t.stored() == 0 {
				return n.typ // what it was in an earlier pass
			}
			if t.multiple() {
				c.error(k.at, "Map type %s cannot exist inside a tuple.", t)
			}
			list = append(list, t.read())
		}
		if made := tuple(list); made.values() <= bounded.TupleValues {
			return made
		}
		c.error(n.at, stackLimit)
		return none
	case nField, nIndex:
		return c.field(n)
	case nArray:
		return c.element(n)
	case nDeref:
		return c.deref(n)
	case nUnary:
		return c.unary(n)
	case nIncr:
		return c.increment(n)
	case nBinary:
		return c.binop(n)
	case nTernary:
		return c.ternary(n)
	case nCast:
		return c.castType(n)
	case nSizeof, nOffset:
		return c.sizeof(n)
	case nCall:
		return c.callType(n)
	}
	return none
}

func (c *checker) mapRead(n *node) *Type {
	var key *Type
	keyIsMap := false
	if len(n.kids) > 0 {
		k := n.kids[0]
		k.forKey = true
		key = c.keyType(c.expr(k), k)
		keyIsMap = k.op == nMap
	}
	a := c.maps[n.text]
	if !n.skip {
		switch {
		case a != nil && a.key != nil && key != nil:
			c.newKey(a, key, n.at)
		case a != nil && a.key != nil:
			if a.key.Kind != None {
				c.error(n.at, "Argument mismatch for %s: trying to access with no arguments when map expects arguments: '%s'", n.text, a.key)
			}
		case key == nil:
			c.array(n.text).key = none
		case !keyIsMap || key.Kind != None:
			c.array(n.text).key = key
		}
	}
	a = c.maps[n.text]
	if a == nil || a.val == nil {
		if c.pass > 1 && !n.forMap {
			c.error(n.at, "Undefined map: %s", n.text)
		}
		c.unresolved++
		return none
	}
	return a.val.owned()
}

// keyType is the type that a key has in a map.
func (c *checker) keyType(t *Type, n *node) *Type {
	switch {
	case t.Kind == TupleKind:
		var list []*Type
		for _, f := range t.Fields {
			list = append(list, c.keyType(f, n))
		}
		made := tuple(list)
		made.Names = t.Names
		return made
	case t.isInt() && t.Bool:
		return t
	case t.isInt():
		wide := *t
		wide.Size, wide.Signed = 8, t.Signed || !c.o.Language.newest()
		return &wide
	case t.castable():
		return t.read()
	case t.multiple():
		c.error(n.at, "%s cannot be used as a map key", t)
	case t.Kind == Pointer && t.Context:
		c.error(n.at, "context cannot be used as a map key")
	case t.Kind == None && c.final:
		c.error(n.at, "Invalid expression for assignment: ")
	}
	return t
}

func (c *checker) newKey(a *array, key *Type, at span) {
	if a.key.same(key) {
		a.key = a.key.widen(key)
		if c.o.Language.newest() {
			a.key = a.key.promoted(key)
			return
		}
	}
	if !c.final {
		return
	}
	valid := a.key.same(key)
	if valid {
		switch a.key.Kind {
		case TupleKind, Integer, String:
			valid = key.fits(a.key)
		default:
			valid = a.key.equal(key)
		}
	}
	switch {
	case valid:
	case a.key.Kind == None:
		c.error(at, "Argument mismatch for %s: trying to access with arguments: '%s' when map expects no arguments", a.name, key)
	default:
		c.error(at, "Argument mismatch for %s: trying to access with arguments: '%s' when map expects arguments: '%s'", a.name, key, a.key)
	}
}

func (c *checker) field(n *node) *Type {
	t := c.expr(n.kids[0])
	if c.o.Language.newest() {
		t = c.reach(n, t)
	}
	what := "field '" + n.text + "'"
	if n.op == nIndex {
		what = "index " + strconv.FormatUint(n.num, 10)
	}
	switch {
	case t.Kind == Pointer:
		c.error(n.at, "Can not access field '%s' on type '%s'. Try dereferencing it first, or using '->'", n.text, t)
		return none
	case t.Kind == TupleKind:
		if n.op == nField {
			c.error(n.at, "Tuples must be indexed with a constant and non-negative integer")
			return none
		}
		if n.num >= uint64(len(t.Fields)) {
			if c.final {
				c.error(n.at, "Invalid tuple index: %d. Found %d elements in tuple.", n.num, len(t.Fields))
			}
			return none
		}
		return t.Fields[n.num]
	case t.Kind != Record:
		if c.final {
			c.error(n.at, "Can not access %s on expression of type '%s'", what, t)
		}
		return none
	case t.Args:
		return c.truthOf(c.argsField(n, t.Space))
	case t.C == nil:
		c.error(n.at, "Unknown struct/union: '%s'", t.Name)
		return none
	}
	m, ok := t.C.Member(n.text)
	if !ok || n.op == nIndex {
		c.error(n.at, "Struct/union of type '%s' does not contain a field named '%s'", t.Name, n.text)
		return none
	}
	return c.truthOf(withSpace(fromC(m.Type), t.Space))
}

// withSpace returns the type t for a value in the memory space.
func withSpace(t *Type, space script.Space) *Type {
	if t.Space == space {
		return t
	}
	c := *t
	c.Space = space
	return &c
}

// spaces maps providers to the memory of their probes' values. bpftrace does not know it for the other providers.
var spaces = map[string]script.Space{
	"kprobe": script.KernelSpace, "kretprobe": script.KernelSpace, "fentry": script.KernelSpace, "fexit": script.KernelSpace,
	"tracepoint": script.KernelSpace, "rawtracepoint": script.KernelSpace, "iter": script.KernelSpace,
	"uprobe": script.UserSpace, "uretprobe": script.UserSpace, "usdt": script.UserSpace,
}

// argsField returns the type of a field of args, whose values are in the memory space.
func (c *checker) argsField(n *node, space script.Space) *Type {
	var found *Type
	for _, pt := range c.probe.points {
		if pt.provider == "tracepoint" && len(pt.events) == 0 {
			if c.k == nil || c.k.Events == nil {
				c.error(n.at, "args of %s: only a booted kernel's dump has the events of tracepoints", pt.raw)
			}
			return none
		}
		if pt.provider == "tracepoint" && strings.HasPrefix(n.text, "common_") {
			c.error(n.at, "BPF does not support accessing common tracepoint fields")
			return none
		}
		for _, e := range pt.events {
			ok := false
			for _, f := range e.Fields {
				if f.Name == n.text {
					ok, found = true, withSpace(fromC(f.Type), space)
				}
			}
			if !ok {
				c.error(n.at, "Struct/union of type 'struct _tracepoint_%s' does not contain a field named '%s'", strings.ReplaceAll(e.Name, ":", "_"), n.text)
				return none
			}
		}
		for _, p := range pt.probes {
			if p.Trace != nil && pt.provider == "rawtracepoint" {
				if i := parameterOf(p, n.text); i >= 0 {
					found = withSpace(fromC(p.Trace.Params[i].Type), space)
				}
				continue
			}
			if pt.provider != "fentry" && pt.provider != "fexit" {
				continue
			}
			at := c.place(p)
			if at == nil {
				c.error(n.at, "Can't find function parameter %s", n.text)
				return none
			}
			v, err := at.Variable(n.text)
			if err != nil {
				c.error(n.at, "Can't find function parameter %s", n.text)
				return none
			}
			found = withSpace(fromC(v.Type), space)
			break
		}
	}
	if found == nil {
		c.error(n.at, "Can't find function parameter %s", n.text)
		return none
	}
	return found
}

func (c *checker) element(n *node) *Type {
	t, i := c.expr(n.kids[0]), c.expr(n.kids[1])
	if c.o.Language.newest() && (t.Kind == TupleKind || t.Kind == String) {
		return c.indexed(n, t)
	}
	if t.Kind != Array && t.Kind != Pointer {
		if c.final {
			c.error(n.at, "The array index operator [] can only be used on arrays and pointers, found %s.", t.kind())
		}
		return none
	}
	if c.final {
		c.index(n, t, i)
	}
	return withSpace(t.target(), t.Space)
}

// index checks what is between the brackets.
func (c *checker) index(n *node, t, i *Type) {
	if t.Kind == Pointer && t.target().Size == 0 {
		c.error(n.at, "The array index operator [] cannot be used on a pointer to an unsized type (void *).")
	}
	switch {
	case !i.isInt() || !n.kids[1].literal():
		c.error(n.at, "The array index operator [] only accepts literal integer indices.")
	case t.Kind == Array:
		switch v, ok := c.number(n.kids[1]); {
		case !ok:
			c.error(n.at, "invalid index expression")
		case t.N != 0 && uint64(v) >= uint64(t.N):
			c.error(n.at, "the index %d is out of bounds for array of size %d", v, t.N)
		}
	}
}

func (c *checker) deref(n *node) *Type {
	t := c.expr(n.kids[0])
	switch {
	case t.Kind == Pointer:
		return withSpace(t.target(), t.Space)
	case t.Kind == Record && t.Context:
		return t
	case t.Kind == Record:
		c.error(n.at, "Can not dereference struct/union of type '%s'. It is not a pointer.", t.Name)
	case t.isInt():
		return uint64T
	case c.final:
		c.error(n.at, "The dereference operator can not be used on expressions of type '%s'", t)
	}
	return none
}

func (c *checker) unary(n *node) *Type {
	t := c.expr(n.kids[0])
	refuse := func() { c.error(n.at, "The %s operator can not be used on expressions of type '%s'", n.text, t) }
	if c.final && !t.isInt() && !(n.text == "!" && t.Kind == Pointer && c.o.Language.newest()) {
		refuse()
	}
	if n.text == "!" && c.o.Language.newest() {
		return boolT
	}
	if n.text == "!" {
		switch size := t.stored(); {
		case t.Kind == None:
			return uint64T
		case size == 0 || size == 1 || size == 2 || size == 4 || size == 8:
			return integer(size, false)
		}
		refuse() // whatever the pass, an integer of that size cannot be made
		if n.typ != nil {
			return n.typ // what it was in an earlier pass
		}
		return none
	}
	if x := n.kids[0]; c.o.Language.newest() && x.op == nInt {
		x.typ = integer(8, t.Signed)
		return integer(8, n.text == "-")
	}
	return integer(8, t.Signed)
}

func (c *checker) increment(n *node) *Type {
	x := n.kids[0]
	if x.op == nMap {
		if a := c.maps[x.text]; a == nil || a.val == nil {
			c.setMap(x, int64T)
		}
	}
	t := c.expr(x)
	if c.o.Language.newest() {
		c.counted(n, t)
	}
	if c.final && !t.isInt() && t.Kind != Pointer {
		c.error(n.at, "The %s (%s) operator can not be used on expressions of type '%s'", n.text, map[bool]string{false: "pre", true: "post"}[n.post], t)
	}
	if t.Kind == Pointer {
		return t
	}
	return integer(8, t.Signed)
}

func (c *checker) binop(n *node) *Type {
	l, r := c.expr(n.kids[0]), c.expr(n.kids[1])
	if l.Kind == Pointer || r.Kind == Pointer {
		return c.pointers(n, l, r)
	}
	signed := l.Signed && r.Signed
	if n.text == "<<" || n.text == ">>" {
		signed = l.Signed
	}
	if c.o.Language.newest() {
		return c.newestBinop(n, l, r)
	}
	ints := (l.isInt() || l.castable()) && (r.isInt() || r.castable())
	t := integer(8, signed)
	if ints {
		t = integer(max(l.Size, r.Size), signed)
		if t.Size == 0 {
			t.Size = 8
		}
	}
	if t.Space = l.Space; t.Space == script.AnySpace {
		t.Space = r.Space
	} else if r.Space != script.AnySpace && r.Space != l.Space {
		t.Space = script.AnySpace
		c.warn(n.at, "Addrspace mismatch")
	}
	if ints && c.final {
		c.warnIntegers(n, l, r)
	}
	if !c.final || ints {
		return t
	}
	equal := n.text == "==" || n.text == "!="
	bad := func() {
		c.error(n.at, "The %s operator can not be used on expressions of types %s, %s", n.text, l, r)
	}
	switch {
	case l.Kind == Array && r.Kind == Array:
		switch {
		case !equal:
			c.error(n.at, "The %s operator cannot be used on arrays.", n.text)
		case l.N != r.N:
			c.error(n.at, "Only arrays of same size support comparison operators.")
		case !l.target().isInt() || !l.equal(r):
			c.error(n.at, "Only arrays of same sized integer support comparison operators.")
		}
	case l.Kind != r.Kind:
		c.error(n.kids[0].at.with(n.kids[1].at), "Type mismatch for '%s': comparing '%s' with '%s'", n.text, l, r)
	case !equal:
		bad()
	case l.Kind == String:
		c.warnStrings(n, l, r)
	}
	return t
}

func (c *checker) pointers(n *node, l, r *Type) *Type {
	ptr, other := l, r
	if l.Kind != Pointer {
		ptr, other = r, l
	}
	compare, logical := false, n.text == "&&" || n.text == "||"
	switch n.text {
	case "==", "!=", "<=", ">=", "<", ">":
		compare = true
	}
	switch {
	case other.Kind == Pointer && (compare || logical) && c.o.Language.newest():
		return boolT
	case other.isInt() && (compare || logical) && c.o.Language.newest():
		return boolT
	case other.Kind == Pointer && (compare || logical):
		if l, r := l.target(), r.target(); compare && !l.equal(r) {
			c.warn(n.kids[0].at.with(n.kids[1].at), "comparison of distinct pointer types ('%s, '%s')", l, r)
		}
		return uint64T
	case other.isInt() && (n.text == "+" || n.text == "-" && l.Kind == Pointer):
		return ptr
	case other.isInt() && (compare || logical):
		return int64T
	case other.Kind == None && !c.final:
		return none
	}
	c.error(n.at, "The %s operator can not be used on expressions of types %s, %s", n.text, l, r)
	return none
}

func (c *checker) ternary(n *node) *Type {
	cond, l, r := c.expr(n.kids[0]), c.expr(n.kids[1]), c.expr(n.kids[2])
	if !l.same(r) {
		if c.final {
			c.error(n.at, "Ternary operator must return the same type: have '%s' and '%s'", l, r)
		}
		return l
	}
	if l.isStack() && (l.Name != r.Name || l.N != r.N) {
		c.error(n.at, "Ternary operator must have the same stack type on the right and left sides.")
		return n.typ
	}
	if c.final && !cond.isInt() && cond.Kind != Pointer {
		c.error(n.at, "Invalid condition in ternary: %s", cond.kind())
		return n.typ // what it was in an earlier pass
	}
	if l.isInt() && c.o.Language.newest() {
		return l.promoted(r)
	}
	if l.isInt() {
		return integer(8, l.Signed)
	}
	if l.Kind != TupleKind && l.Kind != String && l.Size <= r.Size {
		return r
	}
	return l.widen(r)
}

// resolved refuses an unknown type in a cast or in sizeof. bpftrace does not check enumerations here.
func (c *checker) resolved(n *node, known bool) {
	if ct := n.ctype; !known && !strings.HasPrefix(ct.name, "enum ") {
		c.error(n.at, "Cannot resolve unknown type \"%s\"", ct.name)
	}
}

func (c *checker) castType(n *node) *Type {
	x := c.expr(n.kids[0])
	t, known := c.named(n.ctype)
	c.resolved(n, known)
	if t.sizeless() && c.o.Language.newest() {
		t = boolT
	}
	if t.sizeless() {
		c.error(n.at, noBool)
		return t
	}
	switch {
	case x.Kind == Record && !x.Context:
		c.error(n.at, "Cannot cast from struct type \"%s\"", x)
	case x.Kind == None:
		c.error(n.at, "Cannot cast from \"%s\" type", x)
	}
	if !t.isInt() && t.Kind != Pointer && !(t.Kind == Array && t.target().isInt()) {
		c.error(n.at, "Cannot cast to \"%s\"", t)
		if alias := intAlias[n.ctype.name]; alias != "" {
			c.hint(n.at, "Did you mean %q?", alias)
		}
	}
	if t.Kind == Array && t.N == 0 {
		if size := t.target().Size; size == 0 {
			c.error(n.at, "Could not determine size of the array")
		} else {
			if x.stored()%size != 0 {
				c.error(n.at, "Cannot determine array size: the element size is incompatible with the cast integer size")
			}
			t.N = x.stored() / size
			t.Size = t.N * size
		}
	}
	if t.Kind == Array && x.isInt() {
		t = t.owned()
	}
	if t.enum() {
		c.castEnum(n, t, x)
	}
	switch {
	case t.isInt() && !x.isInt() && x.Kind != Pointer && !x.Context && x.Kind != Array && !x.castable(),
		t.Kind == Array && (!x.isInt() || t.Size != x.stored()), x.Kind == Array && (!t.isInt() || t.Size != x.stored()):
		c.error(n.at, "Cannot cast from \"%s\" to \"%s\"", x, t)
	}
	if x.Space == script.AnySpace {
		return withSpace(t, spaces[c.only()])
	}
	return withSpace(t, x.Space)
}

// castEnum checks a cast to an enumeration.
func (c *checker) castEnum(n *node, t, x *Type) {
	switch literal := n.kids[0]; {
	case !c.enums[t.Name] && !c.defined.whole["enum "+t.Name]:
		c.error(n.at, "Unknown enum: %s", t.Name)
	case x.isInt() && literal.op == nInt && !variant(t, int64(literal.num)):
		c.error(literal.at, "Enum: %s doesn't contain a variant value of %d", t.Name, int64(literal.num))
	}
}

func (c *checker) sizeof(n *node) *Type {
	var t *Type
	if n.ctype != nil {
		var known bool
		t, known = c.named(n.ctype)
		c.resolved(n, known)
	} else {
		old := c.call
		c.call = "sizeof"
		t = c.expr(n.kids[0])
		c.call = old
		of := t
		for of.Kind == Pointer {
			of = of.target()
		}
		if of.Kind == Record && of.C == nil && !of.Args {
			c.error(n.at, "Cannot resolve unknown type \"%s\"", of.Name)
		}
	}
	n.num = uint64(t.stored())
	if n.op == nSizeof {
		return uint64T
	}
	n.num = 0
	for _, f := range n.path {
		switch {
		case t.Kind != Record:
			c.error(n.at, "'%s' is not a record type.", t)
			return uint64T
		case t.C == nil:
			c.error(n.at, "'%s' does not exist.", t)
			return uint64T
		}
		m, ok := t.C.Member(f)
		if !ok {
			c.error(n.at, "'%s' has no field named '%s'", t.Name, f)
			return uint64T
		}
		n.num += uint64(m.Offset)
		t = fromC(m.Type)
	}
	return uint64T
}
