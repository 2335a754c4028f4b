package stap

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
)

// generator makes the program of one handler or function.
type generator struct {
	a     *analysis
	b     *body
	probe *Probe
	// saves are the values that the entry of a function keeps for its return. entry: the
	// generator makes the expression of such a value.
	saves []script.Save
	entry bool
	// loops are the arrays of the foreach loops around the current statement.
	loops []string
}

var types = [...]script.Type{script.Int, script.Int, script.String, script.Stat}

func (t vtype) script() script.Type { return types[t] }

func (s *scope) types() []script.Type {
	var list []script.Type
	for _, v := range s.order {
		list = append(list, v.typ.script())
	}
	return list
}

// limit returns one of SystemTap's limits, as -D sets it or by default.
func (a *analysis) limit(name string, otherwise int) int {
	if v, ok := a.o.Limits[name]; ok {
		return int(v)
	}
	return otherwise
}

func (a *analysis) limits(nesting int) script.Limits {
	return script.Limits{
		StringSize: min(max(a.limit("MAXSTRINGLEN", 512), 16), bounded.StapString),
		Entries:    min(max(a.limit("MAXMAPENTRIES", 2048), 1), bounded.StapArray),
		Nesting:    min(a.limit("MAXNESTING", nesting), bounded.StapCalls),
		Memory:     bounded.StapMemory,
	}
}

// MaxAction is the number of statements that a handler may execute (MAXACTION). Handlers of begin, end and
// error probes may execute ten times as many.
const MaxAction = 1000

// generateGlobals makes variables and arrays of the globals that the script uses.
func (a *analysis) generateGlobals(p *script.Program) {
	for _, name := range a.globalNames() {
		v := a.globals[name]
		if v.decl.library && !v.read && !v.written && v.met == 0 {
			continue
		}
		a.used = append(a.used, v)
		if v.arity == 0 || v.arity == -1 {
			v.v = &script.Var{Name: v.name, Type: v.typ.script(), Histogram: v.hist}
			if l, ok := v.decl.init.(*literal); ok {
				v.v.Number, v.v.Text = l.number, unescape(l.text)
			}
			if given, ok := a.o.Globals[v.name]; ok && !v.decl.library {
				v.v.Text = given
				if v.typ != str {
					n, err := strconv.ParseInt(given, 0, 64)
					if err != nil {
						a.fail(v.tok, "-G %s=%s: want a number", v.name, given)
					}
					v.v.Number = n
				}
			}
			p.Vars = append(p.Vars, v.v)
			continue
		}
		v.a = &script.Array{Name: v.name, Value: v.typ.script(), Max: int(v.decl.max), Wrap: v.decl.wrap, Histogram: v.hist}
		for _, k := range v.keys {
			v.a.Keys = append(v.a.Keys, k.script())
		}
		if v.keys == nil {
			v.a.Keys = []script.Type{script.Int}
		}
		p.Arrays = append(p.Arrays, v.a)
	}
}

// generate makes the program.
func (a *analysis) generate() {
	p := &script.Program{}
	a.program = p
	a.generateGlobals(p)
	for _, f := range a.order {
		f.out = &script.Func{Name: f.decl.name, Result: f.result.script(), Params: len(f.decl.params)}
		p.Funcs = append(p.Funcs, f.out)
	}
	for _, f := range a.order {
		if f.next != nil {
			f.out.Next = f.next.out
		}
		try := a.catch
		if a.o.List {
			try = a.possible // it is only listed what an alias would call
		}
		try(func() {
			if f.decl.embedded != nil {
				a.fail(f.decl.tok, "function %s is embedded C, which is not compiled here", f.decl.name)
			}
			g := &generator{a: a, b: &body{scope: f.scope}, probe: &Probe{}}
			f.out.Body = g.stmt(f.body)
		})
		f.out.Locals = f.scope.types()
	}
	depth, recursive := a.nesting()
	if recursive {
		depth += 10
	}
	p.Limits = a.limits(depth + 1)
	for _, b := range a.bodies {
		for _, d := range b.places {
			a.handler(b, d)
		}
	}
}

// globalNames returns the names of the globals: first the used ones in the order of use, then the others.
func (a *analysis) globalNames() []string {
	var names []string
	for _, s := range []*parsed{a.user, a.lib} {
		for _, g := range s.globals {
			if v := a.globals[g.name]; v != nil && v.decl == g {
				names = append(names, g.name)
			}
		}
	}
	place := func(name string) int {
		if v := a.globals[name]; v.met > 0 {
			return v.met
		}
		return len(names) + a.met
	}
	slices.SortStableFunc(names, func(x, y string) int { return place(x) - place(y) })
	return names
}

// handler makes the handler of one probe.
func (a *analysis) handler(b *body, d *derived) {
	pr := d.probe
	g := &generator{a: a, b: b, probe: pr}
	a.at = pr
	defer func() { a.at = nil }()
	var list script.Block
	try := a.catch
	if pr.Optional {
		try = a.possible
	}
	ok := try(func() {
		if b.cond != nil {
			list = append(list, script.If{Cond: g.expr(b.cond), Else: script.Next{}})
		}
		for _, s := range b.list {
			list = append(list, g.listed(s))
		}
	})
	if !ok {
		pr.Kind = Never // one that need not be there
		return
	}
	actions := a.limit("MAXACTION", MaxAction)
	if pr.Kind == Begin || pr.Kind == End || pr.Kind == Error {
		actions = a.limit("MAXACTION_INTERRUPTIBLE", 10*actions)
	}
	pr.Handler = &script.Handler{Name: pr.Point, Locals: b.scope.types(), Body: list, Actions: actions}
	a.program.Handlers = append(a.program.Handlers, pr.Handler)
	for _, v := range b.scope.order {
		pr.Locals = append(pr.Locals, v.name+":"+v.typ.shown())
	}
	if len(g.saves) > 0 {
		var entry script.Block
		for _, s := range g.saves {
			// A value that cannot be read at the entry is 0 at the return.
			entry = append(entry, script.Try{Body: s, Catch: script.Save{N: s.N, X: script.Number(0)}})
		}
		pr.Entry = &script.Handler{Name: pr.Point, Locals: b.scope.types(), Body: entry, Actions: MaxAction}
		pr.Saved = len(g.saves)
		a.program.Handlers = append(a.program.Handlers, pr.Entry)
	}
}

// listed makes a statement of a handler. If probes are only listed, the variables that an alias of
// the library reads may be missing.
func (g *generator) listed(s stmt) (out script.Stmt) {
	bl, ok := s.(*block)
	if !ok || !g.a.o.List || !bl.tok.pos.file.library {
		return g.stmt(s)
	}
	var all script.Block
	for _, one := range bl.list {
		g.a.possible(func() { all = append(all, g.stmt(one)) })
	}
	return all
}

func (t vtype) shown() string {
	if t == unknown {
		return "long"
	}
	return t.String()
}

// nesting returns the largest number of functions of the script that can be active at once, and whether one calls
// itself.
func (a *analysis) nesting() (depth int, recursive bool) {
	calls := map[*fn][]*fn{}
	for _, f := range a.order {
		walk(f.body, func(x expr) {
			if c, ok := x.(*call); ok {
				if list := a.functions[signature(c.name, len(c.args))]; len(list) > 0 {
					calls[f] = append(calls[f], list...)
				}
			}
		})
	}
	state := map[*fn]int{} // 0 new, -1 being looked at, else the depth
	var visit func(f *fn) int
	visit = func(f *fn) int {
		switch d := state[f]; {
		case d < 0:
			recursive = true
			return 0
		case d > 0:
			return d
		}
		state[f] = -1
		most := 0
		for _, to := range calls[f] {
			most = max(most, visit(to))
		}
		state[f] = most + 1
		return most + 1
	}
	for _, f := range a.order {
		depth = max(depth, visit(f))
	}
	return depth, recursive
}

func (g *generator) stmt(s stmt) script.Stmt {
	switch s := s.(type) {
	case *block:
		var list script.Block
		for _, one := range s.list {
			list = append(list, g.stmt(one))
		}
		return list
	case *nothing:
		return script.Block{}
	case *exprStmt:
		return g.exprStmt(s.x)
	case *ifStmt:
		return g.ifStmt(s)
	case *forStmt:
		out := script.Loop{Near: s.body.position().near()}
		if s.start != nil {
			out.Init = g.value(s.start)
		}
		if s.cond != nil {
			out.Cond = g.expr(s.cond)
		}
		if s.post != nil {
			out.Post = g.value(s.post)
		}
		g.loops = append(g.loops, "")
		out.Body = g.stmt(s.body)
		g.loops = g.loops[:len(g.loops)-1]
		return out
	case *foreachStmt:
		return g.foreach(s)
	case *tryStmt:
		out := script.Try{Body: g.stmt(s.body)}
		if s.to != nil {
			out.To = g.symbol(s.to.tok, s.to.name)
		}
		out.Catch = g.stmt(s.catch)
		return out
	case *deleteStmt:
		return g.delete(s)
	case *returnStmt:
		if s.x == nil {
			return script.Return{}
		}
		return script.Return{X: g.expr(s.x)}
	case *jumpStmt:
		return g.jump(s)
	}
	panic("BUG: unknown statement")
}

func (g *generator) jump(s *jumpStmt) script.Stmt {
	switch s.tok.text {
	case "next":
		if g.b.scope.fn != nil {
			return script.Skip{Near: s.tok.near()}
		}
		return script.Next{}
	case "break":
		if len(g.loops) == 0 {
			g.a.untranslated(s.tok, "cannot 'break' outside loop")
		}
		return script.Break{}
	}
	if len(g.loops) == 0 {
		g.a.untranslated(s.tok, "cannot 'continue' outside loop")
	}
	return script.Continue{}
}

// ifStmt leaves out what a constant condition leaves out: there may be variables in it that the
// place does not have.
func (g *generator) ifStmt(s *ifStmt) script.Stmt {
	if v, ok := g.constant(s.cond); ok {
		switch {
		case v != 0:
			return g.stmt(s.then)
		case s.other != nil:
			return g.stmt(s.other)
		}
		return script.Block{}
	}
	out := script.If{Cond: g.expr(s.cond), Then: g.stmt(s.then)}
	if s.other != nil {
		out.Else = g.stmt(s.other)
	}
	return out
}

// constant returns an expression's value if it is known before the script runs.
func (g *generator) constant(x expr) (v int64, ok bool) {
	switch x := x.(type) {
	case *literal:
		return x.number, !x.isText
	case *definedExpr:
		return truth(g.defined(x.x)), true
	case *probewriteExpr:
		return truth(g.writes(x)), true
	case *unary:
		v, ok := g.constant(x.x)
		if x.op == "!" {
			return truth(v == 0), ok
		}
	case *binary:
		a, okA := g.constant(x.x)
		switch {
		case x.op == "&&" && okA && a == 0:
			return 0, true
		case x.op == "||" && okA && a != 0:
			return 1, true
		case x.op == "&&" || x.op == "||":
			b, okB := g.constant(x.y)
			if okA && okB {
				return truth(b != 0), true
			}
		}
	}
	return 0, false
}

func (g *generator) defined(x expr) bool {
	saves := len(g.saves)
	ok := g.a.possible(func() { g.expr(x) })
	g.saves = g.saves[:saves]
	return ok
}

// writes reports whether the probe's own statements write a variable.
func (g *generator) writes(x *probewriteExpr) bool {
	sym, ok := x.x.(*symbol)
	if !ok || g.b.probe == nil {
		return false
	}
	found := false
	walk(g.b.probe.body, func(e expr) {
		switch e := e.(type) {
		case *assign:
			if s, ok := e.x.(*symbol); ok && s.name == sym.name {
				found = true
			}
		case *crement:
			if s, ok := e.x.(*symbol); ok && s.name == sym.name {
				found = true
			}
		}
	})
	return found
}

func (g *generator) exprStmt(x expr) script.Stmt {
	switch x := x.(type) {
	case *printExpr:
		if x.name[0] == 'p' {
			return g.print(x)
		}
	case *assign:
		if x.op == "<<<" {
			return script.Accumulate{To: g.lvalue(x.x), X: g.expr(x.y), Near: x.x.position().near()}
		}
	case *call:
		if x.name == "error" && len(x.args) == 1 && g.a.functions[signature("error", 1)] == nil {
			return script.Fail{X: g.expr(x.args[0])}
		}
	case *ternary:
		if v, ok := g.constant(x.cond); ok {
			if v != 0 {
				return g.exprStmt(x.x)
			}
			return g.exprStmt(x.y)
		}
	}
	return script.Do{X: g.value(x)}
}

// value makes an expression with a value. An aggregate has none: it is refused.
func (g *generator) value(x expr) script.Expr {
	e := g.expr(x)
	if e.Type() == script.Stat {
		g.a.untranslated(x.position(), "an aggregate is no value")
		return g.expr(&literal{base: base{x.position()}})
	}
	return e
}

func (g *generator) foreach(s *foreachStmt) script.Stmt {
	if s.hist != nil {
		out := script.Buckets{Of: g.lvalue(s.hist.of), Near: s.tok.near()}
		if len(s.keys) != 1 {
			g.a.fail(s.tok, "a histogram has one key")
		}
		out.Key = g.symbol(s.keys[0].tok, s.keys[0].name)
		if s.value != nil {
			out.Value = g.symbol(s.value.tok, s.value.name)
		}
		if s.limit != nil {
			out.Limit = g.expr(s.limit)
		}
		g.loops = append(g.loops, "")
		out.Body = g.stmt(s.body)
		g.loops = g.loops[:len(g.loops)-1]
		return out
	}
	v := g.a.globals[s.array.name]
	out := script.Foreach{Array: v.a, Sort: s.sort, Descending: s.down, Near: s.array.tok.near()}
	for _, k := range s.keys {
		out.Keys = append(out.Keys, g.symbol(k.tok, k.name))
	}
	if s.value != nil {
		out.Value = g.symbol(s.value.tok, s.value.name)
	}
	if s.sliced {
		for _, x := range s.slice {
			if x == nil {
				out.Only = append(out.Only, nil)
			} else {
				out.Only = append(out.Only, g.expr(x))
			}
		}
	}
	if s.by != "" {
		out.By = extractors[s.by]
	}
	if s.limit != nil {
		out.Limit = g.expr(s.limit)
	}
	if g.modifies(s.body, s.array.name, map[*fn]bool{}) {
		g.a.fail(s.tok, "variable '%s' modified during 'foreach' iteration", s.array.name)
	}
	g.loops = append(g.loops, s.array.name)
	out.Body = g.stmt(s.body)
	g.loops = g.loops[:len(g.loops)-1]
	return out
}

// posix writes a pattern of stap's as Go's POSIX expressions have it: a dot is a new line, too, and a letter
// after a backslash is itself.
func posix(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '.':
			b.WriteString(`[\x00-\x{10FFFF}]`)
		case c == '[':
			end := classEnd(pattern, i)
			b.WriteString(pattern[i:end])
			i = end - 1
		case c == '\\' && i+1 < len(pattern):
			if i++; !isLetter(pattern[i]) && !isDigit(pattern[i]) {
				b.WriteByte(c)
			}
			b.WriteByte(pattern[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// classEnd returns the index of the first byte after the bracketed class that begins at from.
func classEnd(pattern string, from int) int {
	i := from + 1
	if i < len(pattern) && pattern[i] == '^' {
		i++
	}
	if i < len(pattern) && pattern[i] == ']' {
		i++
	}
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		if pattern[i] == '[' && i+1 < len(pattern) && strings.IndexByte(":.=", pattern[i+1]) >= 0 {
			if end := strings.Index(pattern[i+2:], pattern[i+1:i+2]+"]"); end >= 0 {
				i += end + 3
			}
		}
	}
	return min(i+1, len(pattern))
}

// modifies reports whether statements change which elements an array has.
func (g *generator) modifies(s stmt, name string, seen map[*fn]bool) (found bool) {
	is := func(x expr) bool {
		switch x := x.(type) {
		case *index:
			return x.name == name
		case *symbol:
			return x.name == name
		}
		return false
	}
	walkAll(s, func(st stmt) {
		if d, ok := st.(*deleteStmt); ok && is(d.x) {
			found = true
		}
	}, func(x expr) {
		switch x := x.(type) {
		case *assign:
			found = found || is(x.x)
		case *crement:
			found = found || is(x.x)
		case *call:
			for _, f := range g.a.functions[signature(x.name, len(x.args))] {
				if !seen[f] {
					seen[f] = true
					found = found || g.modifies(f.body, name, seen)
				}
			}
		}
	})
	return found
}

func (g *generator) delete(s *deleteStmt) script.Stmt {
	switch x := s.x.(type) {
	case *symbol:
		v := g.a.find(g.b.scope, x.tok, x.name)
		if v.a != nil {
			return script.Clear{Array: v.a}
		}
		return script.Delete{X: g.symbol(x.tok, x.name)}
	case *index:
		return script.Delete{X: g.elem(x)}
	}
	g.a.fail(s.tok, "Cannot take reference to expression")
	return nil
}

func (g *generator) symbol(t *token, name string) script.Expr {
	v := g.a.find(g.b.scope, t, name)
	switch {
	case v.v != nil:
		return script.Global{Var: v.v}
	case v.a != nil:
		g.a.fail(t, "array '%s' has keys", name)
	}
	return script.Local{N: v.n, Of: v.typ.script()}
}

func (g *generator) elem(x *index) script.Expr {
	v := g.a.globals[x.name]
	return script.Elem{Array: v.a, Keys: g.keys(x.keys), Near: x.tok.near()}
}

// keys are the keys of an array's element; nil is for one that is left open.
func (g *generator) keys(list []expr) (keys []script.Expr) {
	for _, k := range list {
		if k == nil {
			keys = append(keys, nil)
		} else {
			keys = append(keys, g.expr(k))
		}
	}
	return keys
}

func (g *generator) lvalue(x expr) script.Expr {
	switch x := x.(type) {
	case *symbol:
		return g.symbol(x.tok, x.name)
	case *index:
		return g.elem(x)
	case *memoryExpr:
		return g.memory(x)
	}
	g.a.fail(x.position(), "invalid lvalue")
	return nil
}

var extractors = map[string]script.Extractor{
	"@count": script.Count, "@sum": script.Sum, "@min": script.Min, "@max": script.Max, "@avg": script.Avg, "@variance": script.Variance,
}

var operations = map[string]script.Op{
	"+": script.Add, "-": script.Sub, "*": script.Mul, "/": script.Div, "%": script.Mod, "<<": script.Shl, ">>": script.Shr,
	"&": script.And, "|": script.Or, "^": script.Xor, "==": script.Eq, "!=": script.Ne, "<": script.Lt, "<=": script.Le,
	">": script.Gt, ">=": script.Ge, "&&": script.AndAlso, "||": script.OrElse, ".": script.Concat, "": script.Set,
}

func (g *generator) expr(x expr) script.Expr {
	switch x := x.(type) {
	case *literal:
		if x.isText {
			return script.Text(unescape(x.text))
		}
		return script.Number(x.number)
	case *symbol:
		return g.symbol(x.tok, x.name)
	case *index:
		if x.hist != nil {
			return script.Bucket{Of: g.lvalue(x.hist.of), N: g.expr(x.keys[0]), Near: x.tok.near()}
		}
		return g.elem(x)
	case *binary:
		if v, ok := g.constant(x); ok {
			return script.Number(v)
		}
		return script.Binary{Op: operations[x.op], X: g.expr(x.x), Y: g.expr(x.y), Near: x.tok.near()}
	case *unary:
		e := g.expr(x.x)
		switch x.op {
		case "-":
			return script.Unary{Op: script.Neg, X: e}
		case "!":
			return script.Unary{Op: script.Not, X: e}
		case "~":
			return script.Unary{Op: script.Complement, X: e}
		}
		return e
	case *crement:
		op := script.Add
		if x.op == "--" {
			op = script.Sub
		}
		return script.Assign{To: g.lvalue(x.x), Op: op, X: script.Number(1), Old: x.post, Near: x.tok.near()}
	case *assign:
		if x.op == "<<<" {
			g.a.fail(x.tok, "<<< is a statement of its own")
		}
		if tg, ok := x.x.(*target); ok {
			return g.store(tg, g.expr(x.y))
		}
		return script.Assign{To: g.lvalue(x.x), Op: operations[x.op[:len(x.op)-1]], X: g.expr(x.y), Near: x.tok.near()}
	case *ternary:
		if v, ok := g.constant(x.cond); ok {
			if v != 0 {
				return g.expr(x.x)
			}
			return g.expr(x.y)
		}
		return script.Cond{If: g.expr(x.cond), Then: g.expr(x.x), Else: g.expr(x.y)}
	case *inArray:
		if x.hist != nil {
			g.a.fail(x.tok, "'in' of a histogram is not there")
		}
		return script.Has{Array: g.a.globals[x.name].a, Keys: g.keys(x.keys)}
	case *match:
		re, err := regexp.CompilePOSIX(posix(unescape(x.pattern.text)))
		if err != nil {
			g.a.fail(x.pattern, "regular expression: %v", err)
		}
		return script.Match{X: g.expr(x.x), Pattern: re, Not: x.op == "!~"}
	case *call:
		return g.call(x)
	case *printExpr:
		return g.sprint(x)
	case *target:
		return g.targetExpr(x)
	case *statExpr:
		return script.Extract{What: extractors[x.what], Of: g.lvalue(x.of), Near: x.tok.near()}
	case *constExpr:
		return script.Number(g.a.constant(x))
	case *definedExpr, *probewriteExpr:
		v, _ := g.constant(x)
		return script.Number(v)
	case *entryExpr:
		if g.probe.Kind != Return {
			g.a.fail(x.tok, "@entry is only valid in .return probes")
		}
		return g.saved(x.tok, x.x)
	case *memoryExpr:
		if x.x == nil {
			if x.size < 0 || x.size > 15 {
				g.a.fail(x.tok, "there is no register %d", x.size)
			}
			return script.Register{N: int(x.size)}
		}
		return script.Load{Addr: g.expr(x.x), Size: int(x.size), Space: space(x.what == "@uderef"), Near: x.tok.near()}
	}
	g.a.fail(x.position(), "not there")
	return nil
}

func (g *generator) call(x *call) script.Expr {
	var args []script.Expr
	for _, arg := range x.args {
		args = append(args, g.expr(arg))
	}
	if list := g.a.functions[signature(x.name, len(x.args))]; len(list) > 0 {
		return script.Call{Func: list[0].out, Args: args, Near: x.tok.near()}
	}
	b := builtins[x.name]
	for i := len(args); i < len(b.params); i++ {
		args = append(args, b.otherwise[i-b.least])
	}
	return script.CallBuiltin{Builtin: b.code, Args: args, Near: x.tok.near()}
}

func plain(s string) script.Piece { return script.Piece{Text: s} }

// pieces returns the format and the arguments that a call of the print family prints.
func (g *generator) pieces(x *printExpr) ([]script.Piece, []script.Expr) {
	var pieces []script.Piece
	var args []script.Expr
	for _, arg := range x.args {
		args = append(args, g.value(arg))
	}
	kind := x.name
	if kind[0] == 's' {
		kind = kind[1:]
	}
	if kind == "printf" {
		for _, d := range x.pieces {
			p := script.Piece{
				Text: unescape(d.plain), Verb: d.verb, Width: d.width, Precision: d.precision,
				StarWidth: d.starWidth, StarPrecision: d.starPrecision, Left: d.left, Zero: d.zero,
				Sign: d.sign, Space: d.space, Alternate: d.alternate,
			}
			pieces = append(pieces, p)
		}
		return pieces, args
	}
	between := ""
	if x.format != nil {
		between = unescape(x.format.text)
	}
	for i, arg := range args {
		if i > 0 && between != "" {
			pieces = append(pieces, plain(between))
		}
		p := script.Piece{Verb: 'd', Width: -1, Precision: -1}
		if arg.Type() == script.String {
			p.Verb = 's'
		}
		pieces = append(pieces, p)
	}
	if len(kind) > 2 && kind[len(kind)-2:] == "ln" {
		pieces = append(pieces, plain("\n"))
	}
	return pieces, args
}

func (g *generator) print(x *printExpr) script.Stmt {
	if x.hist != nil {
		out := script.Block{script.PrintHistogram{Of: g.lvalue(x.hist.of), Near: x.tok.near()}}
		if x.name == "println" {
			out = append(out, script.Printf{Format: []script.Piece{plain("\n")}})
		}
		return out
	}
	pieces, args := g.pieces(x)
	return script.Printf{Format: pieces, Args: args, Near: x.tok.near()}
}

func (g *generator) sprint(x *printExpr) script.Expr {
	if x.name[0] == 'p' {
		g.a.fail(x.tok, "%s gives no value", x.name)
	}
	pieces, args := g.pieces(x)
	return script.Sprintf{Format: pieces, Args: args, Near: x.tok.near()}
}
