package stap

import (
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/source"
	"kprobelab/internal/source/formula"
)

// value is the value of an expression of the target: an integer, or memory of a type.
type value struct {
	// x is the integer, or the address of the memory with inMemory.
	x        script.Expr
	inMemory bool
	t        *ctype.Type
	bits     int
	bit      int
	old      bool
	user     bool
	// inReg: the value is the content of the register reg, and nothing else is added to it.
	inReg bool
	reg   int
	// pieces are the places of the parts of a structure that is not in memory; x is nil then.
	pieces []source.Piece
}

// variable is a variable of the place.
func (g *generator) variable(t *token, name string) value {
	switch {
	case g.probe.Trace != nil:
		for i, p := range g.probe.Trace.Params {
			if p.Name == name {
				return value{x: script.Register{N: script.Params[i+1]}, t: p.Type}
			}
		}
		g.a.fail(t, "unable to find tracepoint variable '$%s' (alternatives: %s)", name, paramNames(g.probe.Trace.Params))
	case g.probe.Place == nil:
		g.a.fail(t, "unresolved target-symbol expression")
	}
	if name == "return" {
		if g.probe.Kind != Return {
			g.a.fail(t, "unresolved target-symbol expression")
		}
		rt := g.probe.Place.Returns()
		if rt.Real().Kind == ctype.Void {
			g.a.fail(t, "function '%s' has no return value", g.probe.Function)
		}
		return value{x: narrow(script.Register{N: 0}, rt), t: rt, inReg: true}
	}
	v, err := g.local(name)
	if err != nil {
		g.a.fail(t, "unable to find local '%s' in %s: %v", name, g.probe.Function, err)
	}
	return g.located(t, v)
}

// local is the variable of a name that can be read, else whatever has that name.
func (g *generator) local(name string) (*source.Variable, error) {
	vars, err := g.probe.Place.Visible()
	if err != nil {
		return nil, err
	}
	for _, v := range vars {
		if v.Name == name {
			return v, nil
		}
	}
	return g.probe.Place.Variable(name)
}

func paramNames(list []ctype.Param) string {
	var names []string
	for _, p := range list {
		names = append(names, "$"+p.Name)
	}
	return strings.Join(names, " ")
}

func (g *generator) located(t *token, v *source.Variable) value {
	out := value{t: v.Type}
	switch at := v.Location; {
	case at.Formula != nil:
		out.x, out.inMemory = computed(at.Formula, t.near()), at.InMemory
		if !out.inMemory {
			out.x = narrow(out.x, v.Type)
		}
		return out
	case v.Type.Real().Composite() && at.Kind == source.Pieces:
		out.pieces = at.Pieces
		return out
	case v.Type.Real().Composite() && at.Kind == source.Register:
		out.pieces = []source.Piece{{Location: at, Size: v.Type.Real().Size()}}
		return out
	}
	l, err := v.Value()
	if err != nil {
		g.a.fail(t, "failed to retrieve location attribute for '%s': %v", v.Name, err)
	}
	switch l.Kind {
	case source.Register:
		out.x = script.Register{N: l.Reg}
	case source.Constant:
		out.x = script.Number(l.Value)
	case source.Static:
		out.x, out.inMemory = script.Number(int64(l.Addr)+l.Offset), true
	default:
		g.a.fail(t, "failed to retrieve location attribute for '%s'", v.Name)
	}
	for _, r := range l.Reads {
		if out.inMemory {
			out.x = script.Load{Addr: out.x, Size: 8, Near: t.near()}
		}
		out.x, out.inMemory = script.Plus(out.x, r.Offset), true
	}
	if l.Address {
		out.inMemory = false
	}
	if !out.inMemory && l.Kind == source.Register {
		out.reg, out.inReg = l.Reg, !l.Address && len(l.Reads) == 0
		out.x = narrow(out.x, v.Type)
	}
	return out
}

// computes has the operations of formulas in the words of scripts.
var computes = map[formula.Op]script.Op{
	formula.Add: script.Add, formula.Sub: script.Sub, formula.Mul: script.Mul, formula.Div: script.Div, formula.DivU: script.DivU, formula.ModU: script.ModU,
	formula.And: script.And, formula.Or: script.Or, formula.Xor: script.Xor, formula.Shl: script.Shl, formula.Shr: script.Shr, formula.ShrU: script.ShrU,
	formula.Eq: script.Eq, formula.Ne: script.Ne, formula.Lt: script.Lt, formula.Le: script.Le, formula.Gt: script.Gt, formula.Ge: script.Ge,
	formula.LtU: script.LtU, formula.LeU: script.LeU, formula.GtU: script.GtU, formula.GeU: script.GeU,
	formula.Neg: script.Neg, formula.Complement: script.Complement,
}

// computed is a formula as an expression of the script.
func computed(f *formula.Formula, near string) script.Expr {
	switch {
	case f.Op == formula.Number:
		return script.Number(f.N)
	case f.Op == formula.Register:
		return script.Register{N: int(f.N)}
	case f.Op == formula.Load:
		return script.Load{Addr: computed(f.X, near), Size: int(f.N), Near: near}
	case f.Y == nil:
		return script.Unary{Op: computes[f.Op], X: computed(f.X, near)}
	}
	return script.Binary{Op: computes[f.Op], X: computed(f.X, near), Y: computed(f.Y, near), Near: near}
}

// member is one of a structure or a union.
func (g *generator) member(v value, m ctype.Member, t *token) value {
	if v.pieces == nil {
		return value{x: script.Plus(v.x, m.Offset), inMemory: v.inMemory, t: m.Type, bits: m.Bits, bit: m.Bit, old: m.Old, user: v.user}
	}
	at := int64(0)
	for i, p := range v.pieces {
		switch {
		case at != m.Offset || m.Bits > 0:
		case m.Type.Real().Composite():
			return value{t: m.Type, pieces: v.pieces[i:]}
		default:
			return g.located(t, &source.Variable{Name: m.Name, Type: m.Type, Location: p.Location})
		}
		at += p.Size
	}
	g.a.fail(t, "cannot handle offset into register")
	return v
}

// narrow cuts a register to what its type has.
func narrow(x script.Expr, t *ctype.Type) script.Expr {
	r := t.Real()
	if r.Size() <= 0 || r.Size() >= 8 || r.Kind == ctype.Pointer || r.Composite() {
		return x
	}
	bits := int(8 * r.Size())
	if r.Signed {
		return script.Signed(x, bits)
	}
	return script.Low(x, bits)
}

// target is the value of $name, @var, @cast or any pointer, after the steps into it.
func (g *generator) target(tg *target) value {
	var v value
	switch tg.what {
	case "$":
		name := strings.TrimPrefix(tg.name, "$")
		v = g.variable(tg.tok, name)
	case "@var":
		v = g.global(tg)
	case "@cast":
		v = g.cast(tg)
	default:
		t := g.a.ctypeOf(g.b.scope, tg.of)
		if t == nil {
			g.a.fail(tg.tok, "unknown type in dereference; use @cast to give it one")
		}
		v = value{x: g.expr(tg.of), t: t}
	}
	for _, step := range tg.path {
		if step.pretty {
			break
		}
		v = g.step(v, step)
	}
	return v
}

func (g *generator) global(tg *target) value {
	name, _, _ := strings.Cut(tg.name, "@")
	if g.a.k == nil || g.a.k.Source == nil {
		g.a.fail(tg.tok, "@var needs a kernel: name one with -r IMAGE")
	}
	if g.probe.Place != nil && g.a.k.HasLines {
		if v, err := g.probe.Place.Variable(name); err == nil && v.Global {
			return g.located(tg.tok, v)
		}
	}
	if at := g.a.k.Source.Symbols(name); len(at) > 0 {
		if t, err := g.a.k.Source.GlobalType(name); err == nil {
			return value{x: script.Number(int64(at[0].Start)), inMemory: true, t: t}
		}
	}
	g.a.fail(tg.tok, "unable to find global '%s'", name)
	return value{}
}

func (g *generator) cast(tg *target) value {
	t := g.a.named(tg)
	return value{x: g.expr(tg.of), t: ctype.PointerTo(t)}
}

// named is the type that @cast names.
func (a *analysis) named(tg *target) *ctype.Type {
	if a.k == nil || a.k.Source == nil {
		a.fail(tg.tok, "@cast needs a kernel: name one with -r IMAGE")
	}
	name := tg.name
	for _, p := range []string{"struct ", "union ", "enum "} {
		name = strings.TrimPrefix(name, p)
	}
	stars := len(name) - len(strings.TrimRight(name, "* "))
	depth := strings.Count(name[len(name)-stars:], "*")
	name = strings.TrimRight(name, "* ")
	if tg.module != "" && tg.module != "kernel" && !strings.HasPrefix(tg.module, "kernel<") && !strings.HasPrefix(tg.module, "kernel:") {
		a.fail(tg.tok, "@cast: types of %q are not there, only the kernel's", tg.module)
	}
	t, err := a.k.Source.Named(name)
	if err != nil {
		a.fail(tg.tok, "type definition '%s' not found in 'kernel': %v", tg.name, err)
	}
	for range depth {
		t = ctype.PointerTo(t)
	}
	return t
}

// load is the value as an integer, or the address of what has parts.
func (g *generator) load(v value, t *token) script.Expr {
	r := v.t.Real()
	if v.pieces != nil {
		g.a.fail(t, "'%s' is in registers; only its members can be read", v.t)
	}
	if !v.inMemory || r.Composite() || r.Kind == ctype.Array {
		return v.x
	}
	size := int(r.Size())
	switch {
	case r.Float:
		g.a.fail(t, "'%s' is a floating-point number, which scripts cannot read", v.t)
	case size != 1 && size != 2 && size != 4 && size != 8:
		g.a.fail(t, "cannot read a '%s' of %d bytes", v.t, size)
	}
	if v.bits == 0 {
		return script.Load{Addr: v.x, Size: size, Signed: r.Signed, Space: space(v.user), Near: t.near()}
	}
	return script.Field(script.Load{Addr: v.x, Size: size, Space: space(v.user), Near: t.near()}, v.bit, v.bits, r.Signed)
}

// step goes to a member, or to an element.
func (g *generator) step(v value, s access) value {
	t := v.t.Real()
	if s.index != nil {
		size := func(e *ctype.Type) int64 {
			n := e.Size()
			if n <= 0 {
				g.a.fail(s.tok, "elements of type '%s' have no size", e)
			}
			return n
		}
		var base script.Expr
		switch t.Kind {
		case ctype.Pointer:
			base = g.load(v, s.tok)
		case ctype.Array:
			if v.pieces != nil {
				g.a.fail(s.tok, "cannot handle offset into register")
			}
			base = v.x
		default:
			g.a.fail(s.tok, "invalid access '[...]' vs '%s'", v.t)
		}
		e := t.Target()
		i := g.expr(s.index)
		if n, ok := i.(script.Number); ok {
			return value{x: script.Plus(base, int64(n)*size(e)), inMemory: true, t: e, user: v.user}
		}
		off := script.Binary{Op: script.Mul, X: i, Y: script.Number(size(e))}
		return value{x: script.Binary{Op: script.Add, X: base, Y: off}, inMemory: true, t: e, user: v.user}
	}
	if t.Kind == ctype.Pointer {
		v = value{x: g.load(v, s.tok), inMemory: true, t: t.Target(), user: v.user}
		t = v.t.Real()
	}
	if !t.Composite() {
		g.a.fail(s.tok, "invalid access '->%s' vs '%s'", s.name, v.t)
	}
	if !v.inMemory && v.pieces == nil {
		g.a.fail(s.tok, "'%s' is in registers; its members cannot be read", v.t)
	}
	m, ok := t.Member(s.name)
	if !ok {
		g.a.fail(s.tok, "unable to find member '%s' for %s (alternatives: %s)", s.name, t, memberNames(t))
	}
	return g.member(v, m, s.tok)
}

func memberNames(t *ctype.Type) string {
	var names []string
	for _, m := range t.Members() {
		if m.Name != "" {
			names = append(names, m.Name)
		}
		if len(names) == 5 {
			names = append(names, "...")
			break
		}
	}
	return strings.Join(names, " ")
}

// targetExpr is a target as an expression of the script.
func (g *generator) targetExpr(tg *target) script.Expr {
	if n := len(tg.path); n > 0 && tg.path[n-1].pretty {
		depth := 1
		if tg.path[n-1].name == "$$" {
			depth = maxPretty // no value has more values in it
		}
		if n == 1 && strings.HasPrefix(tg.name, "$$") && tg.what == "$" {
			return g.all(tg, depth)
		}
		return g.pretty(g.target(tg), tg.tok, depth)
	}
	if tg.what == "$" {
		switch tg.name {
		case "$$vars", "$$parms", "$$locals", "$$return", "$$name":
			return g.all(tg, 0)
		}
		if strings.HasPrefix(tg.name, "$$") {
			g.a.fail(tg.tok, "unresolved target-symbol expression")
		}
	}
	if g.probe.Kind == Return && tg.what == "$" && tg.name != "$return" && !g.entry {
		return g.saved(tg.tok, tg)
	}
	v := g.target(tg)
	if tg.address {
		if !v.inMemory || v.bits > 0 || v.pieces != nil {
			g.a.fail(tg.tok, "cannot take address of '%s'", tg.name)
		}
		return v.x
	}
	if r := v.t.Real(); r.Composite() {
		member := ""
		for _, m := range r.Members() {
			if m.Name != "" {
				member = fmt.Sprintf(" such as '->%s'", m.Name)
				break
			}
		}
		g.a.fail(tg.tok, "'%s' is being accessed instead of a member%s", v.t.Postfix(), member)
	}
	return g.load(v, tg.tok)
}

// saved is a value of the entry, kept for the return.
func (g *generator) saved(t *token, x expr) script.Expr {
	n := len(g.saves)
	entry := *g
	entry.entry = true
	e := entry.expr(x)
	if e.Type() != script.Int {
		g.a.fail(t, "@entry of a string is not there; save it in an array at the function's call")
	}
	if n >= bounded.StapSaved {
		g.a.fail(t, "more than %d values of the entry", bounded.StapSaved)
	}
	g.saves = append(g.saves, script.Save{N: n, X: e})
	return script.Saved{N: n}
}

// all is $$vars and its like, with a depth their values whole.
func (g *generator) all(tg *target, depth int) script.Expr {
	var pieces []script.Piece
	var args []script.Expr
	put := func(label string, piece script.Piece, x script.Expr) {
		if len(pieces) > 0 {
			label = " " + label
		}
		pieces = append(pieces, script.Piece{Text: label + "=" + piece.Text})
		if x != nil {
			pieces, args = append(pieces, piece), append(args, x)
		}
	}
	add := func(label string, v *value) {
		switch {
		case v == nil:
			put(label, script.Piece{Text: "?"}, nil)
		case depth > 0:
			put(label, script.Piece{Verb: 's', Width: -1, Precision: -1}, g.pretty(*v, tg.tok, depth))
		case v.t.Real().Composite():
			put(label, script.Piece{Text: "{...}"}, nil)
		case v.t.Real().Kind == ctype.Array:
			put(label, script.Piece{Text: "[...]"}, nil)
		default:
			put(label, script.Piece{Verb: 'x', Alternate: true, Width: -1, Precision: -1}, g.load(*v, tg.tok))
		}
	}
	switch name := tg.name; {
	case name == "$$name":
		if g.probe.Trace == nil {
			g.a.fail(tg.tok, "unresolved target-symbol expression")
		}
		return script.Text(g.probe.Trace.Name)
	case name == "$$return":
		if g.probe.Kind == Return && g.probe.Place != nil && g.probe.Place.Returns().Real().Kind != ctype.Void {
			v := g.variable(tg.tok, "return")
			add("return", &v)
		}
	case g.probe.Trace != nil:
		for _, p := range g.probe.Trace.Params {
			v := g.variable(tg.tok, p.Name)
			add("$"+p.Name, &v)
		}
	case g.probe.Place == nil:
		g.a.fail(tg.tok, "unresolved target-symbol expression")
	default:
		vars, err := g.probe.Place.Variables()
		if err != nil {
			g.a.fail(tg.tok, "%v", err)
		}
		for _, one := range vars {
			if one.Parameter && name == "$$locals" || !one.Parameter && name == "$$parms" {
				continue
			}
			var v value
			if !g.a.possible(func() { v = g.located(tg.tok, one) }) {
				add(one.Name, nil)
				continue
			}
			if g.probe.Kind == Return && !g.entry {
				if r := v.t.Real(); !r.Composite() && r.Kind != ctype.Array {
					sym := &target{base: tg.base, what: "$", name: "$" + one.Name}
					if !g.a.possible(func() { v = value{x: g.saved(tg.tok, sym), t: v.t} }) {
						add(one.Name, nil)
						continue
					}
				}
			}
			add(one.Name, &v)
		}
	}
	return script.Sprintf{Format: pieces, Args: args, Near: tg.tok.near()}
}

// maxPretty is the number of values that may be printed of one value that is printed whole.
const maxPretty = 32

// pretty returns the text of a value that is printed whole, or ERROR if a part of it cannot be read. depth is the
// number of levels of members that are printed.
func (g *generator) pretty(v value, t *token, depth int) script.Expr {
	w := &printer{g: g, t: t, walk: ctype.Writing()}
	if r := v.t.Real(); r.Kind == ctype.Pointer && r.Target().Real().Composite() {
		v = value{x: g.load(v, t), inMemory: true, t: r.Target(), user: v.user}
	}
	w.value(v, depth, true)
	w.flush()
	return script.Rescue{X: script.Sprintf{Format: w.pieces, Args: w.args, Near: t.near()}, Else: script.Text("ERROR")}
}

type printer struct {
	walk   *ctype.Walk
	g      *generator
	t      *token
	text   string
	pieces []script.Piece
	args   []script.Expr
}

func (w *printer) flush() {
	if w.text != "" {
		w.pieces = append(w.pieces, script.Piece{Text: w.text})
	}
	w.text = ""
}

func (w *printer) verb(verb byte, x script.Expr) {
	w.flush()
	w.pieces = append(w.pieces, script.Piece{Verb: verb, Width: -1, Precision: -1, Alternate: verb == 'c'})
	w.args = append(w.args, x)
}

func (w *printer) value(v value, depth int, top bool) {
	if !w.walk.Enter() {
		w.text += "..."
		return
	}
	defer w.walk.Leave()
	r := v.t.Real()
	switch {
	case r.Composite() && depth == 0:
		w.text += "{...}"
	case r.Composite():
		w.members(v, r, depth)
	case r.Kind == ctype.Array && depth == 0 && !top:
		w.text += "[...]"
	case r.Kind == ctype.Array && r.Target().Real().Char:
		w.verb('s', callText("__string_quoted", v.x))
	case r.Kind == ctype.Array:
		w.text += "["
		w.value(value{x: v.x, inMemory: true, t: r.Target(), user: v.user}, depth-1, false)
		if r.Count != 1 {
			w.text += ", ..."
		}
		w.text += "]"
	case r.Kind == ctype.Pointer && r.Target().Real().Char:
		w.verb('s', callText("__string_quoted", w.g.load(v, w.t)))
	case r.Kind == ctype.Pointer:
		w.verb('p', w.g.load(v, w.t))
	case r.Size() == 0 || r.Float:
		w.text += "?"
	case r.Char:
		w.text += "'"
		w.verb('c', w.g.load(v, w.t))
		w.text += "'"
	case r.Signed:
		w.verb('i', w.g.load(v, w.t))
	default:
		w.verb('u', w.g.load(v, w.t))
	}
}

// members writes a structure's members; those without a name are called by their kind.
func (w *printer) members(v value, r *ctype.Type, depth int) {
	w.text += "{"
	for i, m := range r.Members() {
		if i > 0 {
			w.text += ", "
		}
		if len(w.args) >= maxPretty || w.walk.Full() {
			w.text += "..."
			break
		}
		switch {
		case m.Name != "":
			w.text += "." + m.Name + "="
		case m.Type.Real().Kind == ctype.Union:
			w.text += "<union>="
		default:
			w.text += "<class>="
		}
		var part value
		if !w.g.a.possible(func() { part = w.g.member(v, m, w.t) }) {
			w.text += "?"
			continue
		}
		w.value(part, depth-1, false)
	}
	w.text += "}"
}

func callText(name string, args ...script.Expr) script.Expr {
	return script.CallBuiltin{Builtin: builtins[name].code, Args: args}
}

// target finds the type of a target without a place: a string where it is printed whole.
func (a *analysis) target(s *scope, x *target) vtype {
	if x.of != nil {
		a.expr(s, x.of, long)
	}
	for _, step := range x.path {
		if step.index != nil {
			a.expr(s, step.index, long)
		}
	}
	if n := len(x.path); n > 0 && x.path[n-1].pretty {
		return str
	}
	if x.what == "$" && strings.HasPrefix(x.name, "$$") {
		return str
	}
	return long
}

// ctypeOf returns the type to which an integer expression points, nil if it is not known.
func (a *analysis) ctypeOf(s *scope, x expr) (t *ctype.Type) {
	if a.k == nil || a.k.Source == nil {
		return nil
	}
	switch x := x.(type) {
	case *symbol:
		if v := s.locals[x.name]; v != nil {
			return v.ctype
		}
		if v := a.globals[x.name]; v != nil {
			return v.ctype
		}
	case *index:
		if v := a.globals[x.name]; v != nil {
			return v.ctype
		}
	case *ternary:
		if t := a.ctypeOf(s, x.x); t != nil {
			return t
		}
		return a.ctypeOf(s, x.y)
	case *assign:
		return a.ctypeOf(s, x.y)
	case *call:
		if list := a.functions[signature(x.name, len(x.args))]; len(list) > 0 {
			return list[0].ctype
		}
		if b := builtins[x.name]; b != nil && b.points != "" {
			if t, err := a.k.Source.Named(b.points); err == nil {
				return ctype.PointerTo(t)
			}
		}
	case *target:
		if a.at == nil && x.what == "$" {
			return nil
		}
		a.possible(func() {
			g := &generator{a: a, probe: a.at, b: &body{scope: s}, entry: true}
			if g.probe == nil {
				g.probe = &Probe{}
			}
			v := g.target(x)
			if t = v.t; x.address {
				t = ctype.PointerTo(v.t)
			}
		})
	}
	return t
}

// space is the memory that stap reads: the kernel's readers take any address.
func space(user bool) script.Space {
	if user {
		return script.UserSpace
	}
	return script.AnySpace
}
