package stap

import (
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
)

// guru has the messages for an assignment that needs -g, by its target.
var guru = map[string]string{
	"$": "write to target variable not permitted; need stap -g", "@var": "write to @var variable not permitted; need stap -g",
	"@cast": "write to @cast context variable not permitted; need stap -g",
}

// written finds the types of an assignment to a target; y is nil for ++ and --.
func (a *analysis) written(s *scope, tg *target, t *token, op string, y expr) vtype {
	if !a.o.Guru {
		why, at := guru[tg.what], tg.tok
		if why == "" {
			why, at = "write not permitted; need stap -g", tg.path[0].tok
		}
		a.fail(at, "%s", why)
	}
	if op != "=" {
		a.fail(t, "Only the following assign operator is implemented on target variables:  =")
	}
	a.target(s, tg)
	a.expr(s, y, long)
	return long
}

// store assigns to a target.
func (g *generator) store(tg *target, x script.Expr) script.Expr {
	n := len(tg.path)
	switch {
	case tg.what == "$" && strings.HasPrefix(tg.name, "$$"):
		g.a.fail(tg.tok, "cannot write to context variable")
	case n > 0 && tg.path[n-1].pretty:
		g.a.fail(tg.tok, "cannot write to pretty-printed variable")
	case tg.address:
		g.a.fail(tg.tok, "cannot write to member address")
	case g.probe.Kind == Return && tg.what == "$" && tg.name != "$return":
		g.a.fail(tg.tok, "write to target variable not permitted in .return probes")
	case g.probe.Trace != nil && tg.what == "$" && n == 0:
		g.a.fail(tg.tok, "cannot write to tracepoint variable '%s'", tg.name)
	}
	v := g.target(tg)
	at := tg.tok
	if n > 0 {
		at = tg.path[n-1].tok
	}
	r := v.t.Real()
	size := int(r.Size())
	switch {
	case r.Composite():
		g.a.fail(at, "'%s' is being accessed instead of a member", v.t)
	case r.Kind == ctype.Array:
		g.a.fail(at, "'%s' is being accessed instead of an element", v.t)
	case v.inReg:
		return script.Assign{To: script.Register{N: v.reg}, Op: script.Set, X: x, Near: at.near()}
	case !v.inMemory:
		g.a.fail(at, "'%s' has no place that could be written: the compiler knows its value", tg.name)
	case r.Float:
		g.a.fail(at, "'%s' is a floating-point number, which scripts cannot write", v.t)
	case size != 1 && size != 2 && size != 4 && size != 8:
		g.a.fail(at, "cannot write a '%s' of %d bytes", v.t, size)
	}
	m := script.Memory{Addr: v.x, Size: size, Bit: v.bit, Bits: v.bits, User: v.user, Near: at.near()}
	return script.Assign{To: m, Op: script.Set, X: x, Near: at.near()}
}

// memory returns the memory or the register of @kderef, @uderef or @kregister, for an assignment to it.
func (g *generator) memory(x *memoryExpr) script.Expr {
	if x.x != nil {
		return script.Memory{Addr: g.expr(x.x), Size: int(x.size), User: x.what == "@uderef", Near: x.tok.near()}
	}
	if x.what == "@uregister" {
		g.a.fail(x.tok, "registers of programs cannot be written")
	}
	return g.expr(x)
}
