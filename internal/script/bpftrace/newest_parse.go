package bpftrace

import "slices"

// mapDeclaration is let @NAME = KIND(SIZE).
type mapDeclaration struct {
	name, kind string
	size       uint64
	at         span
}

// wants goes over a token of that kind, or says that 0.27 expects it.
func (p *parser) wants(k kind) *token {
	if !p.is(k) {
		p.fail(p.tok().at, "syntax: expected '%s'", k)
	}
	return p.next()
}

// beginning reads the config block and the imports, in any order.
func (p *parser) beginning(t *tree) {
	for {
		switch {
		case p.is("config") && p.ahead(1) == "=":
			p.next()
			p.next()
			p.settings(t)
		case p.is(tImport):
			at := p.next().at
			file := p.expect(tString)
			t.imports = append(t.imports, &node{op: nString, text: file.text, at: at.with(file.at)})
			p.expect(";")
		default:
			return
		}
	}
}

// declaration reads a macro or a map's declaration. It returns false if there is none.
func (p *parser) declaration(t *tree) bool {
	switch {
	case p.is(tMacro):
		t.macros = append(t.macros, p.macro())
	case p.is("let"):
		at := p.next().at
		name := p.expect(tMap)
		p.expect("=")
		d := &mapDeclaration{name: name.text, kind: p.expect(tIdent).text}
		p.expect("(")
		d.size = p.expect(tInt).num
		close := p.expect(")")
		d.at = at.with(close.at)
		p.accept(";")
		t.declared = append(t.declared, d)
	default:
		return false
	}
	return true
}

// settingValue reads the value of a setting, which may be a bare word.
func (p *parser) settingValue() *node {
	t := p.tok()
	if !p.language.newest() {
		return p.expr()
	}
	switch t.kind {
	case tBool:
		p.next()
		return &node{op: nBool, num: map[string]uint64{"true": 1}[t.text], text: t.text, at: t.at}
	case tIdent, tBuiltin:
		p.next()
		return &node{op: nString, text: t.text, at: t.at}
	}
	return p.expr()
}

// newestStatement reads the statements that 0.23 does not have, or has with parentheses alone. It returns nil for others.
func (p *parser) newestStatement() *node {
	t := p.tok()
	switch t.kind {
	case "if":
		return p.bareIf()
	case "while":
		p.next()
		n := &node{op: sWhile, at: t.at, kids: []*node{p.condition()}}
		n.body = p.block()
		return n
	case "unroll":
		p.next()
		n := &node{op: sUnroll, kids: []*node{p.condition()}}
		n.at = p.since(t.at.from)
		n.body = p.block()
		return n
	case "for":
		return p.bareFor()
	case tDiscard:
		if p.ahead(1) == "=" {
			p.next()
			p.next()
			x := p.expr()
			return &node{op: sExpr, kids: []*node{x}, at: x.at, post: true}
		}
	}
	return nil
}

// bareIf reads an if whose condition may stand without parentheses.
func (p *parser) bareIf() *node {
	p.enter(p.tok().at)
	defer func() { p.depth-- }()
	t := p.next()
	n := &node{op: sIf, at: t.at, kids: []*node{p.condition()}}
	n.body = p.block()
	if p.accept("else") {
		if p.is("if") {
			n.other = []*node{p.bareIf()}
		} else {
			n.other = p.block()
		}
	}
	n.at = t.at.with(p.list[p.at-1].at)
	return n
}

// condition reads a condition before a block: an operand, or an expression in parentheses.
func (p *parser) condition() *node { return p.cast() }

// bareFor reads a loop over a map or a range.
func (p *parser) bareFor() *node {
	t := p.next()
	paren := p.is("(") && p.ahead(1) == tVar && p.ahead(2) == ":"
	if paren {
		p.next()
	}
	v := p.expect(tVar)
	p.expect(":")
	n := &node{op: sFor, at: t.at, kids: []*node{{op: nVar, text: v.text, at: v.at}, p.rangeEnd()}}
	if p.is(".") {
		p.next()
		p.expect(".")
		n.kids = append(n.kids, p.rangeEnd())
	}
	if paren {
		p.expect(")")
	}
	n.at = p.since(t.at.from)
	n.body = p.block()
	return n
}

// rangeEnd reads one end of a range: an operand, not an operation.
func (p *parser) rangeEnd() *node {
	if p.is("-") {
		p.fail(p.tok().at, "syntax: expected expression")
	}
	return p.postfix()
}

// newestPrimary reads the operands that 0.23 does not have. It returns nil for others.
func (p *parser) newestPrimary() *node {
	t := p.tok()
	switch t.kind {
	case tBool:
		p.next()
		return &node{op: nBool, num: map[string]uint64{"true": 1}[t.text], text: t.text, at: t.at}
	case tComp:
		p.next()
		x := *p.cast()
		x.comptime = true
		return &x
	case "config":
		p.next()
		p.wants(".")
		return &node{op: nCall, text: "config", path: []string{p.name()}, at: p.since(t.at.from)}
	case "{":
		return p.blockValue()
	case "if":
		return p.ifValue()
	case tTypeof:
		p.next()
		n := &node{op: nCall, text: t.text}
		p.expect("(")
		n.kids = []*node{p.expr()}
		n.at = t.at.with(p.expect(")").at)
		return n
	case tIdent, tBuiltin, tCallBuiltin, tBuiltinType:
		return p.word()
	}
	return nil
}

// word reads a name: a call, a macro without parentheses, a variable of the tool's, or a constant.
func (p *parser) word() *node {
	t := p.next()
	exclaimed := p.is("!") && p.ahead(1) == "(" && p.tok().at.from == t.at.to
	if exclaimed {
		p.next()
	}
	if p.is("(") {
		n := &node{op: nCall, text: t.text, known: t.kind != tIdent}
		n.kids = p.arguments()
		n.at = t.at.with(p.list[p.at-1].at)
		return n
	}
	if t.kind == tIdent || t.kind == tBuiltinType {
		return &node{op: nIdent, text: t.text, at: t.at}
	}
	return &node{op: nBuiltin, text: t.text, at: t.at}
}

// arguments reads a call's arguments. One may be a type.
func (p *parser) arguments() (list []*node) {
	p.expect("(")
	for !p.is(")") {
		if p.is(tStruct) || p.is(tIntType) {
			at := p.tok().at
			c := p.ctype(true)
			list = append(list, &node{op: nSizeof, ctype: c, at: at.with(c.at)})
		} else {
			list = append(list, p.expr())
		}
		if p.accept(",") {
			if p.is(")") {
				p.fail(p.tok().at, "syntax: expected expression")
			}
		} else if !p.is(")") {
			p.fail(p.tok().at, "syntax: expected ')'")
		}
	}
	p.next()
	return list
}

// blockValue reads a block with a value, the expression before its end.
func (p *parser) blockValue() *node {
	t := p.tok()
	n := &node{op: nBlock, body: p.block()}
	n.at = p.since(t.at.from)
	n.takeValue(p.list[p.at-2].kind != ";")
	return n
}

// takeValue makes the last statement of a block its value, if it is an expression without a semicolon.
func (n *node) takeValue(open bool) {
	last := len(n.body) - 1
	if last < 0 || !open || n.body[last].op != sExpr || n.body[last].post {
		return
	}
	n.kids = []*node{n.body[last].kids[0]}
	n.body = n.body[:last]
}

// ifValue reads an if that is an expression.
func (p *parser) ifValue() *node {
	p.enter(p.tok().at)
	defer func() { p.depth-- }()
	t := p.next()
	n := &node{op: nIfValue, kids: []*node{p.condition(), p.blockValue()}}
	if p.accept("else") {
		if p.is("if") {
			n.kids = append(n.kids, p.ifValue())
		} else {
			n.kids = append(n.kids, p.blockValue())
		}
	}
	n.at = p.since(t.at.from)
	return n
}

// parenthesis reads an expression, a tuple or a record.
func (p *parser) parenthesis() *node {
	t := p.next()
	if (p.is(tIdent) || p.is(tBuiltin)) && p.ahead(1) == "=" {
		return p.record(t)
	}
	var list []*node
	comma := false
	for !p.is(")") {
		list = append(list, p.expr())
		if comma = p.accept(","); !comma && !p.is(")") {
			p.unexpected(")", ",")
		}
	}
	close := p.next()
	if len(list) == 1 && !comma {
		x := *list[0]
		if x.op == nMap || x.op == nVar || x.op == nIndex {
			x.post = true // no longer something that can be assigned to
		}
		return &x
	}
	return &node{op: nTuple, kids: list, at: t.at.with(close.at)}
}

// record reads (NAME=VALUE, …).
func (p *parser) record(open *token) *node {
	n := &node{op: nRecord}
	for !p.is(")") {
		at := p.tok().at
		name := p.name()
		if slices.Contains(n.names, name) {
			p.fail(at, "Duplicate field name '%s' in record", name)
		}
		p.expect("=")
		n.names, n.kids = append(n.names, name), append(n.kids, p.expr())
		if !p.accept(",") && !p.is(")") {
			p.unexpected(")", ",")
		}
	}
	n.at = open.at.with(p.next().at)
	return n
}

// elvis makes X ?: Y: the first if it is not 0, otherwise the second.
func (p *parser) elvis(x *node, from pos) *node {
	y := p.expr()
	return &node{op: nTernary, kids: []*node{x, x.clone(), y}, at: p.since(from)}
}

// castAhead reports whether a name in parentheses is the type of a cast: an operand follows.
func (p *parser) castAhead() bool {
	i := 2
	for p.ahead(i) == "*" {
		i++
	}
	if p.ahead(i) == "[" {
		return p.ahead(i+1) == "]" || p.ahead(i+1) == tInt && p.ahead(i+2) == "]"
	}
	if p.ahead(i) != ")" {
		return false
	}
	switch p.ahead(i + 1) {
	case tInt, tString, tBool, tIdent, tBuiltin, tCallBuiltin, tVar, tMap, tParam, "(", "~", "!", "sizeof", "offsetof":
		return true
	case "-", "*", "&", "++", "--":
		return i > 2 // with a star it is a type; without, these are operators
	}
	return false
}

// namedType reads the name of a type that is one word, or typeof(X).
func (p *parser) namedType(c *typeName) {
	t := p.next()
	if t.kind == tTypeof {
		p.expect("(")
		if p.is(tStruct) || p.is(tIntType) || p.is(tSizedType) || p.is(tBuiltinType) {
			*c = *p.ctype(true)
		} else {
			c.of = p.expr()
		}
		p.expect(")")
	}
	p.size(c, true)
}
