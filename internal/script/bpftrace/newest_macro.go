package bpftrace

import (
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
)

// macro is a named block of the script's own. A parameter with $ is a variable, with @ a map; others are expressions.
type macro struct {
	name   string
	params []string
	body   *node
	at     span
	shared bool // the tool's own
}

func (p *parser) macro() *macro {
	at := p.next().at
	m := &macro{}
	switch p.kind() {
	case tIdent, tBuiltin, tCallBuiltin:
		m.name = p.next().text
	default:
		p.unexpected(tIdent)
	}
	m.at = at.with(p.list[p.at-1].at)
	p.wants("(")
	for !p.is(")") {
		switch p.kind() {
		case tIdent, tVar, tMap:
			m.params = append(m.params, p.next().text)
		default:
			p.unexpected(tIdent)
		}
		if !p.accept(",") && !p.is(")") {
			p.unexpected(")", ",")
		}
	}
	p.next()
	m.body = p.blockValue()
	return m
}

// clone copies a node and all below it.
func (n *node) clone() *node {
	if n == nil {
		return nil
	}
	c := *n
	c.kids, c.body, c.other = cloned(n.kids), cloned(n.body), cloned(n.other)
	if n.ctype != nil {
		ct := *n.ctype
		ct.of = n.ctype.of.clone()
		c.ctype = &ct
	}
	return &c
}

func cloned(list []*node) []*node {
	if list == nil {
		return nil
	}
	out := make([]*node, len(list))
	for i, n := range list {
		out[i] = n.clone()
	}
	return out
}

// expander puts the bodies of macros in place of their calls.
type expander struct {
	macros   map[string][]*macro
	problems *Problems
	// open are the macros around a call. made counts the bodies, which gives each one's variables names of their own.
	open []*macro
	made int
}

// expandMacros expands all calls of macros in a script.
func expandMacros(t *tree, shared []*macro, problems *Problems) {
	e := &expander{macros: map[string][]*macro{}, problems: problems}
	for _, m := range shared {
		e.macros[m.name] = append(e.macros[m.name], m)
	}
	for _, m := range t.macros {
		e.add(m)
	}
	for _, p := range t.probes {
		p.pred = e.expand(p.pred)
		e.list(p.body)
	}
}

// add takes a macro of the script's, in place of the tool's own with as many parameters.
func (e *expander) add(m *macro) {
	list := e.macros[m.name]
	for i, old := range list {
		if len(old.params) != len(m.params) {
			continue
		}
		if !old.shared {
			e.fail(m.at, "Redefinition of macro: %s", m.name)
		}
		list[i] = m
		return
	}
	e.macros[m.name] = append(list, m)
}

func (e *expander) fail(at span, format string, a ...any) {
	e.problems.list = append(e.problems.list, &Problem{Message: fmt.Sprintf(format, a...), at: at})
}

func (e *expander) list(list []*node) {
	for i, n := range list {
		list[i] = e.expand(n)
	}
}

func (e *expander) expand(n *node) *node {
	if n == nil {
		return nil
	}
	if n.op == nCall || n.op == nIdent || n.op == nBuiltin {
		if made, ok := e.call(n); ok {
			return made
		}
	}
	e.list(n.kids)
	e.list(n.body)
	e.list(n.other)
	if n.ctype != nil && n.ctype.of != nil {
		n.ctype.of = e.expand(n.ctype.of)
	}
	return n
}

// call expands a call of a macro, or a name that a macro without parameters has.
func (e *expander) call(n *node) (*node, bool) {
	list := e.macros[n.text]
	if len(list) == 0 {
		return nil, false
	}
	var fit *macro
	for _, m := range list {
		if len(m.params) == len(n.kids) {
			fit = m
		}
	}
	switch {
	case fit == nil && (n.op != nCall || list[0].shared):
		return nil, false
	case fit == nil:
		e.fail(n.at, "Call to %s() has the wrong number of arguments. %s", n.text, candidates(list))
		return n, true
	}
	for _, m := range e.open {
		if m == fit {
			e.fail(n.at, "Recursive macro call detected. Call chain: %s > %s", chain(e.open), fit.name)
			return n, true
		}
	}
	if e.made++; e.made > bounded.BpftraceMacros {
		e.fail(n.at, "the script's macros make it too long")
		return n, true
	}
	s := &substitution{macro: fit, args: map[string]*node{}, e: e, id: e.made, at: n.at, types: map[string]*typeName{}}
	for i, p := range fit.params {
		a := n.kids[i]
		switch {
		case p[0] == '$' && a.op != nVar:
			e.fail(a.at, "Mismatched arg. %s() expects a variable for parameter %s", fit.name, p)
			return n, true
		case p[0] == '@' && (a.op != nMap || len(a.kids) > 0):
			e.fail(a.at, "Mismatched arg. %s() expects a map for parameter %s", fit.name, p)
			return n, true
		case p[0] != '$' && p[0] != '@':
			a = e.expand(a)
		}
		s.args[p] = a
	}
	body := s.node(fit.body.clone())
	body.at = n.at
	e.open = append(e.open, fit)
	body = e.expand(body)
	e.open = e.open[:len(e.open)-1]
	body.macro = true
	return body, true
}

func chain(open []*macro) string {
	var names []string
	for _, m := range open {
		names = append(names, m.name)
	}
	return strings.Join(names, " > ")
}

func candidates(list []*macro) string {
	m := list[0]
	return fmt.Sprintf("macro %s(%s) takes %d", m.name, strings.Join(m.params, ", "), len(m.params))
}

// substitution puts the arguments in place of a macro's parameters, and gives its own variables names that no script
// can write.
type substitution struct {
	macro *macro
	args  map[string]*node
	types map[string]*typeName
	e     *expander
	id    int
	at    span
}

func (s *substitution) list(list []*node) {
	for i, n := range list {
		list[i] = s.node(n)
	}
}

func (s *substitution) node(n *node) *node {
	if n == nil {
		return nil
	}
	arg := s.args[n.text]
	switch n.op {
	case nIdent:
		if arg != nil {
			a := arg.clone()
			if a.op == nVar || a.op == nMap {
				a.post = true
			}
			return a
		}
	case nVar:
		if arg != nil {
			n.text = arg.text
		} else if !strings.Contains(n.text, "#") {
			n.text = fmt.Sprintf("%s#%d", n.text, s.id)
		}
		return n
	case nMap:
		if arg != nil {
			n.text = arg.text
		} else {
			s.e.fail(n.at, "Unhygienic access to map: %s. Maps must be passed into the macro as arguments.", n.text)
		}
	}
	s.list(n.kids)
	s.list(n.body)
	s.list(n.other)
	if ct := n.ctype; ct != nil {
		if ct.of != nil {
			ct.of = s.node(ct.of)
		} else if a := s.args[ct.name]; a != nil {
			ct.of = a
			if a.ctype != nil && a.op == nSizeof {
				stars := ct.stars
				*ct = *a.ctype
				ct.stars += stars
			}
		}
	}
	return n
}
