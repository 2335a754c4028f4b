package stap

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/source"
)

// derived is a resolved probe point, with the statements of the aliases on the way to it.
type derived struct {
	probe *Probe
	conds []expr
	at    *part
}

// chain is a probe point on its way through the aliases.
type chain struct {
	before, after []stmt // blocks of aliases around the handler; the innermost alias is first in before, last in after
	conds         []expr
	written       string
	optional      bool
	library       bool
	syscall       string
	// alias is the name of the first alias.
	alias string
}

// derive resolves all probe points.
func (a *analysis) derive() {
	for _, p := range a.user.probes {
		sufficient := false
		for _, pt := range p.points {
			if sufficient {
				continue
			}
			addresses(pt)
			var found int
			a.attempt(pt, func() { found = a.point(p, pt, chain{written: pt.String()}, 0) })
			if found > 0 && pt.sufficient {
				sufficient = true
			}
		}
	}
}

// attempt does something for a probe point. If the point is optional, a failure is no error.
func (a *analysis) attempt(pt *point, do func()) {
	if pt.optional || pt.sufficient {
		a.possible(do)
		return
	}
	a.catch(do)
}

// point resolves one probe point, and returns the number of its places.
func (a *analysis) point(p *probe, pt *point, c chain, depth int) int {
	if depth > bounded.StapAliases {
		a.fail(pt.parts[0].tok, "recursive loop in alias expansion")
	}
	c.optional = c.optional || pt.optional || pt.sufficient
	if pt.cond != nil {
		c.conds = append(c.conds[:len(c.conds):len(c.conds)], pt.cond)
	}
	if a.resolved++; a.resolved > bounded.ProbePoints {
		a.exceed(pt.parts[0].tok, "more than %d probe points", bounded.ProbePoints)
	}
	found, matched := 0, false
	a.enterAliases(pt.parts[0].name)
	// An alias that the whole point names comes before an alias that its first parts name.
	for _, whole := range []bool{true, false} {
		for _, al := range a.aliases {
			for _, name := range al.names {
				rest, ok := aliasMatches(name, pt)
				if !ok || whole != (len(rest) == 0) {
					continue
				}
				matched = true
				do := func() { found += a.alias(p, al, name, pt, rest, c, depth) }
				if (&point{parts: pt.parts[:len(name.parts)]}).String() != name.String() {
					a.possible(do) // of a pattern's aliases, some need not be there
				} else {
					do()
				}
			}
		}
		if matched {
			break
		}
	}
	if matched {
		if found == 0 && !c.optional {
			a.fail(pt.parts[0].tok, "no match")
		}
		return found
	}
	if n, ok := a.syscallPoint(p, pt, c, depth); ok {
		return n
	}
	return a.builtinPoint(p, pt, c)
}

// aliasMatches compares an alias's name with the beginning of a probe point.
func aliasMatches(name, pt *point) (rest []*part, ok bool) {
	if len(name.parts) > len(pt.parts) {
		return nil, false
	}
	for i, n := range name.parts {
		q := pt.parts[i]
		if ok, _ := path.Match(q.name, n.name); !ok && q.name != n.name {
			return nil, false
		}
		if (n.arg == nil) != (q.arg == nil) || n.arg != nil && (n.arg.text != q.arg.text || n.arg.number != q.arg.number) {
			return nil, false
		}
	}
	return pt.parts[len(name.parts):], true
}

func (a *analysis) alias(p *probe, al *probe, name, pt *point, rest []*part, c chain, depth int) int {
	if c.alias == "" {
		c.alias = (&point{parts: append(name.parts[:len(name.parts):len(name.parts)], rest...)}).String()
	}
	switch {
	case al.after:
		c.after = append(c.after[:len(c.after):len(c.after)], al.body)
	default:
		c.before = append([]stmt{al.body}, c.before...)
		if al.epilogue != nil {
			c.after = append(c.after[:len(c.after):len(c.after)], al.epilogue)
		}
	}
	c.library = c.library || al.library
	found, sufficient := 0, false
	for _, to := range al.points {
		if sufficient {
			break
		}
		next := &point{
			parts:    append(to.parts[:len(to.parts):len(to.parts)], rest...),
			optional: to.optional || pt.optional, sufficient: to.sufficient || pt.sufficient, cond: to.cond,
		}
		n := 0
		a.attempt(next, func() { n = a.point(p, next, c, depth+1) })
		found += n
		sufficient = to.sufficient && n > 0
	}
	return found
}

// add enters a probe with what its handler executes. Probes with the same statements share
// them.
func (a *analysis) add(p *probe, c chain, at *part, pr *Probe) {
	if len(a.points) >= bounded.ProbePoints {
		a.exceed(at.tok, "more than %d probes", bounded.ProbePoints)
	}
	pr.Written, pr.Optional, pr.Syscall, pr.Alias = c.written, c.optional, c.syscall, c.alias
	a.points = append(a.points, pr)
	d := &derived{probe: pr, conds: c.conds, at: at}
	for _, b := range a.bodies {
		if b.probe == p && sameStatements(b, c, p) {
			b.places = append(b.places, d)
			return
		}
	}
	b := &body{probe: p, scope: newScope(), places: []*derived{d}}
	b.scope.library = c.library
	b.list = append(append(append(b.list, c.before...), p.body), c.after...)
	for _, cond := range c.conds {
		if b.cond == nil {
			b.cond = cond
		} else {
			b.cond = &binary{base{cond.position()}, "&&", b.cond, cond}
		}
	}
	a.bodies = append(a.bodies, b)
}

func sameStatements(b *body, c chain, p *probe) bool {
	n := len(c.before)
	if len(b.list) != n+1+len(c.after) || len(b.places[0].conds) != len(c.conds) {
		return false
	}
	for i, s := range c.before {
		if b.list[i] != s {
			return false
		}
	}
	for i, s := range c.after {
		if b.list[n+1+i] != s {
			return false
		}
	}
	for i, e := range c.conds {
		if b.places[0].conds[i] != e {
			return false
		}
	}
	return true
}

// refused has the messages for probe points that SystemTap has and this package has not, by their first words.
var refused = map[string]string{
	"java":    "probes of Java are not there",
	"python2": "probes of Python are not there", "python3": "probes of Python are not there",
	"procfs": "probes of procfs are not there", "prometheus": "probes of procfs are not there, and prometheus is one",
	"json_data": "probes of procfs are not there, and json_data is one", "netfilter": "probes of netfilter are not there",
	"perf": "there are no hardware counters here", "input": "probes of input are not there",
	"stap":        "probes of stap itself are not there",
	"kernel.mark": "kernel.mark: kernels since 2.6.32 have no markers", "kprobe.module": "write module(\"NAME\").function(\"NAME\")",
	"user": "probes of programs are not there", "debuginfod": "debuginfod is not there",
}

// builtinPoint resolves a probe point that is no alias.
func (a *analysis) builtinPoint(p *probe, pt *point, c chain) int {
	first := pt.parts[0]
	if why, ok := refused[first.name]; ok {
		a.fail(first.tok, "%s", why)
	}
	if len(pt.parts) > 1 {
		if why, ok := refused[first.name+"."+pt.parts[1].name]; ok {
			a.fail(first.tok, "%s", why)
		}
	}
	switch first.name {
	case "begin", "end", "error":
		return a.beginPoint(p, pt, c)
	case "never":
		a.only(pt, 1)
		a.add(p, c, first, &Probe{Kind: Never, Point: pt.bare()})
		return 1
	case "timer":
		return a.timerPoint(p, pt, c)
	case "process":
		return a.processPoint(p, pt, c)
	case "kernel", "module", "kprobe":
		return a.kernelPoint(p, pt, c)
	}
	a.mismatch(pt, first)
	return 0
}

// bare returns a point without the ? or ! that makes it optional.
func (p *point) bare() string { return (&point{parts: p.parts}).String() }

func (a *analysis) mismatch(pt *point, at *part) {
	a.problems = append(a.problems, semantic("while resolving probe point", pt.parts[0].tok))
	a.fail(at.tok, "probe point mismatch")
}

// only refuses a point with more than n parts.
func (a *analysis) only(pt *point, n int) {
	if len(pt.parts) > n {
		a.mismatch(pt, pt.parts[n])
	}
}

func (a *analysis) beginPoint(p *probe, pt *point, c chain) int {
	a.only(pt, 1)
	first := pt.parts[0]
	pr := &Probe{Kind: map[string]ProbeKind{"begin": Begin, "end": End, "error": Error}[first.name], Point: pt.bare()}
	if first.arg != nil {
		if first.arg.isText {
			a.mismatch(pt, first)
		}
		pr.Order = first.arg.number
	}
	a.add(p, c, first, pr)
	return 1
}

// units maps a timer's units to nanoseconds.
var units = map[string]uint64{
	"s": 1e9, "sec": 1e9, "ms": 1e6, "msec": 1e6, "us": 1e3, "usec": 1e3, "ns": 1, "nsec": 1,
}

// leastTimer is the shortest interval of a timer in nanoseconds. Handlers must end between two ticks.
const leastTimer = 1000

func (a *analysis) timerPoint(p *probe, pt *point, c chain) int {
	if len(pt.parts) < 2 {
		a.mismatch(pt, pt.parts[0])
	}
	unit := pt.parts[1]
	pr := &Probe{Kind: Timer, Point: pt.bare()}
	hz := int64(250)
	if a.k != nil && a.k.HZ > 0 {
		hz = a.k.HZ
	}
	ns, known := units[unit.name]
	var value int64
	if unit.arg != nil && !unit.arg.isText {
		value = unit.arg.number
	}
	switch {
	case unit.name == "profile":
		pr.Profile, pr.Every = true, uint64(1e9/hz)
		a.only(pt, 2)
	case unit.arg == nil || unit.arg.isText:
		a.mismatch(pt, unit)
	case value <= 0 || value > 1<<40:
		a.fail(unit.tok, "invalid %s timer: %d is out of range", unit.name, value)
	case unit.name == "hz":
		pr.Every = uint64(1e9 / value)
	case unit.name == "jiffies":
		pr.Every = uint64(value) * uint64(1e9/hz)
	case known:
		pr.Every = uint64(value) * ns
	default:
		a.mismatch(pt, unit)
	}
	if pr.Every < leastTimer || value > 1<<40/int64(max(ns, 1))*1000 {
		a.fail(unit.tok, "a timer's interval has to be %d ns or more", leastTimer)
	}
	if len(pt.parts) > 2 {
		r := pt.parts[2]
		if r.name != "randomize" || r.arg == nil || r.arg.isText || r.arg.number < 0 || unit.name == "hz" {
			a.mismatch(pt, r)
		}
		a.only(pt, 3)
		scale := ns
		if unit.name == "jiffies" {
			scale = uint64(1e9 / hz)
		}
		if r.arg.number > value {
			a.fail(r.tok, "randomize cannot be more than the interval")
		}
		pr.Random = uint64(r.arg.number) * scale
	}
	a.add(p, c, unit, pr)
	return 1
}

// variant holds the parts of a probe point after the function, such as .call or .return.
type variant struct {
	call, exported, inline, ret, absolute, nearest bool
	// whole: the point names a function, not one of its lines.
	whole     bool
	maxActive int
}

func (a *analysis) kernelPoint(p *probe, pt *point, c chain) int {
	module, at := "", 1
	first := pt.parts[0]
	if a.k == nil || a.k.Functions == nil {
		a.fail(first.tok, "this probe point needs a kernel: name one with -r IMAGE")
	}
	switch first.name {
	case "module":
		if first.arg == nil || !first.arg.isText {
			a.mismatch(pt, first)
		}
		module = unescape(first.arg.text)
	default:
		if first.arg != nil {
			a.mismatch(pt, first)
		}
	}
	if len(pt.parts) <= at {
		a.mismatch(pt, first)
	}
	what := pt.parts[at]
	if what.name == "data" && first.name == "kernel" {
		return a.dataPoint(p, pt, c, what)
	}
	v := a.variants(pt, at+1)
	switch {
	case first.name == "kprobe" && what.name == "function":
		return a.symbolPoint(p, pt, c, what, v, module)
	case what.name == "function":
		return a.functionPoint(p, pt, c, what, v, module)
	case what.name == "statement":
		return a.statementPoint(p, pt, c, what, v, module)
	case first.name == "kprobe" && what.name == "statement" && what.arg != nil && !what.arg.isText:
		return a.statementPoint(p, pt, c, what, variant{absolute: true}, module)
	case what.name == "trace" && first.name == "kernel":
		a.only(pt, at+1)
		return a.tracePoint(p, pt, c, what)
	}
	a.mismatch(pt, what)
	return 0
}

func (a *analysis) variants(pt *point, from int) (v variant) {
	for _, q := range pt.parts[from:] {
		switch q.name {
		case "call":
			v.call = true
		case "exported":
			v.exported = true
		case "inline":
			v.inline = true
		case "return":
			v.ret = true
		case "absolute":
			v.absolute = true
		case "nearest":
			v.nearest = true
		case "maxactive":
			if q.arg == nil || q.arg.isText || q.arg.number < 0 || q.arg.number > 1<<16 || !v.ret {
				a.mismatch(pt, q)
			}
			v.maxActive = int(q.arg.number)
			continue
		case "label", "callee", "callees":
			a.fail(q.tok, ".%s is not there", q.name)
		default:
			a.mismatch(pt, q)
		}
		if q.arg != nil {
			a.mismatch(pt, q)
		}
	}
	return v
}

// text is a part's argument, which has to be a string.
func (a *analysis) text(pt *point, q *part) string {
	if q.arg == nil || !q.arg.isText {
		a.mismatch(pt, q)
	}
	return unescape(q.arg.text)
}

// spec is the specification FUNC@FILE:LINES of a probe point, read.
type spec struct {
	source.Statements
	// lines: the point names lines.
	lines bool
}

// spec reads FUNC, FUNC@FILE, and FUNC@FILE with :LINE, +LINE, :FROM-TO, a list of these, or :*.
func (a *analysis) spec(pt *point, q *part) (w spec) {
	s := a.text(pt, q)
	w.Function, w.File, _ = strings.Cut(s, "@")
	if w.Function == "" || strings.HasSuffix(s, "@") {
		a.fail(q.tok, "malformed specification: %q has no function or no file", s)
	}
	i := strings.IndexAny(w.File, ":+")
	if i < 0 {
		return w
	}
	list, sign := w.File[i+1:], w.File[i]
	if w.File, w.lines = w.File[:i], true; w.File == "" {
		a.fail(q.tok, "malformed specification: %q has no file", s)
	}
	if sign == ':' && list == "*" {
		return w
	}
	// As with stap, several lines are the file's, whatever sign they follow.
	w.Single = !strings.ContainsAny(list, ",-")
	w.Relative = sign == '+' && w.Single
	for _, one := range strings.Split(list, ",") {
		from, to, ranged := strings.Cut(one, "-")
		if !ranged {
			to = from
		}
		low, err := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || low < 0 {
			a.fail(q.tok, "malformed specification: %q: lines are a number, FROM-TO, or a list of these", s)
		}
		w.Lines = append(w.Lines, [2]int{low, high})
	}
	return w
}

// functionPoint is kernel.function("…"), its calls and inlined copies, or its return.
func (a *analysis) functionPoint(p *probe, pt *point, c chain, q *part, v variant, module string) int {
	if q.arg != nil && !q.arg.isText {
		return a.addressPoint(p, pt, c, q, v, uint64(q.arg.number))
	}
	w := a.spec(pt, q)
	if w.File == "" && (a.k.Source == nil || !a.k.HasLines) {
		return a.symbolPoint(p, pt, c, q, v, module)
	}
	if !a.k.HasLines {
		a.fail(q.tok, "%s: %q needs debugging information (--debuginfo FILE)", "kernel.function", q.arg.text)
	}
	v.whole = true
	return a.places(p, pt, c, q, v, w)
}

// places adds the places that the debugging information has. For a function the place is that of the whole
// function, whatever line the point names.
func (a *analysis) places(p *probe, pt *point, c chain, q *part, v variant, w spec) int {
	found := 0
	// begun has the addresses at which functions begin; the value is true if the code is in one piece.
	begun, folded := map[uint64]bool{}, map[string]bool{}
	add := func(at *source.Place) error {
		if a.initmem(at.Addr) {
			return nil
		}
		if !at.Described() {
			a.addPlace(p, pt, c, q, v, at)
			found++
			return nil
		}
		if v.exported && !a.exported(at.Function) {
			return nil
		}
		if !at.Inlined {
			begun[at.Addr] = at.InOnePiece()
		}
		if at.Inlined && (v.call || v.ret || v.exported) || !at.Inlined && v.inline {
			return nil
		}
		a.addPlace(p, pt, c, q, v, at)
		found++
		return nil
	}
	var err error
	if v.whole {
		where := source.Where{Function: w.Function, File: w.File, Most: bounded.StapPlaces, All: true, Folded: func(name string) { folded[name] = true }}
		err = a.k.Source.Places(where, func(at *source.Place) error {
			if at.Tail() {
				begun[at.Addr] = at.InOnePiece()
				return nil
			}
			return add(at)
		})
		if missing := (*source.NotFound)(nil); err == nil || errors.As(err, &missing) {
			a.otherNames(w, begun, folded, add)
		}
	} else {
		w.Most, w.Nearest = bounded.StapPlaces, v.nearest
		err = a.k.Source.Statements(w.Statements, add)
	}
	if rows := (*source.NoRows)(nil); errors.As(err, &rows) {
		said := semantic(err.Error(), q.tok)
		said.always = true
		panic(said)
	}
	if err != nil && found == 0 {
		a.fail(q.tok, "%v", err)
	}
	if found == 0 {
		a.none(pt, q)
	}
	return found
}

// otherNames adds the functions that w names in the symbol table alone. Some have another name in the source, as
// __x64_sys_getpid for __do_sys_getpid. Others are not in the source, as the parts that the compiler cuts off
// functions (.cold). begun has the addresses of the functions that were added before; the value is true if the code is
// in one piece. stap finds those by the address of their code, and has no address for code in several pieces: a function
// that the compiler has renamed (.isra.0) and split is added twice. As in stap, a function that the source describes
// without code is left out.
func (a *analysis) otherNames(w spec, begun map[uint64]bool, folded map[string]bool, add func(*source.Place) error) {
	for _, s := range a.k.Source.SymbolsByAnyName(w.Function) {
		inOnePiece, met := begun[s.Start]
		renamed := strings.Contains(s.Name, ".")
		if inOnePiece || met && !renamed || !s.Func || w.File != "" && !a.k.Source.Mentions(s.Start, w.File) {
			continue
		}
		at, err := a.k.Source.FunctionAt(s.Start)
		undescribed := err != nil || renamed
		switch {
		case undescribed && (w.File != "" || folded[s.Name]):
			continue
		case undescribed:
			at = &source.Place{Addr: s.Start, Symbol: s.Name, Function: s.Name}
		case w.File != "" && !at.In(w.File):
			continue
		}
		_ = add(at)
	}
}

// initmem reports code that a booted kernel has freed (.init.text) or does not need (.exit.text): it cannot be probed.
func (a *analysis) initmem(addr uint64) bool {
	return a.k.Initmem != nil && a.k.Initmem(addr)
}

// exported reports whether other files can use a function.
func (a *analysis) exported(name string) bool {
	return a.k.Exported != nil && a.k.Exported(name)
}

func (a *analysis) none(pt *point, q *part) {
	a.problems = append(a.problems, semantic("while resolving probe point", pt.parts[0].tok))
	a.fail(pt.parts[0].tok, "no match")
}

func (a *analysis) addPlace(p *probe, pt *point, c chain, q *part, v variant, at *source.Place) {
	file, line := at.Declaration()
	if !v.whole {
		line = at.Line
	}
	name := at.Function
	if file != "" {
		name += fmt.Sprintf("@%s:%d", file, line)
	}
	pr := &Probe{Kind: Call, Symbol: at.Symbol, Offset: at.Offset, Addr: at.Addr, Function: at.Function, Place: at}
	if v.ret {
		pr.Kind, pr.MaxActive = Return, v.maxActive
	}
	one := point{parts: slices.Clone(pt.parts)}
	for i, part := range one.parts {
		if part == q {
			named := *q
			named.arg = &literal{isText: true, text: name}
			one.parts[i] = &named
		}
	}
	if v.nearest {
		// What is called by its own line needs no nearest one.
		one.parts = slices.DeleteFunc(one.parts, func(p *part) bool { return p.name == "nearest" })
	}
	// Unlike aliases, what the source describes goes by what it is found to be.
	one.optional = pt.optional
	pr.Point = one.String()
	if c.alias == "" {
		c.written = pr.Point
	}
	a.add(p, c, q, pr)
}

// symbolPoint plants by the symbol table, with what BTF knows of the function.
func (a *analysis) symbolPoint(p *probe, pt *point, c chain, q *part, v variant, module string) int {
	name := a.text(pt, q)
	if v.inline {
		a.fail(q.tok, ".inline needs debugging information (--debuginfo FILE)")
	}
	found := 0
	seen := map[uint64]bool{}
	for _, f := range a.k.Functions(name) {
		if seen[f.Addr] {
			continue
		}
		if ok, _ := path.Match(module, f.Module); !ok && module != f.Module {
			continue
		}
		seen[f.Addr] = true
		if a.initmem(f.Addr) || v.exported && !a.exported(f.Name) {
			continue
		}
		pr := &Probe{Kind: Call, Symbol: f.Name, Module: f.Module, Addr: f.Addr, Function: f.Name}
		suffix := ""
		if v.ret {
			pr.Kind, pr.MaxActive, suffix = Return, v.maxActive, ".return"
		} else if v.call {
			suffix = ".call"
		}
		where := "kernel"
		if f.Module != "" {
			where = fmt.Sprintf("module(\"%s\")", f.Module)
		}
		pr.Point = fmt.Sprintf("%s.function(\"%s\")%s", where, f.Name, suffix)
		if a.k.Source != nil && !a.k.HasLines {
			// BTF describes the parameters at the entry.
			a.k.Source.Places(source.Where{Function: f.Name}, func(at *source.Place) error {
				if at.Addr == f.Addr {
					pr.Place = at
				}
				return nil
			})
		}
		a.add(p, c, q, pr)
		found++
	}
	if found == 0 {
		a.none(pt, q)
	}
	return found
}

func (a *analysis) statementPoint(p *probe, pt *point, c chain, q *part, v variant, module string) int {
	if q.arg == nil {
		a.mismatch(pt, q)
	}
	if !q.arg.isText {
		if !v.absolute {
			a.mismatch(pt, q)
		}
		if !a.o.Guru && pt.parts[0].name != "kprobe" {
			a.fail(q.tok, "absolute statement probe in unprivileged script; need stap -g")
		}
		return a.addressPoint(p, pt, c, q, variant{}, uint64(q.arg.number))
	}
	w := a.spec(pt, q)
	if !w.lines {
		return a.functionPoint(p, pt, c, q, v, module)
	}
	if !a.k.HasLines {
		a.fail(q.tok, "kernel.statement(\"%s\") needs debugging information (--debuginfo FILE)", q.arg.text)
	}
	return a.places(p, pt, c, q, variant{nearest: v.nearest}, w)
}

func (a *analysis) addressPoint(p *probe, pt *point, c chain, q *part, v variant, addr uint64) int {
	one := point{parts: slices.Clone(pt.parts)}
	i := slices.Index(one.parts, q)
	one.parts[i] = &part{tok: q.tok, name: q.name, arg: &literal{number: q.arg.number, hex: true}}
	pr := &Probe{Kind: Call, Addr: addr, Point: one.String()}
	if v.ret {
		pr.Kind, pr.MaxActive = Return, v.maxActive
	}
	if a.k.Source != nil {
		if s, ok := a.k.Source.Symbol(addr); ok {
			pr.Symbol, pr.Offset, pr.Function = s.Name, addr-s.Start, s.Name
		}
		if a.k.HasLines {
			if at, err := a.k.Source.At(addr); err == nil {
				pr.Place = at
			}
		}
	}
	a.add(p, c, q, pr)
	return 1
}

func (a *analysis) tracePoint(p *probe, pt *point, c chain, q *part) int {
	name := a.text(pt, q)
	if a.k.Tracepoints == nil {
		a.fail(q.tok, "kernel.trace needs the dump of a booted kernel")
	}
	system, rest, ok := strings.Cut(name, ":")
	if ok {
		name = rest
	}
	list := slices.DeleteFunc(a.k.Tracepoints(name), func(t Tracepoint) bool {
		fits, _ := path.Match(system, t.System)
		return ok && t.System != "" && !fits
	})
	for i := range list {
		t := &list[i]
		whole := t.Name
		if t.System != "" {
			whole = t.System + ":" + t.Name
		}
		a.add(p, c, q, &Probe{Kind: Trace, Symbol: t.Name, Point: fmt.Sprintf("kernel.trace(\"%s\")", whole), Trace: t})
	}
	if len(list) == 0 {
		a.none(pt, q)
	}
	return len(list)
}
