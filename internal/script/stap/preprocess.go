package stap

import (
	"fmt"
	"path"
	"strings"
)

// Version is the release of SystemTap whose language this is.
const Version = "4.8"

// macro is what @define gives a name.
type macro struct {
	params []string
	body   []*token
}

// preprocessor gives the tokens that are left after macros and conditions.
type preprocessor struct {
	passing bool // leaving out a part of a condition
	lex     *lexer
	o       *Options
	macros  map[string]*macro
	shared  map[string]*macro // those of the library
	queue   []*token          // tokens that come before the lexer's
	open    []*token          // the conditions that are open
	made    int               // tokens that macros made
}

func problem(message string, at *token) *Problem {
	return &Problem{Kind: parseError, Message: message, at: at, skip: true}
}

// maxMade bounds what macros make of a script.
const maxMade = 1 << 18

func (p *preprocessor) raw() *token {
	if len(p.queue) > 0 {
		t := p.queue[0]
		p.queue = p.queue[1:]
		return t
	}
	t := p.lex.next()
	if t != nil && t.message != "" && !(t.noArgument && p.passing) {
		panic(problem(t.message, t))
	}
	return t
}

// expanded is the next token after macros.
func (p *preprocessor) expanded() *token {
	for {
		t := p.raw()
		if t == nil || t.kind != operator || !strings.HasPrefix(t.text, "@") || len(t.text) == 1 {
			return t
		}
		if t.text == "@define" {
			p.define()
			continue
		}
		m := p.macros[t.text[1:]]
		if m == nil {
			m = p.shared[t.text[1:]]
		}
		if m == nil {
			return t
		}
		p.use(t, m)
	}
}

// define reads a macro's definition.
func (p *preprocessor) define() {
	name := p.raw()
	if name == nil || name.kind != identifier {
		panic(&Problem{Kind: parseError, Message: "expected identifier", at: name, end: p.lex.f, skip: true})
	}
	if p.macros[name.text] != nil {
		panic(problem(fmt.Sprintf("attempt to redefine macro '@%s' in the same file", name.text), name))
	}
	m := &macro{}
	t := p.raw()
	if t.op("(") {
		for {
			param := p.raw()
			if param == nil || param.kind != identifier {
				panic(&Problem{Kind: parseError, Message: "expected identifier", at: param, end: p.lex.f, skip: true})
			}
			m.params = append(m.params, param.text)
			if t = p.raw(); t.op(",") {
				continue
			}
			if !t.op(")") {
				panic(&Problem{Kind: parseError, Message: "expected ',' or ')'", at: t, end: p.lex.f, skip: true})
			}
			break
		}
		t = p.raw()
	}
	if !t.op("%(") {
		panic(&Problem{Kind: parseError, Message: "expected '%('", at: t, end: p.lex.f, skip: true})
	}
	for depth := 1; ; {
		t := p.raw()
		switch {
		case t == nil:
			panic(&Problem{Kind: parseError, Message: fmt.Sprintf("incomplete macro definition - missing '%%)' in body of '@%s'", name.text), at: name, skip: true})
		case t.op("%("):
			depth++
		case t.op("%)"):
			if depth--; depth == 0 {
				p.macros[name.text] = m
				return
			}
		}
		m.body = append(m.body, t)
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// use puts a macro's body in the place of its use.
func (p *preprocessor) use(at *token, m *macro) {
	args := map[string][]*token{}
	if n := len(m.params); n > 0 {
		t := p.raw()
		if !t.op("(") {
			panic(problem(fmt.Sprintf("expected '(' in invocation of macro '%s' taking %s", at.text, plural(n, "parameter")), t))
		}
		list, depth := [][]*token{nil}, 1
		for depth > 0 {
			t := p.raw()
			switch {
			case t == nil:
				panic(problem("could not find end of macro invocation", at))
			case t.op("("):
				depth++
			case t.op(")"):
				depth--
			case t.op(",") && depth == 1:
				if len(list) == n {
					panic(problem(fmt.Sprintf("too many parameters for macro '%s' (expected %d)", at.text, n), t))
				}
				list = append(list, nil)
				continue
			}
			if depth > 0 {
				list[len(list)-1] = append(list[len(list)-1], t)
			} else if len(list) < n {
				panic(problem(fmt.Sprintf("too few parameters for macro '%s' (expected %d)", at.text, n), t))
			}
		}
		for i, name := range m.params {
			args[name] = list[i]
		}
	}
	var out []*token
	for _, t := range m.body {
		list := []*token{t}
		if t.kind == operator && strings.HasPrefix(t.text, "@") {
			if arg, ok := args[t.text[1:]]; ok {
				list = arg
			}
		}
		for _, t := range list {
			copied := *t
			if copied.macro == nil {
				copied.macro = at
			}
			out = append(out, &copied)
		}
	}
	if p.made += len(out) + 1; p.made > maxMade {
		panic(problem("macros make too much of the script", at))
	}
	p.queue = append(out, p.queue...)
}

// next is the next token after conditions.
func (p *preprocessor) next() *token {
	for {
		t := p.expanded()
		switch {
		case t == nil:
			if len(p.open) > 0 {
				at := p.open[len(p.open)-1]
				p.open = nil
				panic(problem("incomplete conditional - missing '%)'", at))
			}
			return nil
		case t.op("%("):
			holds := p.condition(t)
			if q := p.expanded(); !q.op("%?") {
				panic(problem("expected '%?' marker for conditional", t))
			}
			if holds || p.pass(t, true) {
				p.open = append(p.open, t)
			}
		case t.op("%?"), t.op("%:"), t.op("%)"):
			if len(p.open) == 0 || t.op("%?") {
				panic(problem("incomplete conditional - missing '%('", t))
			}
			if t.op("%:") {
				p.pass(t, false)
			}
			p.open = p.open[:len(p.open)-1]
		default:
			return t
		}
	}
}

// pass leaves out tokens up to the other part of the condition, if there may be one (true), or
// to its end.
func (p *preprocessor) pass(from *token, other bool) bool {
	// What is left out may name arguments that are not given.
	defer func(was bool) { p.passing = was }(p.passing)
	p.passing = true
	for depth := 1; ; {
		t := p.expanded()
		switch {
		case t == nil:
			panic(problem("incomplete conditional - missing '%)'", from))
		case t.op("%("):
			depth++
		case t.op("%?") && depth == 1:
			panic(problem("incomplete conditional - missing '%('", t))
		case t.op("%)"):
			if depth--; depth == 0 {
				return false
			}
		case t.op("%:") && depth == 1 && other:
			return true
		}
	}
}

// condition reads alternatives of conjunctions.
func (p *preprocessor) condition(start *token) bool {
	result, all := false, true
	for {
		all = p.comparison(start) && all
		t := p.expanded()
		switch {
		case t.op("&&"):
			continue
		case t.op("||"):
			result, all = result || all, true
			continue
		}
		if t != nil {
			p.queue = append([]*token{t}, p.queue...)
		}
		return result || all
	}
}

const badCondition = `expected 'arch', 'kernel_v', 'kernel_vr', 'systemtap_v',
             'runtime', 'systemtap_privilege', 'CONFIG_...', or
             comparison between strings or integers`

func (p *preprocessor) comparison(start *token) bool {
	l, op, r := p.expanded(), p.expanded(), p.expanded()
	if l == nil || op == nil || r == nil {
		panic(problem("incomplete condition after '%('", start))
	}
	isText := func() {
		if r.kind != text {
			panic(problem("expected string literal", r))
		}
	}
	equality := func() {
		if !op.op("==") && !op.op("!=") {
			panic(problem("expected '==' or '!='", op))
		}
	}
	pattern := func(value string) bool {
		isText()
		equality()
		ok, _ := path.Match(r.text, value)
		return ok == op.op("==")
	}
	switch {
	case l.kind == identifier && (l.text == "kernel_v" || l.text == "kernel_vr"):
		isText()
		have := p.o.Release
		if l.text == "kernel_v" {
			have, _, _ = strings.Cut(have, "-")
		}
		if strings.ContainsAny(r.text, "*?[") {
			return pattern(have)
		}
		return p.ordered(op, compareVersions(have, r.text))
	case l.is(identifier, "systemtap_v"):
		isText()
		return p.ordered(op, compareVersions(Version, r.text))
	case l.is(identifier, "systemtap_privilege"):
		return pattern("stapdev")
	case l.is(identifier, "guru_mode"):
		equality()
		if r.kind != number {
			panic(problem("expected number", r))
		}
		return p.ordered(op, int(truth(p.o.Guru)-parseNumber(r)))
	case l.is(identifier, "arch"):
		return pattern("x86_64")
	case l.is(identifier, "runtime"):
		return pattern("kernel")
	case l.kind == identifier && strings.HasPrefix(l.text, "CONFIG_"):
		value := ""
		if p.o.Config != nil {
			value = p.o.Config(l.text)
		}
		return pattern(value)
	case l.kind == text:
		if r.kind != text {
			panic(problem("expected string literal as right value", r))
		}
		return p.ordered(op, strings.Compare(l.text, r.text))
	case l.kind == number && isComparison(op):
		if r.kind != number {
			panic(problem("expected number literal as right value", r))
		}
		a, b := parseNumber(l), parseNumber(r)
		switch {
		case a < b:
			return p.ordered(op, -1)
		case a > b:
			return p.ordered(op, 1)
		}
		return p.ordered(op, 0)
	}
	panic(problem(badCondition, l))
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func isComparison(op *token) bool {
	switch op.text {
	case "==", "!=", "<", ">", "<=", ">=":
		return op.kind == operator
	}
	return false
}

func (p *preprocessor) ordered(op *token, c int) bool {
	if !isComparison(op) {
		panic(problem("expected comparison operator", op))
	}
	switch op.text {
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// compareVersions compares as strverscmp does: numbers in the text as numbers.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			x, y := digits(a), digits(b)
			a, b = a[len(x):], b[len(y):]
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}
