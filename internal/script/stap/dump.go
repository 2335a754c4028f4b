package stap

import (
	"fmt"
	"strings"
)

// dump writes what was read, as stap's -p1 does.
func (s *parsed) dump(name string) string {
	d := &dumper{}
	d.f("# parse tree dump\n# file %s\n", name)
	for _, e := range s.embedded {
		d.f("%%{%s%%}", e.text)
	}
	for _, g := range s.globals {
		d.f("global %s", g.name)
		if g.wrap {
			d.f("%%")
		}
		if g.max > 0 {
			d.f("[%d]", g.max)
		}
		if g.init != nil {
			d.f(" = ")
			d.expr(g.init)
		}
		d.f("\n")
	}
	for _, a := range s.aliases {
		d.f("probe ")
		op := " = "
		if a.after {
			op = " += "
		}
		for _, n := range a.names {
			d.f("%s%s", n, op)
		}
		d.points(a.points, ", ")
		d.block(a.body)
		d.f("\n")
	}
	for _, p := range s.probes {
		d.f("probe ")
		d.points(p.points, ",")
		d.block(p.body)
		d.f("\n")
	}
	for _, f := range s.functions {
		d.f("function %s (", f.name)
		for i, p := range f.params {
			if i > 0 {
				d.f(", ")
			}
			d.f("%s", p.name)
		}
		d.f(")\n")
		if f.embedded != nil {
			d.f("%%{%s%%}", f.embedded.text)
		} else {
			d.block(f.body)
		}
		d.f("\n")
	}
	d.f("\n")
	return d.String()
}

type dumper struct{ strings.Builder }

func (d *dumper) f(format string, a ...any) { fmt.Fprintf(d, format, a...) }

func (d *dumper) points(list []*point, between string) {
	for i, p := range list {
		if i > 0 {
			d.f("%s", between)
		}
		d.f("%s", p)
	}
}

// String is a probe point as it is written.
func (p *point) String() string {
	d := &dumper{}
	for i, c := range p.parts {
		if i > 0 {
			d.f(".")
		}
		d.f("%s", c.name)
		if c.arg != nil {
			d.f("(")
			d.expr(c.arg)
			d.f(")")
		}
	}
	if p.optional {
		d.f("?")
	}
	if p.sufficient {
		d.f("!")
	}
	if p.cond != nil {
		d.f(" if (")
		d.expr(p.cond)
		d.f(")")
	}
	return d.String()
}

func (d *dumper) block(b *block) {
	d.f("{\n")
	for _, s := range b.list {
		d.stmt(s)
		d.f(";\n")
	}
	d.f("}")
}

func (d *dumper) stmt(s stmt) {
	switch s := s.(type) {
	case *block:
		d.block(s)
	case *nothing:
		d.f(";")
	case *exprStmt:
		d.expr(s.x)
	case *ifStmt:
		d.f("if (")
		d.expr(s.cond)
		d.f(") ")
		d.stmt(s.then)
		d.f("\n")
		if s.other != nil {
			d.f("else ")
			d.stmt(s.other)
			d.f("\n")
		}
	case *forStmt:
		d.f("for (")
		d.expr(s.start)
		d.f("; ")
		if s.cond == nil {
			d.f("1")
		}
		d.expr(s.cond)
		d.f("; ")
		d.expr(s.post)
		d.f(") ")
		d.stmt(s.body)
	case *foreachStmt:
		d.foreach(s)
	case *tryStmt:
		d.f("try {\n")
		d.block(s.body)
		if s.to != nil {
			d.f("\n} catch (%s) {\n", s.to.name)
		} else {
			d.f("\n} catch {\n")
		}
		d.block(s.catch)
		d.f("\n}\n")
	case *deleteStmt:
		d.f("delete ")
		d.expr(s.x)
	case *returnStmt:
		d.f("return")
		if s.x != nil {
			d.f(" ")
			d.expr(s.x)
		}
	case *jumpStmt:
		d.f("%s", s.tok.text)
	}
}

func (d *dumper) foreach(s *foreachStmt) {
	sign := "+"
	if s.down {
		sign = "-"
	}
	d.f("foreach (")
	if s.value != nil {
		d.f("%s = ", s.value.name)
	}
	d.f("[")
	for i, k := range s.keys {
		if i > 0 {
			d.f(", ")
		}
		d.f("%s", k.name)
		if s.sort == i+1 {
			d.f("%s", sign)
		}
	}
	d.f("] in ")
	if s.hist != nil {
		d.expr(s.hist)
	} else {
		d.f("%s", s.array.name)
	}
	if s.sliced {
		d.keys(s.slice)
	}
	if s.sort == 0 {
		if s.by != "" {
			d.f(" %s", s.by)
		}
		d.f("%s", sign)
	}
	if s.limit != nil {
		d.f(" limit ")
		d.expr(s.limit)
	}
	d.f(") ")
	d.stmt(s.body)
}

func (d *dumper) keys(list []expr) {
	d.f("[")
	d.list(list)
	d.f("]")
}

func (d *dumper) list(list []expr) {
	for i, k := range list {
		if i > 0 {
			d.f(", ")
		}
		if k == nil {
			d.f("*")
		} else {
			d.expr(k)
		}
	}
}

func (d *dumper) in(x expr) {
	d.f("(")
	d.expr(x)
	d.f(")")
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func (d *dumper) expr(e expr) {
	switch e := e.(type) {
	case nil:
	case *literal:
		if e.isText {
			d.f("%s", quoted(e.text))
		} else if e.hex && e.number != 0 {
			d.f("%#x", uint64(e.number))
		} else {
			d.f("%d", e.number)
		}
	case *symbol:
		d.f("%s", e.name)
	case *index:
		if e.hist != nil {
			d.expr(e.hist)
		} else {
			d.f("%s", e.name)
		}
		d.keys(e.keys)
	case *binary:
		d.in(e.x)
		d.f(" %s ", e.op)
		d.in(e.y)
	case *unary:
		d.f("%s", e.op)
		d.in(e.x)
	case *crement:
		if !e.post {
			d.f("%s", e.op)
		}
		d.in(e.x)
		if e.post {
			d.f("%s", e.op)
		}
	case *assign:
		d.in(e.x)
		d.f(" %s ", e.op)
		d.in(e.y)
	case *ternary:
		d.in(e.cond)
		d.f("?")
		d.in(e.x)
		d.f(":")
		d.in(e.y)
	case *inArray:
		d.keys(e.keys)
		d.f(" in ")
		if e.hist != nil {
			d.expr(e.hist)
		} else {
			d.f("%s", e.name)
		}
	case *match:
		d.in(e.x)
		d.f(" %s %s", e.op, quoted(e.pattern.text))
	case *call:
		d.f("%s(", e.name)
		d.list(e.args)
		d.f(")")
	case *printExpr:
		d.print(e)
	case *embeddedExpr:
		d.f("%%{ %s %%}", e.tok.text)
	case *target:
		d.target(e)
	case *statExpr:
		d.f("%s(", e.what)
		d.expr(e.of)
		if e.shift != nil {
			d.f(", %d", *e.shift)
		}
		d.f(")")
	case *histExpr:
		d.f("%s(", e.what)
		d.expr(e.of)
		for _, n := range e.params {
			d.f(", %d", n)
		}
		d.f(")")
	case *definedExpr:
		d.f("@defined(")
		d.expr(e.x)
		d.f(")")
	case *entryExpr:
		d.f("@entry(")
		d.expr(e.x)
		d.f(")")
	case *probewriteExpr:
		d.f("@probewrite(")
		d.expr(e.x)
		d.f(")")
	case *perfExpr:
		d.f("@perf(\"%s\")", e.name)
	case *constExpr:
		d.f("%%{ /* pure */ /* unprivileged */ /* stable */ %s %%}", e.name)
	case *memoryExpr:
		d.f("%s(%d", e.what, e.size)
		if e.x != nil {
			d.f(", ")
			d.expr(e.x)
		}
		d.f(")")
	}
}

func (d *dumper) print(e *printExpr) {
	d.f("%s(", e.name)
	if e.hist != nil {
		d.expr(e.hist)
	}
	if e.format != nil {
		d.f("%s", quoted(strings.ReplaceAll(e.format.text, `\`, `\\`)))
		if len(e.args) > 0 {
			d.f(", ")
		}
	}
	d.list(e.args)
	d.f(")")
}

func (d *dumper) target(e *target) {
	if e.address {
		d.f("&")
	}
	switch e.what {
	case "$":
		d.f("%s", e.name)
	case "@var":
		d.f("@var(\"%s\"", e.name)
		if e.module != "" {
			d.f(", \"%s\"", e.module)
		}
		d.f(")")
	case "@cast":
		d.f("@cast(")
		d.expr(e.of)
		d.f(", \"%s\"", e.name)
		if e.module != "" {
			d.f(", \"%s\"", e.module)
		}
		d.f(")")
	default:
		d.in(e.of)
	}
	for _, a := range e.path {
		if a.index != nil {
			d.f("[")
			d.expr(a.index)
			d.f("]")
		} else {
			d.f("->%s", a.name)
		}
	}
}
