package bpftrace

import (
	"strconv"

	"kprobelab/internal/bounded"
)

// levels are the operators with two operands, from the loosest on.
var levels = [][]kind{{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

func (p *parser) expr() *node {
	p.enter(p.tok().at)
	defer func() { p.depth-- }()
	from := p.tok().at.from
	x := p.binary(0)
	if !p.accept("?") {
		return x
	}
	if p.language.newest() && p.accept(":") {
		return p.elvis(x, from)
	}
	y := p.expr()
	p.expect(":")
	z := p.expr()
	return &node{op: nTernary, kids: []*node{x, y, z}, at: p.since(from)}
}

func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.cast()
	}
	x := p.binary(level + 1)
	for terms := 1; ; terms++ {
		o := p.tok()
		found := false
		for _, k := range levels[level] {
			found = found || o.kind == k
		}
		if !found {
			return x
		}
		if terms == bounded.Terms {
			p.fail(o.at, "an expression has more than %d terms", bounded.Terms)
		}
		p.next()
		y := p.binary(level + 1)
		x = &node{op: nBinary, text: o.text, kids: []*node{x, y}, at: o.at}
	}
}

// cast is a cast, or what follows.
func (p *parser) cast() *node {
	p.enter(p.tok().at)
	defer func() { p.depth-- }()
	if !p.is("(") {
		return p.unary()
	}
	open := p.tok()
	var c *typeName
	switch p.ahead(1) {
	case tIntType, tSizedType, tBuiltinType, tStruct:
		p.next()
		c = p.ctype(true)
	case tTypeof:
		p.next()
		c = p.ctype(true)
	case tIdent:
		if p.language.newest() && !p.castAhead() || p.ahead(2) != ")" && p.ahead(2) != "*" {
			return p.unary()
		}
		p.next()
		t := p.next()
		c = &typeName{name: t.text, at: t.at}
		for p.is("*") && c.stars < 2 {
			p.next()
			c.stars++
		}
		if p.language.newest() {
			p.size(c, true)
		}
	default:
		return p.unary()
	}
	close := p.expect(")", "*")
	x := p.cast()
	return &node{op: nCast, ctype: c, kids: []*node{x}, at: open.at.with(close.at)}
}

func (p *parser) unary() *node {
	t := p.tok()
	switch t.kind {
	case "-":
		if p.ahead(1) == tInt {
			break
		}
		fallthrough
	case "*", "~", "!":
		p.next()
		x := p.cast()
		if t.kind == "*" {
			return &node{op: nDeref, kids: []*node{x}, at: t.at}
		}
		return &node{op: nUnary, text: t.text, kids: []*node{x}, at: t.at}
	case "&":
		if !p.language.newest() {
			break
		}
		p.next()
		return &node{op: nAddress, kids: []*node{p.cast()}, at: t.at}
	case "++", "--":
		p.next()
		if !p.is(tMap) && !p.is(tVar) {
			switch p.kind() {
			case tIdent, tBuiltin, tBuiltinType, tCall, tCallBuiltin, tStackMode:
				p.fail(t.at, "The %s operator must be applied to a map or variable", t.text)
			}
			p.unexpected()
		}
		return &node{op: nIncr, text: t.text, kids: []*node{p.mapOrVar()}, at: t.at}
	case tIdent, tBuiltin, tBuiltinType, tCall, tCallBuiltin, tStackMode:
		if k := p.ahead(1); k == "++" || k == "--" {
			p.fail(t.at, "The %s operator must be applied to a map or variable", k)
		}
	}
	return p.postfix()
}

func (p *parser) mapOrVar() *node {
	t := p.next()
	if t.kind == tVar {
		return &node{op: nVar, text: t.text, at: t.at}
	}
	n := &node{op: nMap, text: t.text, at: t.at}
	if !p.is("[") {
		return n
	}
	p.next()
	list := p.exprs("]")
	close := p.expect("]")
	n.at = t.at.with(close.at)
	if len(list) > 1 {
		n.kids = []*node{{op: nTuple, kids: list, at: n.at}}
	} else {
		n.kids = list
	}
	return n
}

func (p *parser) exprs(end kind) []*node {
	list := p.commas()
	if !p.is(end) {
		p.unexpected(end, ",")
	}
	return list
}

func (p *parser) commas() []*node {
	list := []*node{p.expr()}
	for p.accept(",") {
		list = append(list, p.expr())
	}
	return list
}

func (p *parser) postfix() *node {
	from := p.tok().at.from
	x := p.primary()
	for {
		t := p.tok()
		switch t.kind {
		case ".":
			if p.language.newest() && p.ahead(1) == "." {
				return x // a range
			}
			p.next()
			if p.is(tInt) {
				i := p.next()
				x = &node{op: nIndex, num: i.num, kids: []*node{x}, at: i.at, post: true}
				continue
			}
			x = &node{op: nField, text: p.name(), kids: []*node{x}, at: t.at}
		case "->":
			p.next()
			name := p.name()
			d := &node{op: nDeref, kids: []*node{x}, at: t.at}
			x = &node{op: nField, text: name, kids: []*node{d}, at: p.since(from)}
		case "[":
			if x.op == nMap && len(x.kids) == 0 {
				return x
			}
			p.next()
			i := p.expr()
			close := p.expect("]")
			x = &node{op: nArray, kids: []*node{x, i}, at: t.at.with(close.at)}
		case "++", "--":
			if (x.op != nMap && x.op != nVar) || x.post {
				return x
			}
			p.next()
			x = &node{op: nIncr, text: t.text, post: true, kids: []*node{x}, at: t.at}
		default:
			return x
		}
	}
}

// name is a field's name: any word.
func (p *parser) name() string {
	t := p.tok()
	switch t.kind {
	case tIdent, tBuiltin, tBuiltinType, tCall, tCallBuiltin, tStackMode, tFn,
		"break", "config", "continue", "else", "for", "if", "let", "offsetof", "return", "sizeof", "unroll", "while":
		p.next()
		return t.text
	}
	p.unexpected()
	return ""
}

func (p *parser) integer() *node {
	t := p.tok()
	if p.accept("-") {
		i := p.expect(tInt)
		return &node{op: nInt, num: -i.num, negative: true, at: t.at.with(i.at)}
	}
	p.next()
	return &node{op: nInt, num: t.num, at: t.at}
}

func (p *parser) primary() *node {
	t := p.tok()
	if p.language.newest() {
		if n := p.newestPrimary(); n != nil {
			return n
		}
	}
	switch t.kind {
	case "-":
		if p.ahead(1) == tInt {
			return p.integer()
		}
	case tInt:
		return p.integer()
	case tString:
		p.next()
		return &node{op: nString, text: t.text, at: t.at}
	case tStackMode, tBuiltin, tIdent:
		p.next()
		if p.is("(") {
			p.exprsInCall()
			p.fail(t.at, "Unknown function: %s", t.text)
		}
		return &node{op: map[kind]op{tStackMode: nStackMode, tBuiltin: nBuiltin, tIdent: nIdent}[t.kind], text: t.text, at: t.at}
	case tCallBuiltin:
		if p.ahead(1) != "(" {
			p.next()
			return &node{op: nBuiltin, text: t.text, at: t.at}
		}
		return p.call()
	case tCall:
		return p.call()
	case tParam, tParamCount:
		p.next()
		if t.kind == tParamCount {
			return &node{op: nParamCount, at: t.at}
		}
		n, err := strconv.ParseInt(t.text[1:], 10, 64)
		if err != nil || n == 0 {
			p.fail(t.at, "%s", outOfRange(t.text))
		}
		return &node{op: nParam, num: uint64(n), at: t.at}
	case tMap, tVar:
		return p.mapOrVar()
	case "sizeof", "offsetof":
		return p.sizeof()
	case "(":
		if p.language.newest() {
			return p.parenthesis()
		}
		p.next()
		list := p.commas()
		if !p.is(")") {
			p.unexpected(",")
		}
		close := p.next()
		if len(list) == 1 {
			x := *list[0]
			if x.op == nMap || x.op == nVar || x.op == nIndex {
				x.post = true // no longer something that can be assigned to
			}
			return &x
		}
		return &node{op: nTuple, kids: list, at: t.at.with(close.at)}
	}
	p.unexpected()
	return nil
}

// exprsInCall goes over a call's arguments.
func (p *parser) exprsInCall() []*node {
	p.expect("(")
	if p.accept(")") {
		return nil
	}
	list := p.exprs(")")
	p.next()
	return list
}

func (p *parser) call() *node {
	t := p.next()
	if !p.is("(") {
		p.unexpected("++", "--")
	}
	n := &node{op: nCall, text: t.text}
	n.kids = p.exprsInCall()
	n.at = t.at.with(p.list[p.at-1].at)
	return n
}

func (p *parser) sizeof() *node {
	t := p.next()
	n := &node{op: nSizeof}
	if t.text == "offsetof" {
		n.op = nOffset
	}
	p.expect("(")
	switch k := p.kind(); {
	case k == tTypeof, k == tStruct, n.op == nSizeof && (k == tIntType || k == tSizedType || k == tBuiltinType):
		n.ctype = p.ctype(true)
	default:
		n.kids = []*node{p.expr()}
	}
	if n.op == nOffset {
		p.expect(",")
		n.path = append(n.path, p.name())
		for p.accept(".") {
			n.path = append(n.path, p.name())
		}
	}
	var also []kind
	switch {
	case n.op == nOffset:
		also = []kind{"."}
	case n.ctype != nil:
		also = []kind{"*"}
	}
	close := p.expect(")", also...)
	n.at = t.at.with(close.at)
	return n
}

// beginsExpr reports whether the next token can begin an expression.
func (p *parser) beginsExpr() bool {
	switch p.kind() {
	case "(", "-", "*", "~", "!", "++", "--", tInt, tString, tStackMode, tBuiltin, tIdent, tCallBuiltin, tCall, tParam, tParamCount, tMap, tVar, "sizeof", "offsetof":
		return true
	}
	return false
}
