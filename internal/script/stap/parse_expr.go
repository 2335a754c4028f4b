package stap

import (
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
)

func (p *parser) expression() expr {
	defer p.deeper()()
	return p.assignment()
}

var assignments = setOf("= <<< += -= *= /= %= <<= >>= &= ^= |= .=")

func (p *parser) assignment() expr {
	x := p.ternary()
	if t := p.peek(); t != nil && t.kind == operator && assignments[t.text] {
		p.next()
		return &assign{base{t}, t.text, x, p.expression()}
	}
	return x
}

func (p *parser) ternary() expr {
	x := p.binaries(0)
	if t := p.peek(); t.op("?") {
		p.next()
		e := &ternary{base: base{t}, cond: x}
		e.x = p.expression()
		p.expectOp(":")
		defer p.deeper()()
		e.y = p.ternary()
		return e
	}
	return x
}

// levels are the operators from the weakest to the strongest; in stands for array membership.
var levels = [][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"in"},
	{"==", "!=", "<", ">", "<=", ">=", "=~", "!~"},
	{"<<", ">>"}, {"."}, {"+", "-"}, {"*", "/", "%"},
}

func (p *parser) binaries(level int) expr {
	if level == len(levels) {
		return p.unary()
	}
	if levels[level][0] == "in" {
		return p.membership(level + 1)
	}
	x := p.binaries(level + 1)
	for terms := 1; ; terms++ {
		t := p.peek()
		if t == nil || t.kind != operator || !contains(levels[level], t.text) {
			return x
		}
		if terms == bounded.Terms {
			p.fail(fmt.Sprintf("an expression has more than %d terms", bounded.Terms))
		}
		p.next()
		if t.text == "=~" || t.text == "!~" {
			x = &match{base{t}, t.text, x, p.expectText("expected literal string")}
			continue
		}
		x = &binary{base{t}, t.text, x, p.binaries(level + 1)}
	}
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// membership reads [a, b] in array.
func (p *parser) membership(level int) expr {
	first := p.peek()
	var keys []expr
	list := p.took("[")
	for {
		if list && p.isOp("*") {
			p.next()
			keys = append(keys, nil)
		} else {
			keys = append(keys, p.binaries(level))
		}
		if !list {
			break
		}
		if p.took("]") {
			break
		}
		if p.took(",") {
			continue
		}
		p.failAtEnd("expected one of '] ,'")
	}
	if t := p.peek(); t.is(keyword, "in") {
		p.next()
		e := &inArray{base: base{t}, keys: keys}
		sym, hist := p.indexable()
		if e.hist = hist; sym != nil {
			e.name = sym.name
			e.tok = sym.tok
		}
		return e
	}
	if len(keys) == 1 && keys[0] != nil {
		return keys[0]
	}
	if len(keys) == 1 {
		p.failAt("unexpected wildcard", first)
	}
	p.fail("unexpected comma-separated expression list")
	return nil
}

func (p *parser) unary() expr {
	t := p.peek()
	if t != nil && t.kind == operator && (t.text == "+" || t.text == "-" || t.text == "!" || t.text == "~") {
		defer p.deeper()()
		p.next()
		return &unary{base{t}, t.text, p.unary()}
	}
	return p.crement()
}

func (p *parser) crement() expr {
	t := p.peek()
	if t.op("++") || t.op("--") {
		p.next()
		return &crement{base{t}, t.text, false, p.accessed()}
	}
	x := p.accessed()
	if t := p.peek(); t.op("++") || t.op("--") {
		p.next()
		return &crement{base{t}, t.text, true, x}
	}
	return x
}

// accessed reads a value, & before it, and what follows it: ->name, [index] and dollars.
func (p *parser) accessed() expr {
	at := p.peek()
	address := p.took("&")
	t := p.peek()
	x := p.value()
	tg, ok := x.(*target)
	if direct := t.kind == identifier && t.text[0] == '$' || t.op("@cast") || t.op("@var"); !direct {
		if ok && address && tg.address {
			p.failAt("cannot take address more than once", at)
		}
		if !address && !p.steps() {
			return x
		}
		if !address {
			at = p.peek()
		}
		tg = &target{base: base{at}, what: "auto", of: x}
	}
	tg.address = address
	if n := len(tg.path); n > 0 && tg.path[n-1].pretty {
		p.prettyEnds()
	} else {
		p.path(tg)
	}
	return tg
}

// steps reports whether steps into a value follow.
func (p *parser) steps() bool {
	t := p.peek()
	return t.op("->") || t.op("[") || t != nil && t.kind == identifier && strings.Trim(t.text, "$") == ""
}

// path reads the steps into a value.
func (p *parser) path(tg *target) {
	for {
		t := p.peek()
		switch {
		case t.op("->"):
			p.next()
			n := p.peek()
			if n == nil || n.kind != identifier && n.kind != keyword {
				p.failAtEnd("expected identifier or keyword")
			}
			p.next()
			name, dollars := splitDollars(n.text)
			if name != "" {
				tg.path = append(tg.path, access{tok: n, name: name})
			}
			if dollars != "" {
				tg.path = append(tg.path, access{tok: n, name: dollars, pretty: true})
				p.prettyEnds()
				return
			}
		case t.op("["):
			p.next()
			i := p.expression()
			p.expectOp("]")
			lit, ok := i.(*literal)
			tg.path = append(tg.path, access{tok: t, index: i, isNum: ok && !lit.isText})
		case t != nil && t.kind == identifier && strings.Trim(t.text, "$") == "":
			p.next()
			tg.path = append(tg.path, access{tok: t, name: t.text, pretty: true})
			p.prettyEnds()
			return
		default:
			return
		}
	}
}

// prettyEnds refuses -> and [ after a value that is printed whole.
func (p *parser) prettyEnds() {
	if p.isOp("->") || p.isOp("[") {
		p.fail("-> and [ are not accepted for a pretty-printing variable")
	}
}

// splitDollars takes the dollars from a name's end.
func splitDollars(s string) (name, dollars string) {
	name = strings.TrimRight(s, "$")
	return name, s[len(name):]
}

func (p *parser) value() expr {
	t := p.peek()
	if t == nil {
		p.fail("expected value")
	}
	switch {
	case t.kind == embedded:
		p.embeddedAllowed("embedded expression code in unprivileged script; need stap -g")
		p.next()
		return &embeddedExpr{base{t}}
	case t.op("("):
		p.next()
		x := p.expression()
		p.expectOp(")")
		return x
	case t.kind == identifier, t.kind == operator && strings.HasPrefix(t.text, "@"):
		return p.symbol()
	case t.op("-"):
		p.fail("expected literal string or number")
	}
	return p.literal()
}

func (p *parser) privileged(t *token) {
	if !p.guru {
		panic(&Problem{Kind: parseError, Message: "using " + t.text + " operator not permitted; need stap -g", saw: t})
	}
}

// shift reads what follows an extractor's array: of @variance by how many bits, and the end. As in stap,
// other words in between mean nothing.
func (p *parser) shift(e *statExpr) {
	for {
		t := p.next()
		switch {
		case t.op(")"):
			return
		case t.op(",") && (e.what != "@variance" || e.shift != nil):
			n := 1
			if e.what == "@variance" {
				n = 2
			}
			p.failAt(fmt.Sprintf("not more than %s allowed", plural(n, "parameter")), t)
		case t.op(","):
			v, _ := p.expectNumber()
			if v < 0 || v > 62 {
				p.fail("bit shift out of range (0..62)")
			}
			e.shift = &v
		}
	}
}

func (p *parser) histogram() *histExpr {
	t := p.next()
	h := &histExpr{base: base{t}, what: t.text}
	p.expectOp("(")
	h.of = p.expression()
	if t.text == "@hist_linear" {
		for range 3 {
			p.expectOp(",")
			v, _ := p.expectNumber()
			h.params = append(h.params, v)
		}
	}
	p.expectOp(")")
	return h
}

func (p *parser) symbol() expr {
	t := p.peek()
	if t.text == "@hist_log" || t.text == "@hist_linear" {
		h := p.histogram()
		if p.took("[") {
			keys := p.indexes()
			return &index{base: base{t}, hist: h, keys: keys}
		}
		p.failAt("base histogram operator where expression expected", t)
	}
	p.next()
	if t.kind == operator {
		return p.operator(t)
	}
	if strings.HasPrefix(t.text, "$") {
		return p.context(t)
	}
	if isPrint(t.text) {
		return p.print(t)
	}
	if p.took("(") {
		c := &call{base: base{t}, name: t.text}
		if p.took(")") {
			return c
		}
		for {
			c.args = append(c.args, p.expression())
			if p.took(")") {
				return c
			}
			if !p.isOp(",") {
				p.failAtEnd("expected one of ') ,'")
			}
			p.next()
		}
	}
	if p.took("[") {
		return &index{base: base{t}, name: t.text, keys: p.indexes()}
	}
	return &symbol{base{t}, t.text}
}

// context reads $name.
func (p *parser) context(t *token) expr {
	name, dollars := splitDollars(t.text)
	if name == "" {
		name, dollars = t.text, "" // which no function has
	}
	tg := &target{base: base{t}, what: "$", name: name}
	if dollars != "" {
		tg.path = append(tg.path, access{tok: t, name: dollars, pretty: true})
	}
	return tg
}

func (p *parser) operator(t *token) expr {
	b := base{t}
	switch t.text {
	case "@cast":
		p.expectOp("(")
		tg := &target{base: b, what: "@cast", of: p.expression()}
		p.expectOp(",")
		tg.name = p.expectText("expected string").text
		if p.took(",") {
			tg.module = p.expectText("expected string").text
		}
		p.expectOp(")")
		return tg
	case "@var":
		p.expectOp("(")
		tg := &target{base: b, what: "@var", name: p.expectText("expected string").text}
		if p.took(",") {
			tg.module = p.expectText("expected string").text
		}
		p.expectOp(")")
		return tg
	case "@defined", "@entry", "@probewrite":
		p.expectOp("(")
		x := p.expression()
		p.expectOp(")")
		switch t.text {
		case "@defined":
			return &definedExpr{b, x}
		case "@entry":
			return &entryExpr{b, x}
		}
		return &probewriteExpr{b, x}
	case "@perf":
		p.expectOp("(")
		e := &perfExpr{b, p.expectText("expected literal string").text}
		p.expectOp(")")
		return e
	case "@const":
		p.privileged(t)
		p.expectOp("(")
		e := &constExpr{b, p.expectText("expected literal string").text}
		p.expectOp(")")
		return e
	case "@kderef", "@uderef":
		p.privileged(t)
		p.expectOp("(")
		size, _ := p.expectNumber()
		p.expectOp(",")
		e := &memoryExpr{b, t.text, size, p.expression()}
		p.expectOp(")")
		return e
	case "@kregister", "@uregister":
		p.privileged(t)
		p.expectOp("(")
		n, _ := p.expectNumber()
		p.expectOp(")")
		return &memoryExpr{base: b, what: t.text, size: n}
	case "@count", "@sum", "@min", "@max", "@avg", "@variance":
		p.expectOp("(")
		e := &statExpr{base: b, what: t.text, of: p.expression()}
		p.shift(e)
		return e
	}
	p.last = t
	for begins, why := range missingMacros {
		if strings.HasPrefix(t.text, "@"+begins) {
			p.fail("macro " + t.text + ": " + why)
		}
	}
	p.fail("unknown operator " + t.text)
	return nil
}
