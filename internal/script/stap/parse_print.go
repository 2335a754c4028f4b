package stap

import (
	"strings"

	"kprobelab/internal/bounded"
)

// directive is a part of a format.
type directive struct {
	plain                    string // with escapes
	verb                     byte
	width, precision         int
	starWidth, starPrecision bool
	left, zero, sign         bool
	space, alternate         bool
}

var prints = setOf("print println printd printdln printf sprint sprintln sprintd sprintdln sprintf")

func isPrint(name string) bool { return prints[name] }

// print reads a call of the print family.
func (p *parser) print(t *token) expr {
	e := &printExpr{base: base{t}, name: t.text}
	kind := strings.TrimPrefix(strings.TrimPrefix(t.text, "s"), "print")
	p.expectOp("(")
	least := 1
	switch kind {
	case "f":
		e.format = p.expectText("expected literal string")
		var ok bool
		if e.pieces, ok = directives(e.format.text); !ok {
			p.peek()
			p.fail("invalid or missing conversion specifier")
		}
		least = 0
		if p.took(",") {
			least = 1
		}
	case "d", "dln":
		e.format = p.expectText("expected literal string")
		p.expectOp(",")
		least = 2
	case "ln":
		least = 0
	}
	if n := p.peek(); (kind == "" || kind == "ln") && t.text[0] == 'p' && n != nil && (n.op("@hist_log") || n.op("@hist_linear")) {
		h := p.histogram()
		if p.took("[") {
			e.args = append(e.args, &index{base: base{n}, hist: h, keys: p.indexes()})
			// What follows may be the rest of an expression; stap reads none here.
			if p.took(",") {
				p.arguments(e, 1)
				return e
			}
		} else {
			e.hist = h
		}
		p.expectOp(")")
		return e
	}
	p.arguments(e, least)
	return e
}

// arguments reads expressions up to the parenthesis; at least so many.
func (p *parser) arguments(e *printExpr, least int) {
	if least == 0 && p.isOp(")") {
		p.next()
		return
	}
	if least == 0 && e.format != nil {
		p.failAtEnd("expected one of ', )'")
	}
	for n := 1; ; n++ {
		e.args = append(e.args, p.expression())
		if p.isOp(")") {
			p.next()
			if n >= least {
				return
			}
			continue
		}
		if !p.isOp(",") {
			p.failAtEnd("expected one of ', )'")
		}
		p.next()
	}
}

// directives reads a format.
func directives(s string) (list []directive, ok bool) {
	plain := ""
	flush := func() {
		if plain != "" {
			list = append(list, directive{plain: plain})
		}
		plain = ""
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			plain += s[i : i+1]
			continue
		}
		if i++; i < len(s) && s[i] == '%' {
			plain += "%"
			continue
		}
		flush()
		d := directive{width: -1, precision: -1}
		// One flag: a 0 after it is the width's.
		if i < len(s) {
			switch i++; s[i-1] {
			case '-':
				d.left = true
			case '+':
				d.sign = true
			case ' ':
				d.space = true
			case '#':
				d.alternate = true
			case '0':
				d.zero = true
			default:
				i--
			}
		}
		d.width, d.starWidth, i = size(s, i, -1)
		if i < len(s) && s[i] == '.' {
			d.precision, d.starPrecision, i = size(s, i+1, 0)
		}
		if i < len(s) && s[i] == 'l' {
			i++ // numbers are long anyway
		}
		if i >= len(s) || strings.IndexByte("bcdimMopsuxX", s[i]) < 0 {
			return nil, false
		}
		d.verb = s[i]
		list = append(list, d)
	}
	flush()
	return list, true
}

// size reads a number or a star.
func size(s string, i, none int) (n int, star bool, at int) {
	if i < len(s) && s[i] == '*' {
		return -1, true, i + 1
	}
	n = none
	for ; i < len(s) && isDigit(s[i]); i++ {
		n = min(max(n, 0)*10+int(s[i]-'0'), bounded.StapWidth)
	}
	return n, false, i
}
