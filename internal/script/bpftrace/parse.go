package bpftrace

import (
	"fmt"
	"slices"

	"kprobelab/internal/bounded"
)

// parser makes the tree of the tokens.
type parser struct {
	list     []token
	at       int
	depth    int
	problems *Problems
	language Language
}

// parse reads a script, with macros in their places.
func parse(f *file, macros map[string]string, language Language) (t *tree, problems *Problems) {
	problems = &Problems{file: f}
	p := &parser{list: lex(f, macros, language, problems), problems: problems, language: language}
	read := len(problems.list)
	func() {
		defer func() {
			switch e := recover(); e {
			case nil:
			case any(failed{}):
				// The tool reads tokens as it needs them: what comes after the last is not said.
				last := p.tok().at.to
				problems.list = slices.Concat(slices.DeleteFunc(slices.Clone(problems.list[:read]), func(b *Problem) bool { return b.at.to.after(last) }), problems.list[read:])
			default:
				panic(e)
			}
		}()
		t = p.tree()
	}()
	return t, problems
}

func (p *parser) tok() *token    { return &p.list[p.at] }
func (p *parser) kind() kind     { return p.list[p.at].kind }
func (p *parser) is(k kind) bool { return p.list[p.at].kind == k }

func (p *parser) ahead(n int) kind { return p.list[min(p.at+n, len(p.list)-1)].kind }

func (p *parser) next() *token {
	t := &p.list[p.at]
	if p.at < len(p.list)-1 {
		p.at++
	}
	return t
}

func (p *parser) accept(k kind) bool {
	if p.is(k) {
		p.next()
		return true
	}
	return false
}

func (p *parser) fail(at span, format string, a ...any) {
	p.problems.list = append(p.problems.list, &Problem{Message: fmt.Sprintf(format, a...), at: at})
	panic(failed{})
}

// quoted returns the name of a kind of token in messages.
func (k kind) quoted() string {
	if k == "," {
		return `","`
	}
	return string(k)
}

// unexpected reports a syntax error at the next token.
func (p *parser) unexpected(want ...kind) {
	t := p.tok()
	text := fmt.Sprintf("syntax error, unexpected %s", t.kind.quoted())
	for i, w := range want {
		if i == 0 {
			text += ", expecting "
		} else {
			text += " or "
		}
		text += w.quoted()
	}
	p.fail(t.at, "%s", text)
}

// expect goes over a token of that kind. others are the kinds that could come here, too: the message names them in its order.
func (p *parser) expect(k kind, others ...kind) *token {
	if !p.is(k) {
		p.unexpected(append([]kind{k}, others...)...)
	}
	return p.next()
}

func (p *parser) enter(at span) {
	if p.depth++; p.depth > bounded.BpftraceNesting {
		p.fail(at, "the script is nested too deep")
	}
}

func (p *parser) tree() *tree {
	t := &tree{}
	for {
		if p.is(tDirective) {
			t.definitions = append(t.definitions, p.next().text)
			continue
		}
		if p.is(tStruct) && (p.ahead(1) == tDefinition || p.ahead(1) == tEnumDef) {
			p.next()
			t.definitions = append(t.definitions, p.next().text)
			continue
		}
		break
	}
	if p.language.newest() {
		p.beginning(t)
	} else if p.accept("config") {
		p.expect("=")
		p.settings(t)
	}
	for {
		if p.language.newest() && p.declaration(t) {
			// a macro, or a map's declaration
		} else if p.is(tFn) {
			t.functions = append(t.functions, p.function())
		} else {
			t.probes = append(t.probes, p.probe())
		}
		if p.is(tEnd) {
			return t
		}
	}
}

func (p *parser) settings(t *tree) {
	p.expect("{")
	for !p.accept("}") {
		if !p.is(tIdent) {
			p.unexpected("}", tIdent)
		}
		name := p.next()
		eq := p.expect("=")
		t.config = append(t.config, &setting{name.text, p.settingValue(), eq.at})
		if !p.accept(";") && !p.is("}") {
			p.unexpected(";", "}")
		}
	}
}

// function is a function of the script's own.
func (p *parser) function() *node {
	t := p.next()
	n := &node{text: p.expect(tIdent).text}
	p.expect("(")
	if !p.is(")") && !p.is(tVar) {
		p.unexpected(")", tVar)
	}
	if !p.is(")") {
		for {
			p.expect(tVar)
			p.colon()
			p.ctype(false)
			if !p.accept(",") {
				break
			}
		}
	}
	p.expect(")", ",")
	p.colon()
	p.ctype(false)
	n.body = p.block()
	n.at = t.at
	return n
}

func (p *parser) colon() { p.expect(":") }

func (p *parser) probe() *probe {
	pr := &probe{at: span{p.before(), p.tok().at.to}}
	if p.language.newest() {
		if p.is(tIdent) && p.ahead(1) == "=" {
			p.next()
			p.next()
		}
		pr.at = p.tok().at
	}
	for {
		pr.points = append(pr.points, p.point())
		if !p.accept(",") {
			break
		}
	}
	if p.is(tEnd) {
		p.fail(span{pr.at.from, p.tok().at.to}, "unexpected end of file, expected {")
	}
	if from := p.tok().at.from; p.accept("/") {
		pr.pred = p.expr()
		p.expect(tEndPred)
		pr.predAt = p.since(from)
	}
	pr.body = p.block()
	pr.at = pr.at.with(p.list[p.at-1].at)
	return pr
}

// before returns the end of the last token that was read.
func (p *parser) before() pos {
	if p.at == 0 {
		return pos{1, 1}
	}
	return p.list[p.at-1].at.to
}

// since returns the span from a place to the end of the last token that was read.
func (p *parser) since(from pos) span { return span{from, p.before()} }

// point is one attach point: its text is taken together, without blanks.
func (p *parser) point() *point {
	pt := &point{at: span{p.before(), p.before()}}
	for {
		t := p.tok()
		switch t.kind {
		case tIdent, tBuiltin, tBuiltinType, tCall, tCallBuiltin, tStackMode, tPath, ":", ".", "+", "*", "[", "]", tParam:
			pt.raw += t.text
		case tInt:
			pt.raw += fmt.Sprint(t.num)
		case tString:
			pt.raw += `"`
			for i := range len(t.text) {
				if t.text[i] == '"' {
					pt.raw += `\`
				}
				pt.raw += t.text[i : i+1]
			}
			pt.raw += `"`
		case tParamCount:
			p.fail(t.at, "Not a positional parameter")
		default:
			return pt
		}
		pt.at.to = t.at.to
		p.next()
	}
}

func (p *parser) block() []*node {
	p.enter(p.tok().at)
	defer func() { p.depth-- }()
	p.expect("{")
	list := []*node{}
	for !p.is("}") {
		n := p.statement()
		list = append(list, n)
		switch n.op {
		case sIf, sWhile, sUnroll, sFor:
			continue
		}
		if p.language.newest() && n.op == sExpr && (n.kids[0].op == nBlock || n.kids[0].op == nIfValue) {
			p.accept(";")
			continue
		}
		if p.is("}") && n.op != sLet {
			break
		}
		if !p.accept(";") {
			if n.op == sLet {
				p.unexpected(";", "=")
			}
			p.unexpected(";", "}")
		}
	}
	p.expect("}")
	return list
}

func (p *parser) statement() *node {
	t := p.tok()
	if p.language.newest() {
		if n := p.newestStatement(); n != nil {
			return n
		}
	}
	switch t.kind {
	case "if":
		return p.ifStatement()
	case "while":
		p.next()
		p.expect("(")
		n := &node{op: sWhile, at: t.at, kids: []*node{p.expr()}}
		p.expect(")")
		n.body = p.block()
		return n
	case "unroll":
		return p.unroll()
	case "for":
		p.next()
		p.expect("(")
		v := p.expect(tVar)
		p.expect(":")
		n := &node{op: sFor, at: t.at, kids: []*node{{op: nVar, text: v.text, at: v.at}, p.expr()}}
		p.expect(")")
		n.body = p.block()
		return n
	case "break", "continue":
		p.next()
		return &node{op: sJump, text: t.text, at: t.at}
	case "return":
		p.next()
		n := &node{op: sJump, text: t.text, at: t.at}
		if !p.is(";") && !p.is("}") {
			if !p.beginsExpr() {
				p.unexpected(";", "}")
			}
			n.kids = []*node{p.expr()}
			n.at = p.since(t.at.from)
		}
		return n
	case "let":
		return p.let()
	}
	x := p.expr()
	end := p.kind()
	switch {
	case end == "=" && x.op == nIndex:
		p.next()
		p.expr()
		p.fail(p.since(t.at.from), "Tuples are immutable once created. Consider creating a new tuple and assigning it instead.")
	case (x.op == nMap || x.op == nVar) && !x.post && end == "=":
		p.next()
		y := p.expr()
		return &node{op: sAssign, kids: []*node{x, y}, at: p.since(t.at.from)}
	case (x.op == nMap || x.op == nVar) && !x.post && compound[end] != "":
		o := p.next()
		y := p.expr()
		copied := *x
		b := &node{op: nBinary, text: compound[end], kids: []*node{&copied, y}, at: o.at}
		return &node{op: sAssign, kids: []*node{x, b}, at: p.since(t.at.from)}
	}
	return &node{op: sExpr, kids: []*node{x}, at: x.at}
}

// compound are the operations of assignments.
var compound = map[kind]string{
	"<<=": "<<", ">>=": ">>", "+=": "+", "-=": "-", "*=": "*", "/=": "/", "%=": "%", "&=": "&", "|=": "|", "^=": "^",
}

func (p *parser) ifStatement() *node {
	p.enter(p.tok().at)
	defer func() { p.depth-- }()
	t := p.next()
	p.expect("(")
	n := &node{op: sIf, at: t.at, kids: []*node{p.expr()}}
	p.expect(")")
	n.body = p.block()
	if p.accept("else") {
		if p.is("if") {
			n.other = []*node{p.ifStatement()}
		} else {
			if !p.is("{") {
				p.unexpected("{", "if")
			}
			n.other = p.block()
		}
	}
	n.at = t.at.with(p.list[p.at-1].at)
	return n
}

func (p *parser) unroll() *node {
	t := p.next()
	p.expect("(")
	var n *node
	switch {
	case p.is(tInt), p.is("-"):
		n = &node{op: sUnroll, kids: []*node{p.integer()}}
	case p.is(tParam), p.is(tParamCount):
		n = &node{op: sUnroll, kids: []*node{p.primary()}}
	default:
		p.unexpected(tParamCount, "-", tParam, tInt)
	}
	close := p.expect(")")
	n.at = t.at.with(close.at)
	n.body = p.block()
	return n
}

func (p *parser) let() *node {
	t := p.next()
	v := p.expect(tVar)
	n := &node{op: sLet, kids: []*node{{op: nVar, text: v.text, at: v.at}}, at: t.at.with(v.at)}
	if p.accept(":") {
		n.ctype = p.ctype(false)
		n.at = n.at.with(n.ctype.at)
	}
	if p.accept("=") {
		y := p.expr()
		return &node{op: sAssign, kids: []*node{{op: nVar, text: v.text, at: v.at}, y}, other: []*node{n}, at: p.since(t.at.from)}
	}
	return n
}

// ctype reads a type; unsized is whether that of a structure may have [].
func (p *parser) ctype(unsized bool) *typeName {
	t := p.tok()
	c := &typeName{name: t.text, at: t.at}
	switch t.kind {
	case tTypeof, tIdent, tBool:
		if !p.language.newest() {
			p.unexpected(tStruct, tIntType, tBuiltinType, tSizedType)
		}
		p.namedType(c)
	case tIntType, tSizedType:
		p.next()
		p.size(c, t.kind == tIntType)
	case tBuiltinType:
		p.next()
	case tStruct:
		p.next()
		id := p.expect(tIdent)
		c.name = id.text
		// Of structures there are no arrays: the number becomes a part of the name, which nothing has.
		of := typeName{}
		if p.size(&of, unsized); of.sized {
			c.name += fmt.Sprintf("[%d]", of.size)
		} else if of.unsized {
			c.name += "[]"
		}
	default:
		p.unexpected(tStruct, tIntType, tBuiltinType, tSizedType)
	}
	for p.is("*") {
		p.next()
		c.stars++
	}
	c.at = c.at.with(p.list[p.at-1].at)
	return c
}

func (p *parser) size(c *typeName, empty bool) {
	if !p.is("[") {
		return
	}
	p.next()
	if empty && p.accept("]") {
		c.unsized = true
		return
	}
	c.sized, c.size = true, p.expect(tInt).num
	p.expect("]")
}
