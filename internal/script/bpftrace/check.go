package bpftrace

import (
	"fmt"
	"strings"

	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
)

// Options are what a script is read with.
type Options struct {
	// Args are the positional parameters.
	Args []string
	// Unsafe allows what only --unsafe allows.
	Unsafe bool
	// Command says that there is a program whose start is waited for.
	Command bool
	// Program is what -c runs, as it is named there.
	Program string
	// JSON is the output's format.
	JSON bool
}

// variable is a scratch variable.
type variable struct {
	name      string
	typ       *Type
	resizable bool
	assigned  bool
	declared  *node
	slot      int
}

// array is a map.
type array struct {
	name     string
	key, val *Type // nil: not known yet
}

// scope is a block: variables of it are known in it and in those inside.
type scope struct {
	of    *node
	probe *probe
	other bool
}

// checker finds the types of a script, in passes: what is used before it is assigned is known
// in the next one.
type checker struct {
	o        *Options
	k        *Kernel
	t        *tree
	problems *Problems

	lines *preprocessor
	// unattachable are the probes that cannot be attached.
	unattachable []*Problem

	config map[string]string
	// defined are the types that the script defines.
	defined *definer
	maxStr  int
	keys    int

	maps   map[string]*array
	order  []*array
	vars   map[scope]map[string]*variable
	scopes []scope
	slots  map[*probe][]*variable

	pass, unresolved int
	final            bool
	loops            int
	call             string
	argument         int
	probe            *probe
	seen             map[string]bool
	// enums are the kernel's enumerations of which the script has a value: bpftrace knows no others.
	enums      map[string]bool
	inFor      int
	positional bool
	// sargs says that the script uses sargN.
	sargs bool
}

func (c *checker) error(at span, format string, a ...any) {
	c.problems.list = append(c.problems.list, &Problem{Message: strings.TrimSuffix(fmt.Sprintf(format, a...), "\n"), at: at})
}

// unattached notes that a probe cannot be attached; bpftrace says so at the end, without a place.
func (c *checker) unattached(format string, a ...any) {
	c.unattachable = append(c.unattachable, &Problem{Message: fmt.Sprintf(format, a...), free: true})
}

func (c *checker) errors() int { return len(c.problems.list) }

// points reads the attach points.
func (c *checker) points() {
	for _, p := range c.t.probes {
		var list []*point
		for _, pt := range p.points {
			parts, _, _ := strings.Cut(pt.raw, ":")
			if wild(parts) {
				list = append(list, c.expandProvider(pt, parts)...)
				continue
			}
			if err := c.readPoint(pt); err != "" {
				c.error(pt.at, "%s", err)
			}
			if !pt.skip {
				list = append(list, pt)
			}
		}
		if len(list) == 0 && c.errors() == 0 {
			c.error(p.at, "No attach points for probe")
		}
		p.points = list
	}
}

// expandProvider is a point for each kind of probe that a pattern means.
func (c *checker) expandProvider(pt *point, pattern string) (list []*point) {
	_, rest, ok := strings.Cut(pt.raw, ":")
	for _, name := range []string{"fentry", "fexit", "kprobe", "kretprobe", "rawtracepoint", "tracepoint"} {
		if !ok || !match(pattern, name) {
			continue
		}
		one := &point{raw: name + ":" + rest, at: pt.at, optional: true}
		if c.readPoint(one) == "" && !one.skip {
			list = append(list, one)
		}
	}
	if len(list) == 0 {
		c.error(pt.at, "No probe type matched for %s", pattern)
	}
	return list
}

// settings are what config can set.
var settings = map[string]string{
	"cache_user_symbols": "string", "cpp_demangle": "bool", "lazy_symbolication": "bool", "license": "string", "log_size": "int", "max_bpf_progs": "int",
	"max_cat_bytes": "int", "max_map_keys": "int", "max_probes": "int", "max_strlen": "int", "max_type_res_iterations": "int",
	"missing_probes": "string", "on_stack_limit": "int", "perf_rb_pages": "int", "print_maps_on_exit": "bool", "probe_inline": "bool",
	"stack_mode": "string", "str_trunc_trailer": "string", "symbol_source": "string", "use_blazesym": "bool",
}

func (c *checker) configure() {
	c.maxStr, c.keys = 1024, 4096
	for _, s := range c.t.config {
		name := strings.TrimPrefix(strings.ToLower(s.name), "bpftrace_")
		want, ok := settings[name]
		switch v := s.value; {
		case !ok:
			c.error(s.at, "Unrecognized config variable: %s", s.name)
		case !v.literal():
			c.error(s.at, "Assignment for %s must be literal.", s.name)
		case want == "string" && v.op != nString && v.op != nStackMode:
			c.error(s.at, "Invalid type for %s. Type: %s. Expected Type: string", s.name, literalKind(v))
		case want != "string" && v.op != nInt:
			c.error(s.at, "Invalid type for %s. Type: %s. Expected Type: int", s.name, literalKind(v))
		case want == "bool" && v.num > 1:
			c.error(s.at, "Invalid value for %s. Needs to be 0 or 1. Value: %d", s.name, v.num)
		case name == "missing_probes" && v.text != "ignore" && v.text != "warn" && v.text != "error":
			const text = `Invalid value for missing_probes: valid values are "ignore", "warn", and "error".`
			c.problems.list = append(c.problems.list, &Problem{Message: text, free: true})
			c.error(v.at, "") // bpftrace has no words for the place
		case name == "stack_mode" && stackModes[v.text] == 0:
			c.error(s.at, "%s is not a valid StackMode", v.text)
		default:
			c.config[name] = v.text
			if v.op == nInt {
				c.config[name] = fmt.Sprint(v.num)
			}
			switch name {
			case "max_strlen":
				c.maxStr = int(min(max(v.num, 1), 1<<14))
			case "max_map_keys":
				c.keys = int(min(max(v.num, 1), 1<<20))
			}
		}
	}
}

func literalKind(n *node) string {
	switch n.op {
	case nInt:
		return "int"
	case nString:
		return "string"
	}
	return "none"
}

// maxPasses bounds how often a script is gone through.
const maxPasses = 16

// check finds all types.
func (c *checker) check() {
	c.config, c.maps, c.vars = map[string]string{}, map[string]*array{}, map[scope]map[string]*variable{}
	var kernel *source.File
	if c.k != nil {
		kernel = c.k.Source
	}
	var err error
	if c.defined, err = define(c.lines, kernel); err != nil {
		c.problems.list = append(c.problems.list, &Problem{Message: "definitions: " + err.Error(), free: true})
	}
	if c.points(); c.errors() == 0 {
		c.configure()
	}
	for _, f := range c.t.functions {
		c.error(f.at, "fn %s: functions of the script's own are not there", f.text)
	}
	if c.errors() > 0 {
		return
	}
	c.enums = map[string]bool{}
	last := 0
	for c.pass = 1; ; c.pass++ {
		c.unresolved, c.seen = 0, map[string]bool{}
		for _, p := range c.t.probes {
			c.block(p)
		}
		if c.errors() > 0 || c.final {
			return
		}
		if c.unresolved == 0 || last != 0 && c.unresolved >= last || c.pass > maxPasses {
			c.final = true
		}
		last = c.unresolved
	}
}

func (c *checker) block(p *probe) {
	c.probe = p
	for _, pt := range p.points {
		c.checkPoint(pt)
		if c.pass == 1 && c.errors() == 0 {
			c.resolve(pt)
		}
	}
	if p.pred != nil {
		t := c.expr(p.pred)
		if c.final && !t.isInt() && t.Kind != Pointer {
			c.error(p.predAt, "Invalid type for predicate: %s", t.Kind)
		}
	}
	c.body(scope{probe: p}, p.body)
}

func (c *checker) body(s scope, list []*node) {
	c.scopes = append(c.scopes, s)
	for _, n := range list {
		c.statement(n)
	}
	c.warnUnreachable(list)
	c.scopes = c.scopes[:len(c.scopes)-1]
}

func (c *checker) find(name string) *variable {
	for _, s := range c.scopes {
		if v := c.vars[s][name]; v != nil {
			return v
		}
	}
	return nil
}

func (c *checker) declare(s scope, v *variable) *variable {
	if c.vars[s] == nil {
		c.vars[s] = map[string]*variable{}
	}
	c.vars[s][v.name] = v
	return v
}

func (c *checker) inner() scope { return c.scopes[len(c.scopes)-1] }

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
			c.error(n.at, "Invalid condition in if(): %s", t.Kind)
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
		c.forEach(n)
	case sJump:
		for _, k := range n.kids {
			c.expr(k)
		}
		switch {
		case n.text == "return":
			if c.inFor > 0 {
				c.error(n.at, "'return' statement is not allowed in a for-loop")
			}
		case c.inFor > 0:
			c.error(n.at, "'%s' statement is not allowed in a for-loop", n.text)
		case c.loops == 0:
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
		if v, err := parseSigned(c.param(int(n.num))); err == "" {
			return v, true
		}
	case nParamCount:
		return int64(len(c.o.Args)), true
	}
	return 0, false
}

func parseSigned(s string) (int64, string) {
	if s == "" {
		return 0, ""
	}
	t, minus := strings.CutPrefix(s, "-")
	if numRE.FindString(t) != t || t == "" {
		return 0, "not a number"
	}
	v, err := parseInt(t)
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
	if c.pass == 1 && c.find(v.text) != nil {
		c.error(v.at, "Loop declaration shadows existing variable: %s", v.text)
	}
	if m.op != nMap {
		c.error(m.at, "Loop expression must be a map")
		return
	}
	m.skip = true
	c.expr(m)
	a := c.maps[m.text]
	if a != nil && a.val != nil && a.val.multiple() {
		c.error(m.at, "Loop expression does not support type: %s", a.val)
		return
	}
	if c.errors() > 0 || a == nil || a.val == nil {
		return
	}
	if a.key == nil || a.key.Kind == None || len(m.kids) > 0 {
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
	one.typ = tuple([]*Type{a.key, a.val})
	v.variable = one
	c.loops++
	c.inFor++
	c.body(s, n.body)
	c.loops--
	c.inFor--
}

// slot makes room for a variable in its probe's handlers.
func (c *checker) slot(v *variable) {
	if c.slots == nil {
		c.slots = map[*probe][]*variable{}
	}
	v.slot = len(c.slots[c.probe])
	c.slots[c.probe] = append(c.slots[c.probe], v)
}

func (c *checker) let(n *node) {
	name := n.kids[0].text
	t, sized := none, false
	if n.ctype != nil {
		t = c.named(n.ctype)
		if t.aggregate() || t.Kind == StackMode || t.Kind == Void {
			c.error(n.at, "Invalid variable declaration type: %s", t)
		}
		sized = t.Size != 0
	}
	if c.pass == 1 {
		for _, s := range c.scopes {
			if v := c.vars[s][name]; v != nil && v.declared != nil && v.declared != n {
				c.error(n.at, "Variable %s was already declared. Variable shadowing is not allowed.", name)
				c.error(v.declared.at, "Initial declaration")
			} else if v != nil && v.declared == nil {
				c.error(n.at, "Variable declarations need to occur before variable usage or assignment. Variable: %s", name)
			}
		}
		c.slot(c.declare(c.inner(), &variable{name: name, typ: t, resizable: !sized, declared: n}))
	} else if v := c.find(name); v != nil && !v.assigned {
		c.warn(n.at, "Variable %s never assigned to.", name)
	}
}

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
	c.expr(x)
	if !c.assignable(m, x) {
		hint := map[Kind]string{Count: "count()", Sum: "sum(retval)", Min: "min(retval)", Max: "max(retval)", Avg: "avg(retval)", Hist: "hist(retval)", Lhist: "lhist(rand %10, 0, 10, 1)", Stats: "stats(arg2)"}
		c.error(n.at, "Map value '%s' cannot be assigned from one map to another. The function that returns this type must be called directly e.g. `%s = %s;`.", x.typ, m.text, hint[x.typ.Kind])
		if x.typ.castable() {
			c.problems.list[len(c.problems.list)-1].Hint = fmt.Sprintf("Add a cast to integer if you want the value of the aggregate, e.g. `%s = (int64)%s;`.", m.text, x.text)
		}
		return
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
		if a.val.Size < t.Size {
			c.warn(n.at, "String size mismatch: %d < %d. The value may be truncated.", a.val.Size, t.Size)
		}
	case Buffer:
		if a.val.Size > t.Size {
			c.error(n.at, "Buffer size mismatch: %d != %d.", a.val.Size, t.Size)
		} else if a.val.Size < t.Size {
			c.warn(n.at, "Buffer size mismatch: %d != %d. The value may be truncated.", a.val.Size, t.Size)
		}
	case TupleKind:
		if c.final && !t.fits(a.val) {
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
		if t.isInt() && t.Size < 8 {
			wide := *t
			wide.Size = 8
			a.val = &wide
		}
		if t.Kind == None {
			a.val = nil
			c.unresolved++
			if c.final {
				c.error(m.at, "Undefined map: %s", m.text)
			}
		}
		return
	case a.val.Kind != t.Kind:
		if t.Kind == None && !c.final {
			c.unresolved++
			return
		}
		c.error(m.at, "Type mismatch for %s: trying to assign value of type '%s' when map already contains a value of type '%s'", m.text, t, a.val)
	}
	a.val = a.val.widen(t)
}

func (c *checker) array(name string) *array {
	a := c.maps[name]
	if a == nil {
		a = &array{name: name}
		c.maps[name] = a
		c.order = append(c.order, a)
	}
	return a
}

func (c *checker) assignVar(n *node) {
	name, x := n.kids[0].text, n.kids[1]
	x.forVar = true
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
		v = c.declare(c.inner(), &variable{name: name, typ: t, resizable: true, assigned: true})
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
			value := fmt.Sprint(x.num)
			if x.negative {
				value = fmt.Sprint(int64(x.num))
			}
			c.error(n.at, "Type mismatch for %s: trying to assign value '%s' which does not fit into the variable of type '%s'", v.name, value, stored)
			return
		} else if !v.assigned && stored.Signed != t.Signed {
			// As bpftrace 0.23.2: the variable takes the literal's type, the literal the variable's.
			c.error(n.at, "Type mismatch for %s: trying to assign value of type '%s' when variable already contains a value of type '%s'", v.name, stored, t)
			return
		}
		v.assigned = true
		if !mismatch {
			return
		}
	case stored.isInt():
		if stored.Signed != t.Signed {
			mismatch = true
		} else if !t.fits(stored) {
			c.error(n.at, "Integer size mismatch. Assignment type '%s' is larger than the variable type '%s'.", t, stored)
		}
	case t.Kind == TupleKind:
		v.typ = stored.widen(t)
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
	if !v.assigned {
		v.assigned = true
		if v.resizable || v.typ.Kind == None {
			v.typ = t
		}
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

// named is a type that the script names.
func (c *checker) named(ct *ctype) *Type {
	var t *Type
	switch k := words[ct.name]; k {
	case tIntType:
		size := 1
		if ct.name != "bool" {
			fmt.Sscanf(strings.TrimLeft(ct.name, "uint"), "%d", &size)
			size /= 8
		}
		t = integer(size, ct.name[0] == 'i')
	case tBuiltinType, tBuiltin:
		name, signed := ct.name, true
		if len(name) > 2 && name[0] == 'u' && name != "usym_t" && name != "ustack_t" && name != "username" {
			name, signed = name[1:], false
		}
		t = none
		for i, n := range kindNames {
			if n == name || n == ct.name || name == "macaddr_t" && Kind(i) == Mac {
				t = &Type{Kind: Kind(i), Size: 8, Signed: signed}
			}
		}
		if t.Kind == Void {
			t = &Type{Kind: Void}
		}
	case tSizedType:
		t = &Type{Kind: map[string]Kind{"string": String, "inet": Inet, "buffer": Buffer}[ct.name], Size: int(min(ct.size, 1<<14))}
	default:
		t = c.cType(ct)
	}
	if words[ct.name] != tSizedType && (ct.sized || ct.unsized) {
		n := int(min(ct.size, 1<<12))
		t = &Type{Kind: Array, Elem: t, N: n, Size: n * t.Size}
	}
	for range ct.stars {
		t = &Type{Kind: Pointer, Size: 8, Elem: t}
	}
	return t
}

// tags are the words before the names of types.
var tags = map[string]source.Kind{"struct": source.Struct, "union": source.Union, "enum": source.Enum}

// cType is a structure, a union or an enumeration, of the script's or of the kernel's. As in bpftrace, the word
// for which of them it is cannot be left out; of the kernel's typedefs, those of structures without a name are known.
func (c *checker) cType(ct *ctype) *Type {
	word, name, _ := strings.Cut(strings.Join(strings.Fields(ct.name), " "), " ")
	if key := word + " " + name; c.defined.whole[key] {
		return fromC(c.defined.types[key])
	}
	if c.k != nil && c.k.Source != nil {
		kind, tagged := tags[word]
		if !tagged {
			kind, name = source.Typedef, word
		}
		if t, err := c.k.Source.Tagged(kind, name); err == nil && (tagged || t.Real().Composite() && t.Real().Name == "") {
			one := fromC(t)
			if one.Kind == Record && one.C.Kind == source.Struct && one.C.Name == "" {
				one.Name = ct.name
			}
			return one
		}
	}
	c.error(ct.at, "Cannot resolve unknown type \"%s\"", ct.name)
	if alias := map[string]string{"char": "int8", "short": "int16", "int": "int32", "long": "int64"}[ct.name]; alias != "" {
		c.problems.list[len(c.problems.list)-1].Hint = fmt.Sprintf("Did you mean %q?", alias)
	}
	return none
}

// only is the one provider of the probe's points, "" for several.
func (c *checker) only() string {
	p := ""
	for _, pt := range c.probe.points {
		if p != "" && pt.provider != p {
			return ""
		}
		p = pt.provider
	}
	return p
}

// first is a probe that stands for all of the block's, nil where none is known.
func (c *checker) first() *host.Probe {
	for _, pt := range c.probe.points {
		if len(pt.probes) > 0 {
			return pt.probes[0]
		}
	}
	return nil
}
