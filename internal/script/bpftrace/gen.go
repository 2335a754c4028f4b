package bpftrace

import (
	"fmt"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
	"kprobelab/x86"
)

// generator makes the program of a checked script.
type generator struct {
	c       *checker
	s       *Script
	program *script.Program
	arrays  map[string]*script.Array
	infos   map[string]*mapInfo
	// full has the message about a full map, by the place of the update.
	full map[string]string

	block *probe
	probe *host.Probe
	event *Event
	// locals are the locals of the handler that is being made: the script's variables, then the generator's own.
	locals   []script.Type
	saves    []script.Stmt
	saved    map[string]int
	usesArgs bool
	unrolled int
	// noSpace: the warning was given about a read from memory that may be the kernel's or a program's.
	noSpace bool
}

// value is the value of an expression. It is x itself; with mem it is memory at the address x, and with raw the
// bytes of the string x from off on.
type value struct {
	x        script.Expr
	t        *Type
	mem, raw bool
	// own: the raw bytes are the script's own, not bytes of other memory.
	own bool
	off int
	// field is the number of bits of a bit field, bit its first bit; field is 0 for other values.
	field, bit int
	// width is the number of bits of an integer, 0 for 64; the bits above them are 0.
	width int
}

func (g *generator) near(at span) string {
	return fmt.Sprintf("%s:%d:%d-%d", g.c.problems.file.name, at.from.line, at.from.col, at.to.col)
}

// fail reports an error that is found only when the program is made.
func (g *generator) fail(at span, format string, a ...any) {
	g.c.error(at, format, a...)
	panic(failed{})
}

func (g *generator) generate() {
	defer func() {
		if e := recover(); e != nil && e != any(failed{}) {
			panic(e)
		}
	}()
	g.makeArrays()
	for _, p := range g.c.t.probes {
		g.makeBlock(p)
	}
	for _, a := range g.program.Arrays {
		switch info := g.infos[a.Name]; {
		case info != nil && info.key.Kind == None && info.val.Kind == Tseries:
			a.Max = 1 // a series may have many intervals
		case g.c.sizes[a.Name] > 0:
			a.Max = g.c.sizes[a.Name]
		default:
			a.Max = g.c.keys
		}
	}
	g.program.Limits = script.Limits{StringSize: g.stringSize(), Entries: g.c.keys, Nesting: 1, Memory: 1 << 30}
}

// stringSize returns the room in bytes of the longest value.
func (g *generator) stringSize() int {
	size := g.c.maxStr
	for _, t := range g.s.longest {
		size = max(size, t.room())
	}
	return min(size+1, 1<<15)
}

func (g *generator) makeArrays() {
	for _, a := range g.c.order {
		if a.val == nil {
			continue
		}
		key := script.Int
		if a.key != nil && a.key.Kind != None {
			key = a.key.core()
			g.s.longest = append(g.s.longest, a.key)
		}
		g.s.longest = append(g.s.longest, a.val)
		one := &script.Array{Name: a.name, Keys: []script.Type{key}, Value: a.val.core()}
		one.Full = func(t *script.Thread, near string) { t.Print([]byte(g.full[near])) }
		one.Histogram.Unsigned = !a.val.Signed
		info := &mapInfo{array: one, name: a.name, key: a.key, val: a.val}
		if a.key == nil {
			info.key = none
		}
		g.arrays[a.name], g.infos[a.name] = one, info
		g.program.Arrays = append(g.program.Arrays, one)
		g.s.maps = append(g.s.maps, info)
	}
}

// makeBlock makes the handlers of a block: one for all of its probes, but one for each where
// parameters are used by their names.
func (g *generator) makeBlock(p *probe) {
	g.block = p
	var shared *script.Handler
	for _, pt := range p.points {
		for i, pr := range pt.probes {
			g.probe, g.event = pr, nil
			if len(pt.events) > i {
				g.event = pt.events[i]
			}
			if shared == nil || g.usesArgs || g.event != nil && g.event.Filter != nil {
				shared = g.handler(p)
			}
			pr.Handler = shared
			if pr.Kind == host.Return && len(g.saves) > 0 {
				pr.Saved = len(g.saves)
				pr.Entry = &script.Handler{Name: pr.Point, Actions: bounded.BpftraceActions, Body: script.Block(g.saves)}
				g.program.Handlers = append(g.program.Handlers, pr.Entry)
			}
			g.s.Probes = append(g.s.Probes, pr)
		}
	}
}

func (g *generator) handler(p *probe) *script.Handler {
	g.locals, g.saves, g.saved, g.usesArgs = nil, nil, map[string]int{}, false
	for _, v := range g.c.slots[p] {
		g.locals = append(g.locals, v.typ.core())
		g.s.longest = append(g.s.longest, v.typ)
	}
	var body script.Stmt = g.body(p.body)
	if p.pred != nil {
		body = script.If{Cond: g.condition(p.pred), Then: body}
	}
	if g.event != nil && g.event.Filter != nil {
		body = script.If{Cond: g.event.Filter, Then: body}
	}
	h := &script.Handler{Name: g.probe.Point, Locals: g.locals, Body: body, Actions: bounded.BpftraceActions}
	g.program.Handlers = append(g.program.Handlers, h)
	return h
}

// local makes a variable that the script does not see.
func (g *generator) local(t script.Type) script.Local {
	g.locals = append(g.locals, t)
	return script.Local{N: len(g.locals) - 1, Of: t}
}

func (g *generator) body(list []*node) script.Block {
	out := script.Block{}
	for _, n := range list {
		out = append(out, g.statement(n))
	}
	return out
}

func (g *generator) statement(n *node) script.Stmt {
	if g.unrolled++; g.unrolled > bounded.BpftraceUnrolled {
		g.fail(n.at, "unroll makes the script too long")
	}
	switch n.op {
	case sExpr:
		return g.effect(n.kids[0])
	case sAssign:
		if n.kids[0].op == nMap {
			return g.assignMap(n)
		}
		v := n.kids[0].variable
		return script.Do{X: script.Assign{To: g.variable(v), Op: script.Set, X: g.toVariable(n.kids[1], v)}}
	case sLet:
		return script.Block{}
	case sIf:
		return script.If{Cond: g.condition(n.kids[0]), Then: g.body(n.body), Else: g.body(n.other)}
	case sWhile:
		return script.Loop{Cond: g.condition(n.kids[0]), Body: g.body(n.body), Near: g.near(n.at)}
	case sUnroll:
		out := script.Block{}
		for range n.num {
			out = append(out, g.body(n.body)...)
		}
		return out
	case sFor:
		if len(n.kids) == 3 {
			return g.forRange(n)
		}
		return g.forEach(n)
	}
	switch n.text {
	case "break":
		return script.Break{}
	case "continue":
		return script.Continue{}
	}
	if len(n.kids) == 1 { // of return, whose value nobody takes
		return script.Block{g.effect(n.kids[0]), script.Next{}}
	}
	return script.Next{}
}

func (g *generator) variable(v *variable) script.Local {
	return script.Local{N: v.slot, Of: v.typ.core()}
}

func (g *generator) forEach(n *node) script.Stmt {
	info := g.infos[n.kids[1].text]
	kv := n.kids[0].variable
	f := script.Foreach{Array: info.array, Sort: -1, Near: g.near(n.at)}
	key := g.local(info.array.Keys[0])
	f.Keys = []script.Expr{key}
	var val script.Expr
	if info.array.Value == script.Stat {
		val = extract(info, script.Elem{Array: info.array, Keys: []script.Expr{key}})
	} else {
		l := g.local(info.array.Value)
		f.Value, val = l, l
	}
	pair := script.Do{X: script.Assign{To: g.variable(kv), Op: script.Set, X: script.Tuple{Parts: []script.Expr{key, val}}}}
	f.Body = append(script.Block{pair}, g.body(n.body)...)
	return f
}

// extract makes the single value of an aggregate, 0 if it is empty.
func extract(info *mapInfo, e script.Elem) script.Expr {
	what := map[Kind]script.Extractor{Min: script.Min, Max: script.Max, Avg: script.Avg}[info.val.Kind]
	return script.Cond{If: script.Extract{What: script.Count, Of: e}, Then: script.Extract{What: what, Of: e}, Else: script.Number(0)}
}

// elem makes an element of a map.
func (g *generator) elem(n *node) script.Elem {
	info := g.infos[n.text]
	e := script.Elem{Array: info.array, Near: g.near(n.at)}
	if len(n.kids) == 0 {
		e.Keys = []script.Expr{script.Number(0)}
	} else {
		e.Keys = []script.Expr{g.as(n.kids[0], info.key)}
	}
	return e
}

func (g *generator) assignMap(n *node) script.Stmt {
	m, x := n.kids[0], n.kids[1]
	e := g.elem(m)
	info := g.infos[m.text]
	if x.op == nCall && x.typ.aggregate() {
		return g.aggregate(info, g.updated(e, x.at), x)
	}
	e = g.updated(e, n.at)
	v := g.loaded(x)
	if info.array.Value == script.Stat {
		return g.replaceAggregate(e, g.wide(v))
	}
	if info.val.isInt() && v.x.Type() == script.Int && g.newest() {
		v.x, v.width = g.wide(v), 64
	} else if info.val.isInt() && v.x.Type() == script.Int {
		v.x, v.width = convert(v.x, v.bits(), 64, info.val.Signed), 64
	}
	return script.Do{X: script.Assign{To: e, Op: script.Set, X: g.form(x, info.val, v.x), Near: g.near(n.at)}}
}

// replaceAggregate gives an aggregate the one value that another has.
func (g *generator) replaceAggregate(e script.Elem, x script.Expr) script.Stmt {
	to, key := g.local(script.Int), g.local(e.Array.Keys[0])
	set := func(l script.Local, x script.Expr) script.Stmt {
		return script.Do{X: script.Assign{To: l, Op: script.Set, X: x}}
	}
	keys := e.Keys[0]
	e.Keys = []script.Expr{key}
	return script.Block{set(key, keys), set(to, x), script.If{Cond: script.Has{Array: e.Array, Keys: e.Keys}, Then: script.Delete{X: e}},
		script.Accumulate{To: e, X: to, Near: e.Near}}
}

func (g *generator) aggregate(info *mapInfo, e script.Elem, x *node) script.Stmt {
	near := g.near(x.at)
	switch x.typ.Kind {
	case Count:
		return script.Do{X: script.Assign{To: e, Op: script.Add, X: script.Number(1), Near: near}}
	case Sum:
		return script.Do{X: script.Assign{To: e, Op: script.Add, X: g.num(x.kids[0]), Near: near}}
	case Hist:
		h := script.Histogram{Kind: script.Powers}
		if len(x.kids) == 2 {
			v, _ := g.c.number(x.kids[1])
			h.Bits = int(v)
		}
		g.histogram(info, x, h)
	case Lhist:
		h := script.Histogram{Kind: script.Linear, StopIsAbove: true}
		h.Start, _ = g.c.number(x.kids[1])
		h.Stop, _ = g.c.number(x.kids[2])
		h.Interval, _ = g.c.number(x.kids[3])
		g.histogram(info, x, h)
	}
	if x.typ.Kind == Tseries {
		g.histogram(info, x, g.c.seriesOf(x))
		return script.Accumulate{To: e, X: g.num(x.kids[0]), At: call(wallCode), Near: near}
	}
	return script.Accumulate{To: e, X: g.num(x.kids[0]), Near: near}
}

func (g *generator) histogram(info *mapInfo, x *node, h script.Histogram) {
	if old := info.array.Histogram; old.Kind != script.NoHistogram && old != h {
		if h.Kind != script.Powers {
			g.fail(x.at, "Different %s bounds in a single map unsupported", x.text)
		}
		g.fail(x.at, "Different bits in a single hist, had %d now %d", old.Bits, h.Bits)
	}
	info.array.Histogram = h
}

// num makes an integer of 64 bits, extended by its sign. raw makes one with zeros above its bits, text a string.
func (g *generator) num(n *node) script.Expr { return g.wide(g.integer(n)) }

func (g *generator) raw(n *node) script.Expr { return g.integer(n).x }

// condition makes an integer for a condition: 0 is false.
func (g *generator) condition(n *node) script.Expr { return g.raw(n) }

// integer makes an integer with its width.
func (g *generator) integer(n *node) value {
	v := g.loaded(n)
	if v.x.Type() != script.Int {
		g.fail(n.at, "a value of type '%s' cannot be a number", n.typ)
	}
	return v
}

func (g *generator) text(n *node) script.Expr {
	x := g.expr(n)
	if x.Type() != script.String {
		g.fail(n.at, "a value of type '%s' cannot be text", n.typ)
	}
	return x
}

// expr makes the whole value of an expression. An integer has 64 bits.
func (g *generator) expr(n *node) script.Expr {
	v := g.loaded(n)
	if v.x.Type() != script.Int {
		return v.x
	}
	return g.wide(v)
}

// loaded makes the value of an expression; a value in memory is read.
func (g *generator) loaded(n *node) value {
	v := g.value(n)
	if !v.mem && !v.raw {
		return v
	}
	return value{x: g.load(v, n.at), t: v.t, width: v.t.slot()}
}

// as makes a value in the form of another type; a tuple's parts are changed one by one. An integer is extended to 64
// bits by the sign of its own type.
func (g *generator) as(n *node, t *Type) script.Expr { return g.form(n, t, g.expr(n)) }

func (g *generator) form(n *node, t *Type, x script.Expr) script.Expr {
	if x.Type() != t.core() && !(t.core() == script.Stat) {
		g.fail(n.at, "a value of type '%s' cannot be held as '%s'", n.typ, t)
	}
	return g.fitted(x, n.typ, t)
}

// toVariable returns the content of a variable after n is assigned to it.
func (g *generator) toVariable(n *node, v *variable) script.Expr {
	if k := n.typ.Kind; k == Array || k == Record {
		return g.form(n, v.typ, g.fetch(g.value(n), n.at)) // the tool keeps the address
	}
	one := g.loaded(n)
	if !v.typ.isInt() || one.x.Type() != script.Int {
		return g.form(n, v.typ, one.x)
	}
	return g.setVariable(g.variable(v), v.typ, one)
}

// load reads a value from memory or from the bytes of a string, and warns of memory whose space is not known.
func (g *generator) load(v value, at span) script.Expr {
	if v.mem || v.raw && !v.own {
		g.reads(v.t)
	}
	return g.fetch(v, at)
}

// fetch does as load, without the warning.
func (g *generator) fetch(v value, at span) script.Expr {
	t := v.t
	switch {
	case v.raw:
		if t.core() == script.Int {
			return bitfield(script.Member{X: v.x, Off: v.off, Size: t.Size, Of: script.Int}, v)
		}
		x := script.Member{X: v.x, Off: v.off, Size: t.Size, Of: script.String}
		if t.Kind == String {
			return call(cutCode, x, script.Number(t.Size))
		}
		return x
	case !v.mem:
		return v.x
	}
	switch t.Kind {
	case Integer, Pointer:
		size := t.Size
		if size != 1 && size != 2 && size != 4 && size != 8 {
			g.fail(at, "a value of %d bytes cannot be read", size)
		}
		return bitfield(script.Load{Addr: v.x, Size: size, Space: t.Space, Lenient: true}, v)
	case String:
		return call(strCode, v.x, script.Number(t.Size), script.Number(t.Space))
	case Record, Array:
		g.s.longest = append(g.s.longest, t)
		return call(bytesCode, v.x, script.Number(t.Size), script.Number(t.Space))
	}
	g.fail(at, "a value of type '%s' cannot be read", t)
	return nil
}

// reads warns, once a script, of a read from memory that may be the kernel's or a program's.
func (g *generator) reads(t *Type) {
	if t.Space == script.AnySpace && !g.noSpace {
		g.noSpace = true
		g.c.missed("Addrspace is not set")
	}
}

// bitfield is a bit field of what a load reads, whose bits bpftrace takes for unsigned ones.
func bitfield(x script.Expr, v value) script.Expr {
	if v.field == 0 {
		return x
	}
	return script.Field(x, v.bit, v.field, false)
}

func (g *generator) value(n *node) value {
	t := n.typ
	plain := func(x script.Expr) value { return value{x: x, t: t} }
	switch n.op {
	case nBool, nBlock, nIfValue, nRecord:
		return g.newestValue(n)
	case nInt:
		if g.newest() {
			return value{x: script.Low(script.Number(int64(n.num)), t.slot()), t: t, width: t.slot()}
		}
		return plain(script.Number(int64(n.num)))
	case nString:
		return plain(script.Text(n.text))
	case nParam:
		v, _ := parseSigned(g.c.param(int(n.num)))
		return plain(script.Number(v))
	case nParamCount:
		return plain(script.Number(len(g.c.o.Args)))
	case nIdent, nSizeof, nOffset:
		return plain(script.Number(int64(n.num)))
	case nVar:
		return g.held(g.variable(n.variable), t)
	case nMap:
		return g.read(n)
	case nTuple:
		return g.tupleValue(n)
	case nBuiltin:
		return g.builtin(n)
	case nField, nIndex:
		return g.field(n)
	case nArray:
		return g.element(n)
	case nDeref:
		return g.deref(n)
	case nUnary:
		return g.unary(n)
	case nIncr:
		return g.increment(n)
	case nBinary:
		return g.binop(n)
	case nTernary:
		return g.ternary(n)
	case nCast:
		return g.cast(n)
	case nCall:
		return g.callValue(n)
	}
	g.fail(n.at, "this expression has no value")
	return value{}
}

// read makes the value of an element of a map. If an aggregate is not there, it prints bpftrace's message.
func (g *generator) read(n *node) value {
	e, info := g.elem(n), g.infos[n.text]
	if !info.val.castable() || info.single() {
		return g.held(e, n.typ)
	}
	key := g.local(e.Array.Keys[0])
	held := script.Assign{To: key, Op: script.Set, X: e.Keys[0]}
	e.Keys = []script.Expr{key}
	var x script.Expr = e
	if n.typ.core() == script.Stat {
		x = extract(info, e)
	}
	text := g.helperText(n.at, "Success", "map_lookup_percpu_elem", 0)
	missing := call(number("missing", nil, func(t *script.Thread, _ *script.Args) int64 { t.Print([]byte(text)); return 0 }))
	return value{x: script.Cond{If: script.Has{Array: e.Array, Keys: []script.Expr{held}}, Then: x, Else: missing}, t: n.typ}
}

// held makes the value of a variable x. A record or an array is the bytes of x.
func (g *generator) held(x script.Expr, t *Type) value {
	return value{x: x, t: t, raw: t.Kind == Record || t.Kind == Array, own: t.Own, width: t.slot()}
}

func (g *generator) cast(n *node) value {
	x := n.kids[0]
	v := g.value(x)
	if n.typ.Kind == Array {
		// An integer as an array of its bytes.
		return value{x: call(packCode, g.load(v, n.at), script.Number(n.typ.Size)), t: n.typ, raw: true, own: true}
	}
	if x.typ.Kind == String && n.typ.Kind == Pointer {
		if !v.mem {
			g.fail(n.at, "text that is not in memory has no address")
		}
		return value{x: v.x, t: n.typ} // of a structure's bytes, which are read as text
	}
	if x.typ.Kind == Array {
		y := g.load(v, n.at)
		return value{x: script.Member{X: y, Size: n.typ.Size, Of: script.Int}, t: n.typ, width: n.typ.slot()}
	}
	if x.typ.Context && x.typ.Kind == Pointer {
		return value{x: v.x, t: &Type{Kind: Pointer, Size: 8, Elem: n.typ.target(), Context: true}}
	}
	v = g.loaded(x)
	if n.typ.Bool {
		return value{x: script.Unary{Op: script.Not, X: script.Unary{Op: script.Not, X: v.x}}, t: n.typ, width: n.typ.slot()}
	}
	if n.typ.isInt() && v.x.Type() == script.Int && g.newest() {
		return value{x: convert(v.x, v.bits(), n.typ.slot(), v.t.Signed), t: n.typ, width: n.typ.slot()}
	}
	if n.typ.isInt() && v.x.Type() == script.Int {
		// By the sign of the type that is cast to.
		return value{x: convert(v.x, v.bits(), n.typ.slot(), n.typ.Signed), t: n.typ, width: n.typ.slot()}
	}
	return value{x: v.x, t: n.typ, width: v.width}
}

func (g *generator) field(n *node) value {
	x := n.kids[0]
	switch {
	case x.typ.Kind == TupleKind:
		return g.held(script.Part{X: g.text(x), Layout: x.typ.layout(), N: int(n.num)}, n.typ.owned())
	case x.typ.Args:
		return g.argument(n)
	}
	v := g.value(x)
	m, ok := x.typ.C.Member(n.text)
	if !ok {
		g.fail(n.at, "there is no field %s", n.text)
	}
	if v.t.Context {
		name, _ := x86.RegName(m.Offset)
		r, known := script.RegisterNumber(name)
		if !known {
			g.fail(n.at, "the register %s cannot be read", n.text)
		}
		return value{x: script.Low(script.Register{N: r}, n.typ.slot()), t: n.typ, width: n.typ.slot()}
	}
	if v.raw {
		return value{x: v.x, t: n.typ, raw: true, own: v.own, off: v.off + int(m.Offset), field: m.Bits, bit: m.Bit}
	}
	if !v.mem {
		g.fail(n.at, "the record is not in memory")
	}
	return value{x: script.Plus(v.x, m.Offset), t: n.typ, mem: true, field: m.Bits, bit: m.Bit}
}

func (g *generator) element(n *node) value {
	x := n.kids[0]
	if x.typ.Kind == String {
		return g.character(n)
	}
	v := g.value(x)
	i := g.num(n.kids[1])
	size := int64(n.typ.Size)
	if v.raw {
		k, _ := i.(script.Number)
		return value{x: v.x, t: n.typ, raw: true, own: v.own, off: v.off + int(int64(k)*size)}
	}
	base := v.x
	if x.typ.Kind == Pointer {
		base = g.load(v, n.at)
	}
	return value{x: script.Plus(base, int64(i.(script.Number))*size), t: n.typ, mem: true}
}

func (g *generator) deref(n *node) value {
	x := n.kids[0]
	v := g.value(x)
	if x.typ.Kind == Record {
		return v
	}
	if v.t.Context {
		return value{x: v.x, t: &Type{Kind: Record, C: x.typ.target().C, Context: true}}
	}
	return value{x: g.load(v, n.at), t: n.typ, mem: true}
}

func (g *generator) unary(n *node) value {
	v := g.integer(n.kids[0])
	out := value{t: n.typ, width: v.bits()}
	switch n.text {
	case "!":
		out.x = script.Unary{Op: script.Not, X: v.x}
	case "~":
		out.x = script.Low(script.Unary{Op: script.Complement, X: v.x}, v.bits())
	default:
		out.x = script.Low(script.Unary{Op: script.Neg, X: v.x}, v.bits())
	}
	return out
}

// ternary has an integer with 64 bits, by the sign of the first of the two.
func (g *generator) ternary(n *node) value {
	cond, then, other := g.condition(n.kids[0]), g.loaded(n.kids[1]), g.loaded(n.kids[2])
	if n.typ.isInt() && then.x.Type() == script.Int && other.x.Type() == script.Int {
		if g.newest() {
			return value{x: script.Cond{If: cond, Then: script.Low(g.wide(then), n.typ.slot()), Else: script.Low(g.wide(other), n.typ.slot())}, t: n.typ, width: n.typ.slot()}
		}
		then.x = convert(then.x, then.bits(), 64, n.typ.Signed)
		other.x = convert(other.x, other.bits(), 64, n.typ.Signed)
	}
	x := script.Cond{If: cond, Then: g.fitted(then.x, n.kids[1].typ, n.typ), Else: g.fitted(other.x, n.kids[2].typ, n.typ)}
	return g.held(x, n.typ)
}

func (g *generator) increment(n *node) value {
	x := n.kids[0]
	op, width, by := script.Add, 64, script.Number(1)
	if n.text == "--" {
		op = script.Sub
	}
	if x.typ.Kind == Pointer {
		by = script.Number(max(x.typ.target().Size, 1))
	}
	a := script.Assign{Op: op, X: by, Old: n.post, Near: g.near(n.at)}
	if x.op == nMap {
		a.To = g.updated(g.elem(x), n.at)
	} else {
		a.To = g.variable(x.variable)
		width = x.typ.slot()
	}
	if a.To.Type() != script.Int {
		g.fail(n.at, "a value of type '%s' cannot be counted", x.typ)
	}
	if width < 64 {
		a.Op, a.X = script.Set, script.Low(script.Binary{Op: op, X: a.To, Y: by}, width)
	}
	return value{x: a, t: n.typ, width: width}
}

// argument is a field of args.
func (g *generator) argument(n *node) value {
	g.usesArgs = true
	if g.probe.Trace != nil && g.event == nil {
		i := parameterOf(g.probe, n.text) + 1 // the first parameter of a callback is its own data
		if i < 1 || i >= len(script.Params) {
			g.fail(n.at, "the parameter %s is not in a register", n.text)
		}
		return value{x: script.Low(script.Register{N: script.Params[i]}, n.typ.slot()), t: n.typ, width: n.typ.slot()}
	}
	if g.event != nil {
		for _, f := range g.event.Fields {
			if f.Name == n.text {
				t := n.typ
				if f.InMemory {
					return value{x: f.X, t: t, mem: true}
				}
				return value{x: script.Low(f.X, t.slot()), t: t, width: t.slot()}
			}
		}
		g.fail(n.at, "there is no field %s", n.text)
	}
	at := g.c.place(g.probe)
	if at == nil {
		g.fail(n.at, "Can't find function parameter %s", n.text)
	}
	v, err := at.Variable(n.text)
	if err != nil || v.Location.Kind != source.Register || v.Type.Real().Composite() {
		g.fail(n.at, "the parameter %s of %s is not in a register", n.text, g.probe.Function)
	}
	t := n.typ
	x := script.Low(script.Register{N: v.Location.Reg}, t.slot())
	if g.probe.Kind != host.Return {
		return value{x: x, t: t, width: t.slot()}
	}
	i, ok := g.saved[n.text]
	if !ok {
		i = len(g.saves)
		g.saved[n.text] = i
		g.saves = append(g.saves, script.Save{N: i, X: x})
	}
	return value{x: script.Saved{N: i}, t: t, width: t.slot()}
}
