package stap

import "kprobelab/internal/bounded"

func (p *parser) deeper() func() {
	if p.depth++; p.depth > bounded.StapNesting {
		p.peek()
		p.fail("the script is nested too deeply")
	}
	return func() { p.depth-- }
}

func (p *parser) block() *block {
	t := p.peek()
	if !t.op("{") {
		p.fail("expected '{'")
	}
	p.next()
	b := &block{base: base{t}}
	for {
		t := p.peek()
		if t.op("}") {
			p.next()
			return b
		}
		b.list = append(b.list, p.statement())
	}
}

func (p *parser) statement() stmt {
	defer p.deeper()()
	t := p.peek()
	if t == nil {
		p.fail("expected statement")
	}
	var s stmt
	switch {
	case t.op(";"):
		p.next()
		return &nothing{base{t}}
	case t.op("{"):
		return p.block()
	case t.is(keyword, "try"):
		return p.try()
	case t.is(keyword, "if"):
		return p.ifStmt()
	case t.is(keyword, "for"):
		return p.forStmt()
	case t.is(keyword, "while"):
		return p.whileStmt()
	case t.is(keyword, "foreach"):
		return p.foreach()
	case t.is(keyword, "delete"):
		p.next()
		s = &deleteStmt{base{t}, p.expression()}
	case t.is(keyword, "return"):
		if !p.function {
			p.fail("found 'return' not in function context")
		}
		p.next()
		r := &returnStmt{base: base{t}}
		if n := p.peek(); !n.op(";") && !n.op("}") {
			r.x = p.expression()
		}
		s = r
	case t.is(keyword, "next"), t.is(keyword, "break"), t.is(keyword, "continue"):
		p.next()
		s = &jumpStmt{base{t}}
	case t.kind == operator, t.kind == identifier, t.kind == number, t.kind == text, t.kind == embedded:
		s = &exprStmt{base{t}, p.expression()}
	default:
		p.fail("expected statement")
	}
	p.took(";")
	return s
}

func (p *parser) try() stmt {
	s := &tryStmt{base: base{p.next()}}
	s.body = p.block()
	p.expectKeyword("catch")
	if p.took("(") {
		t := p.expectIdentifier()
		s.to = &symbol{base{t}, t.text}
		p.expectOp(")")
	}
	s.catch = p.block()
	return s
}

func (p *parser) ifStmt() stmt {
	s := &ifStmt{base: base{p.next()}}
	p.expectOp("(")
	s.cond = p.expression()
	p.expectOp(")")
	s.then = p.statement()
	if p.isKeyword("else") {
		p.next()
		s.other = p.statement()
	}
	return s
}

func (p *parser) forStmt() stmt {
	s := &forStmt{base: base{p.next()}}
	p.expectOp("(")
	if !p.took(";") {
		s.start = p.expression()
		p.expectOp(";")
	}
	if !p.took(";") {
		s.cond = p.expression()
		p.expectOp(";")
	}
	if !p.took(")") {
		s.post = p.expression()
		p.expectOp(")")
	}
	s.body = p.statement()
	return s
}

func (p *parser) whileStmt() stmt {
	s := &forStmt{base: base{p.next()}}
	p.expectOp("(")
	s.cond = p.expression()
	p.expectOp(")")
	s.body = p.statement()
	return s
}

// direction reads a + or a - that sorts.
func (p *parser) direction(s *foreachStmt, key int) bool {
	t := p.peek()
	if !t.op("+") && !t.op("-") {
		return false
	}
	if s.sort >= 0 {
		p.fail("multiple sort directives")
	}
	s.sort, s.down = key, t.op("-")
	p.next()
	return true
}

func (p *parser) foreach() stmt {
	s := &foreachStmt{base: base{p.next()}, sort: -1}
	p.expectOp("(")
	list := p.took("[")
	if !list {
		if t := p.peek(); t == nil || t.kind != identifier {
			p.fail("expected identifier")
		}
		t := p.next()
		first := &symbol{base{t}, t.text}
		sorted := p.direction(s, 0)
		switch {
		case p.took("="):
			s.value = first
			list = p.took("[")
		default:
			if sorted {
				s.sort = 1
			}
			s.keys = append(s.keys, first)
		}
	}
	for len(s.keys) == 0 || list {
		t := p.expectIdentifier()
		s.keys = append(s.keys, &symbol{base{t}, t.text})
		p.direction(s, len(s.keys))
		if !list {
			break
		}
		if p.took(",") {
			continue
		}
		if !p.isOp("]") {
			p.fail("expected ',' or ']'")
		}
		p.next()
		break
	}
	p.expectKeyword("in")
	s.array, s.hist = p.indexable()
	if p.took("[") {
		s.sliced = true
		s.slice = p.indexes()
	}
	if t := p.peek(); t != nil && t.kind == operator && statOperators[t.text] {
		p.next()
		s.by = t.text
		if n := p.peek(); !n.op("+") && !n.op("-") {
			p.fail("expected sort directive")
		}
	}
	p.direction(s, 0)
	if p.isKeyword("limit") {
		p.next()
		s.limit = p.expression()
	}
	p.expectOp(")")
	s.body = p.statement()
	return s
}

var statOperators = setOf("@count @sum @min @max @avg @variance")

// indexes reads keys up to the bracket that closes; a star is nil.
func (p *parser) indexes() []expr {
	var list []expr
	for {
		if p.isOp("*") {
			p.next()
			list = append(list, nil)
		} else {
			list = append(list, p.expression())
		}
		if p.took(",") {
			continue
		}
		if !p.isOp("]") {
			p.failAtEnd("expected one of '] ,'")
		}
		p.next()
		return list
	}
}

// indexable reads an array's name or a histogram.
func (p *parser) indexable() (*symbol, *histExpr) {
	t := p.peek()
	if t != nil && t.kind == operator && (t.text == "@hist_log" || t.text == "@hist_linear") {
		return nil, p.histogram()
	}
	if t == nil || t.kind != identifier && (t.kind != operator || t.text[0] != '@') {
		p.fail("expected identifier or statistical operation")
	}
	p.next() // of another operator, no array has the name
	return &symbol{base{t}, t.text}, nil
}
