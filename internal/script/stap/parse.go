package stap

import (
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
)

// Options holds the settings of the command line with which a script is read.
type Options struct {
	// Args are the script's arguments.
	Args []string
	// Guru: the script may use unsafe parts of the language (-g).
	Guru bool
	// Release is the kernel's release. Config returns the value of an option of its configuration.
	Release string
	Config  func(name string) string
	// Limits are the limits that -D sets, by their names. Globals are the values that -G gives to global variables.
	Limits  map[string]uint64
	Globals map[string]string
	// List: the probes are only listed. Variables that nothing reads are kept.
	List bool
	// Types: the script is only analyzed. The errors of stap's pass 3, the translation, are not reported.
	Types bool
}

// parser reads a script.
type parser struct {
	f    *file
	pp   *preprocessor
	o    *Options
	guru bool
	// ahead is the next token if more is true. last is the token that was read last.
	ahead *token
	more  bool
	// joined is the token after a string, read to see whether another string follows; hasNext says that it is there.
	joined   *token
	hasNext  bool
	last     *token
	function bool
	depth    int
	problems Problems
	macros   map[string]*macro
}

// parse reads a file. shared are the macros of the library. The parser's problems are nil if the file
// has no errors.
func parse(f *file, o *Options, shared map[string]*macro) (*parsed, *parser) {
	p := &parser{f: f, o: o, guru: o.Guru || f.library, macros: map[string]*macro{}}
	p.pp = &preprocessor{lex: newLexer(f, o.Args), o: o, macros: p.macros, shared: shared}
	out := &parsed{}
	nothing := true
	for p.guarded(func() bool {
		t := p.peek()
		if t == nil {
			return false
		}
		nothing = false
		p.declaration(out, t)
		return true
	}) {
	}
	if nothing {
		why := "."
		if p.pp.seen {
			why = " after preprocessing."
		}
		p.problems = append(p.problems, &Problem{Kind: emptyScript, Message: "Input file '" + f.name + "' is empty" + why})
	}
	return out, p
}

// guarded does one declaration; after an error it goes on at the next one.
func (p *parser) guarded(do func() bool) (more bool) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		bad, ok := r.(*Problem)
		if !ok {
			panic(r)
		}
		p.problems = append(p.problems, bad)
		if more = len(p.problems) < bounded.StapProblems; more && bad.skip {
			p.recover()
		}
	}()
	return do()
}

// recover skips to where a declaration may begin.
func (p *parser) recover() {
	p.depth, p.function = 0, false
	for len(p.problems) < bounded.StapProblems {
		again := p.guarded(func() bool {
			t := p.peek()
			if t == nil || t.kind == keyword && (t.text == "probe" || t.text == "global" || t.text == "private" || t.text == "function") || t.kind == embedded {
				return false
			}
			p.next()
			return true
		})
		if !again {
			return
		}
	}
}

// fetch returns the preprocessor's next token. It joins strings that follow each other.
func (p *parser) fetch() *token {
	t := p.joined
	if p.hasNext {
		p.joined, p.hasNext = nil, false
	} else {
		t = p.pp.next()
	}
	if t == nil || t.kind != text {
		return t
	}
	for {
		n := p.pp.next()
		if n == nil || n.kind != text {
			p.joined, p.hasNext = n, true
			return t
		}
		both := *t
		both.text += n.text
		t = &both
	}
}

func (p *parser) peek() *token {
	if !p.more {
		p.ahead = p.fetch()
		p.more = true
	}
	p.last = p.ahead
	return p.ahead
}

func (p *parser) next() *token {
	t := p.peek()
	p.more = false
	if t == nil {
		p.fail("unexpected end-of-file")
	}
	return t
}

// fail reports an error at the token that was read last.
func (p *parser) fail(message string) {
	panic(&Problem{Kind: parseError, Message: message, saw: p.last, end: p.f, skip: true})
}

// failAtEnd does as fail. If the file has no more tokens, the message is that it ends unexpectedly.
func (p *parser) failAtEnd(message string) {
	if p.peek() == nil {
		message = "unexpected end-of-file"
	}
	p.fail(message)
}

func (p *parser) failAt(message string, t *token) { panic(problem(message, t)) }

func (p *parser) isOp(text string) bool      { return p.peek().op(text) }
func (p *parser) isKeyword(text string) bool { return p.peek().is(keyword, text) }

// took takes the next token if it is an operator.
func (p *parser) took(op string) bool {
	if p.isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(op string) *token {
	if !p.isOp(op) {
		p.failAtEnd("expected '" + op + "'")
	}
	return p.next()
}

func (p *parser) expectKeyword(word string) *token {
	if !p.isKeyword(word) {
		p.fail("expected '" + word + "'")
	}
	return p.next()
}

func (p *parser) expectIdentifier() *token {
	if t := p.peek(); t == nil || t.kind != identifier {
		p.failAtEnd("expected identifier")
	}
	return p.next()
}

func (p *parser) expectText(what string) *token {
	if t := p.peek(); t == nil || t.kind != text {
		p.fail(what)
	}
	return p.next()
}

// parseNumber is a number's value, wrapped at 64 bits as in C with a sign.
func parseNumber(t *token) int64 {
	v, err := strconv.ParseUint(t.text, 0, 64)
	if err != nil || strings.Contains(t.text, "_") || strings.HasPrefix(t.text, "0b") || strings.HasPrefix(t.text, "0B") || strings.HasPrefix(t.text, "0o") || strings.HasPrefix(t.text, "0O") {
		panic(&Problem{Kind: parseError, Message: "number invalid or out of range", saw: t, skip: true})
	}
	return int64(v)
}

func (p *parser) expectNumber() (int64, *token) {
	negative := p.took("-")
	if t := p.peek(); t == nil || t.kind != number {
		p.fail("expected number")
	}
	t := p.next()
	v := parseNumber(t)
	if negative {
		v = -v
	}
	return v, t
}

// literal reads a string or a number, which may have a minus.
func (p *parser) literal() *literal {
	t := p.peek()
	if t != nil && t.kind == text {
		p.next()
		return &literal{base: base{t}, isText: true, text: t.text}
	}
	negative := false
	first := t
	if p.isOp("-") {
		p.next()
		negative = true
		t = p.peek()
	}
	if t == nil || t.kind != number {
		p.fail("expected literal string or number")
	}
	p.next()
	v := parseNumber(t)
	if negative {
		v = -v
	}
	return &literal{base: base{first}, number: v}
}

// declaration reads what stands at the outermost level.
func (p *parser) declaration(out *parsed, t *token) {
	switch {
	case t.is(keyword, "probe"):
		p.probe(out)
	case t.is(keyword, "private"):
		p.next()
		switch n := p.peek(); {
		case n.is(keyword, "function"):
			p.functionDecl(out, true)
		case n.is(keyword, "global"):
			p.next()
			p.globals(out, true)
		case n != nil && n.kind == identifier:
			p.globals(out, true)
		default:
			p.fail("expected 'function' or identifier")
		}
	case t.is(keyword, "global"):
		p.next()
		p.globals(out, false)
	case t.is(keyword, "function"):
		p.functionDecl(out, false)
	case t.kind == embedded:
		p.embeddedAllowed("embedded code in unprivileged script; need stap -g")
		p.next()
		out.embedded = append(out.embedded, t)
	default:
		p.fail("expected 'probe', 'global', 'private', 'function', or '%{'")
	}
}

func (p *parser) embeddedAllowed(message string) {
	if !p.guru {
		t := p.last
		p.more = false
		panic(&Problem{Kind: parseError, Message: message, saw: t})
	}
}

func (p *parser) globals(out *parsed, private bool) {
	for {
		t := p.expectIdentifier()
		for _, g := range out.globals {
			if g.name == t.text {
				p.fail("duplicate global name")
			}
		}
		g := &global{tok: t, name: t.text, private: private, library: p.f.library}
		out.globals = append(out.globals, g)
		g.wrap = p.took("%")
		if p.took("[") {
			g.max, _ = p.expectNumber()
			p.expectOp("]")
			if g.max <= 0 || g.max > bounded.StapArray {
				p.peek()
				p.fail("array size out of range")
			}
		}
		if p.isOp("=") {
			if g.max > 0 || g.wrap {
				p.fail("only scalar globals can be initialized")
			}
			p.next()
			g.init = p.literal()
		}
		switch {
		case p.took(";"):
			return
		case p.took(","):
		default:
			return
		}
	}
}

func (p *parser) typeName() vtype {
	switch t := p.peek(); {
	case t.is(keyword, "string"):
		p.next()
		return str
	case t.is(keyword, "long"):
		p.next()
		return long
	}
	p.fail("expected 'string' or 'long'")
	return unknown
}

func (p *parser) functionDecl(out *parsed, private bool) {
	p.next()
	t := p.expectIdentifier()
	f := &function{tok: t, name: t.text, private: private, library: p.f.library, priority: -1}
	if p.took(":") {
		f.result = p.typeName()
	}
	p.expectOp("(")
	for !p.isOp(")") {
		if len(f.params) > 0 {
			if !p.isOp(",") {
				p.fail("expected ',' or ')'")
			}
			p.next()
		}
		n := p.expectIdentifier()
		for _, q := range f.params {
			if q.name == n.text {
				p.fail("duplicate parameter names")
			}
		}
		param := &param{tok: n, name: n.text}
		if p.took(":") {
			param.typ = p.typeName()
		}
		f.params = append(f.params, param)
	}
	p.next()
	if p.took(":") {
		f.priority, _ = p.expectNumber()
		if f.priority < 0 {
			p.fail("specified priority must be non-negative")
		}
	}
	if e := p.peek(); e != nil && e.kind == embedded {
		p.embeddedAllowed("embedded code in unprivileged script; need stap -g")
		p.next()
		f.embedded = e
	} else {
		p.function = true
		f.body = p.block()
		p.function = false
	}
	out.functions = append(out.functions, f)
}

func (p *parser) probe(out *parsed) {
	t := p.next()
	pr := &probe{tok: t, library: p.f.library}
	for {
		list := p.points()
		n := p.peek()
		switch {
		case len(list) == 1 && len(pr.points) == 0 && (n.op("=") || n.op("+=")):
			if list[0].optional || list[0].sufficient {
				p.failAt("probe point alias name cannot be optional nor sufficient", list[0].parts[0].tok)
			}
			pr.names = append(pr.names, list[0])
			pr.after = n.op("+=")
			p.next()
		case n.op(","):
			pr.points = append(pr.points, list...)
			p.next()
		case n.op("{"):
			pr.points = append(pr.points, list...)
			pr.body = p.block()
			if pr.names == nil {
				out.probes = append(out.probes, pr)
				return
			}
			if !pr.after && p.took(",") {
				pr.epilogue = p.block()
			}
			out.aliases = append(out.aliases, pr)
			return
		default:
			p.fail("expected probe point specifier")
		}
	}
}

// points reads one probe point; braces in it make several.
func (p *parser) points() []*point {
	list := p.components(0)
	for _, pt := range list {
		if len(pt.parts) == 0 {
			p.fail("expected identifier or '*' or '{'")
		}
	}
	return list
}

func (p *parser) components(depth int) []*point {
	if depth > 10 {
		p.fail("probe point is nested too deeply")
	}
	current := []*point{{}}
	for {
		var heads []*point // what this component may be
		t := p.peek()
		switch {
		case t.op("{"):
			p.next()
			for {
				heads = append(heads, p.components(depth+1)...)
				if p.took(",") {
					continue
				}
				p.expectOp("}")
				break
			}
		case t != nil && (t.kind == identifier || t.kind == keyword || t.op("*")):
			heads = []*point{{parts: []*part{p.component()}}}
		default:
			p.fail("expected identifier or '*' or '{'")
		}
		var all []*point
		for _, a := range current {
			for _, b := range heads {
				if len(all) >= bounded.StapBraces {
					p.fail("too many probe points")
				}
				if a.optional || a.sufficient {
					p.fail("'?' or '!' must be at the end of a probe point")
				}
				all = append(all, &point{
					parts:    append(a.parts[:len(a.parts):len(a.parts)], b.parts...),
					optional: b.optional, sufficient: b.sufficient, cond: b.cond,
				})
			}
		}
		current = all
		if p.took(".") {
			continue
		}
		if optional := p.isOp("?"); optional || p.isOp("!") {
			p.next()
			for _, a := range current {
				a.optional, a.sufficient = optional || a.optional, !optional || a.sufficient
			}
		}
		if p.isKeyword("if") {
			p.next()
			p.expectOp("(")
			cond := p.expression()
			p.expectOp(")")
			for _, a := range current {
				a.cond = cond
			}
		}
		switch t := p.peek(); {
		case t.op("{"), t.op(","), t.op("="), t.op("+="), t.op("}"):
			return current
		}
		p.fail("expected one of ', { } = +='")
	}
}

// component reads a name, which may have stars in it, and its argument.
func (p *parser) component() *part {
	t := p.next()
	c := &part{tok: t, name: t.text}
	star := t.op("*")
	for end := t; ; end = p.last {
		n := p.peek()
		if n == nil || n.pos.Line != end.pos.Line || n.pos.Column != end.pos.Column+len(end.text) {
			break
		}
		if n.op("*") || star && n != nil && (n.kind == identifier || n.kind == keyword) {
			c.name += p.next().text
			star, p.last = n.op("*"), n
			continue
		}
		break
	}
	if p.took("(") {
		c.arg = p.literal()
		p.expectOp(")")
	}
	return c
}
