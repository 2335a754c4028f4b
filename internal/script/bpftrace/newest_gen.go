package bpftrace

import (
	"bytes"

	"kprobelab/internal/script"
)

// newestValue makes the value of an expression that 0.23 does not have.
func (g *generator) newestValue(n *node) value {
	t := n.typ
	switch n.op {
	case nBool:
		return value{x: script.Number(int64(n.num)), t: t, width: t.slot()}
	case nBlock:
		if len(n.kids) == 0 {
			g.fail(n.at, "this block has no value")
		}
		for j := range inside(n.body, sJump) {
			if j.text == "return" {
				g.fail(j.at, "return is not there in a block with a value")
			}
		}
		body := g.body(n.body)
		v := g.value(n.kids[0])
		if len(body) > 0 {
			v = g.loaded(n.kids[0])
			v.x = script.Seq{Body: body, X: v.x}
		}
		return v
	case nIfValue:
		return g.ternary(n)
	case nRecord:
		return g.tupleValue(n)
	}
	g.fail(n.at, "this expression has no value")
	return value{}
}

// tupleValue makes a tuple or a record of the values of its parts.
func (g *generator) tupleValue(n *node) value {
	var parts []script.Expr
	for _, k := range n.kids {
		v := g.loaded(k)
		if v.x.Type() == script.Int {
			v.x = stored(v, k.typ.slot())
		}
		parts = append(parts, v.x)
	}
	g.s.longest = append(g.s.longest, n.typ)
	return value{x: script.Tuple{Parts: parts}, t: n.typ}
}

// newestEffect makes the statement for a block or an if whose value is not used; nil for others.
func (g *generator) newestEffect(n *node) script.Stmt {
	switch n.op {
	case nBlock:
		out := g.body(n.body)
		for _, k := range n.kids {
			out = append(out, g.effect(k))
		}
		return out
	case nIfValue:
		s := script.If{Cond: g.condition(n.kids[0]), Then: g.effect(n.kids[1])}
		if len(n.kids) > 2 {
			s.Else = g.effect(n.kids[2])
		}
		return s
	case nBool, nString, nInt:
		return script.Block{}
	case nCall:
		switch n.text {
		case "errorf":
			return g.logged(n, "ERROR")
		case "warnf":
			return g.logged(n, "WARNING")
		}
	}
	return nil
}

// logged makes errorf() or warnf(): a line with the place of the call.
func (g *generator) logged(n *node, kind string) script.Stmt {
	p := g.printf(n).(script.Printf)
	text := script.Sprintf{Format: p.Format, Args: p.Args, Near: p.Near}
	head := g.near(n.at) + ": " + kind + ": "
	return script.Do{X: call(number("log", texts[:1], func(t *script.Thread, a *script.Args) int64 {
		system(t).Log(head + string(a.Text[0]))
		return 0
	}), text)}
}

// forRange makes a loop over a range, whose ends are computed once.
func (g *generator) forRange(n *node) script.Stmt {
	v := n.kids[0].variable
	i, end, one := g.local(script.Int), g.local(script.Int), g.variable(v)
	set := func(l script.Local, x script.Expr) script.Stmt {
		return script.Do{X: script.Assign{To: l, Op: script.Set, X: x}}
	}
	less := script.LtU
	if v.typ.Signed {
		less = script.Lt
	}
	body := append(script.Block{set(one, i)}, g.body(n.body)...)
	return script.Block{set(i, g.num(n.kids[1])), set(end, g.num(n.kids[2])), script.Loop{
		Cond: script.Binary{Op: less, X: i, Y: end}, Post: script.Assign{To: i, Op: script.Add, X: script.Number(1)},
		Body: body, Near: g.near(n.at),
	}}
}

// character makes a character of a string.
func (g *generator) character(n *node) value {
	if i, ok := g.c.number(n.kids[1]); ok {
		return value{x: script.Member{X: g.text(n.kids[0]), Off: int(i), Size: 1, Of: script.Int}, t: n.typ, width: 8}
	}
	return value{x: call(characterCode, g.text(n.kids[0]), g.num(n.kids[1])), t: n.typ, width: 8}
}

var (
	characterCode = number("character", []script.Type{script.String, script.Int}, func(_ *script.Thread, a *script.Args) int64 {
		if i := a.Int[1]; i >= 0 && i < int64(len(a.Text[0])) {
			return int64(a.Text[0][i])
		}
		return 0
	})
	lengthCode = number("strlen", texts[:1], func(_ *script.Thread, a *script.Args) int64 { return int64(len(a.Text[0])) })
	// searchCode is strstr(): the place of a text in another one. bpftrace 0.27.1 gives -2 if it is not there.
	searchCode = number("strstr", texts[:2], func(_ *script.Thread, a *script.Args) int64 {
		if i := bytes.Index(a.Text[0], a.Text[1]); i >= 0 {
			return int64(i)
		}
		return -2
	})
	orderCode = number("memcmp", texts, func(_ *script.Thread, a *script.Args) int64 {
		n := int(min(max(a.Int[2], 0), 1<<15))
		for i := range n {
			var x, y byte
			if i < len(a.Text[0]) {
				x = a.Text[0][i]
			}
			if i < len(a.Text[1]) {
				y = a.Text[1][i]
			}
			if x != y {
				return int64(x) - int64(y)
			}
		}
		return 0
	})
)

// newestCallValue makes the value of a call of one of 0.27's functions. ok is false for the others.
func (g *generator) newestCallValue(n *node) (v value, ok bool) {
	k, t := n.kids, n.typ
	plain := func(x script.Expr) (value, bool) { return value{x: x, t: t, width: t.slot()}, true }
	switch n.text {
	case "str_concat":
		g.s.longest = append(g.s.longest, t)
		return plain(script.Binary{Op: script.Concat, X: g.text(k[0]), Y: g.text(k[1])})
	case "strlen":
		return plain(call(lengthCode, g.text(k[0])))
	case "strstr":
		return plain(call(searchCode, g.text(k[0]), g.text(k[1])))
	case "memcmp":
		return plain(call(orderCode, g.bytesOf(k[0]), g.bytesOf(k[1]), g.num(k[2])))
	case "strcontains":
		return plain(call(containsCode, g.text(k[0]), g.text(k[1])))
	case "syscall_name":
		return plain(call(syscallCode, g.num(k[0])))
	case "signal_name":
		return plain(call(signalCode, g.num(k[0])))
	case "strerror":
		return plain(call(errorCode, g.num(k[0])))
	case "find":
		info := g.infos[k[0].text]
		has := script.Has{Array: info.array, Keys: []script.Expr{g.as(k[1], info.key)}}
		return plain(script.Cond{If: has, Then: script.Seq{Body: g.statement(n.body[0]), X: script.Number(1)}, Else: script.Number(0)})
	case "delete":
		return g.deleted(n), true
	}
	return value{}, false
}

// bytesOf makes the bytes of a text, an array or a record.
func (g *generator) bytesOf(n *node) script.Expr {
	x := g.expr(n)
	if x.Type() != script.String {
		g.fail(n.at, "a value of type '%s' has no bytes", n.typ)
	}
	return x
}

// deleted makes delete() with its value: whether the element was there.
func (g *generator) deleted(n *node) value {
	m := *n.kids[0]
	if len(n.kids) == 2 {
		m.kids = []*node{n.kids[1]}
	}
	e := g.elem(&m)
	key := g.local(e.Array.Keys[0])
	held := script.Assign{To: key, Op: script.Set, X: e.Keys[0]}
	e.Keys = []script.Expr{key}
	has := script.Has{Array: e.Array, Keys: []script.Expr{held}}
	return value{x: script.Cond{If: has, Then: script.Seq{Body: script.Delete{X: e}, X: script.Number(1)}, Else: script.Number(0)}, t: n.typ, width: n.typ.slot()}
}

// newestBinop makes an operation with 64 bits: both operands are widened, each by its own sign.
func (g *generator) newestBinop(n *node) value {
	l, r := n.kids[0], n.kids[1]
	op := binaryOps[n.text]
	v, w := g.loaded(l), g.loaded(r)
	if v.x.Type() != w.x.Type() || v.x.Type() == script.String && op != script.Eq && op != script.Ne {
		g.fail(n.at, "the operator %s cannot be used here", n.text)
	}
	out := value{t: n.typ, width: n.typ.slot()}
	x, y := v.x, w.x
	switch {
	case x.Type() == script.String:
		if l.typ.Kind == TupleKind {
			both := l.typ.promoted(r.typ)
			x, y = g.fitted(x, l.typ, both), g.fitted(y, r.typ, both)
		}
	case n.text == "&&" || n.text == "||":
	case l.typ.Kind == Pointer || r.typ.Kind == Pointer:
		x, y = pointerOperands(n, x, y)
	default:
		x, y = g.wide(v), g.wide(w)
		if s, ok := signedOps[n.text]; ok && (l.typ.Signed && (r.typ.Signed || g.positive(r)) || r.typ.Signed && g.positive(l)) {
			op = s
		}
	}
	out.x = script.Binary{Op: op, X: x, Y: y, Near: g.near(n.at)}
	return out
}

// positive reports whether a value is a number of the script that is not negative.
func (g *generator) positive(n *node) bool {
	v, ok := g.c.number(n)
	return ok && v >= 0
}
