package bpftrace

import (
	"fmt"

	"kprobelab/internal/script"
)

// later returns a statement that does something after the handler, as bpftrace does when it gets the handler's event.
func later(name string, do func(t *script.Thread)) script.Stmt {
	return script.Do{X: call(number(name, nil, func(t *script.Thread, _ *script.Args) int64 {
		t.Later(func() { do(t) })
		return 0
	}))}
}

// reset makes clear() or zero() of a map.
func (g *generator) reset(n *node) script.Stmt {
	info := g.infos[n.kids[0].text]
	if n.text == "zero" || info.single() {
		return later("zero", func(t *script.Thread) { t.Zero(info.array) })
	}
	return later("clear", func(t *script.Thread) { t.Empty(info.array) })
}

// deletion makes delete() of an element. If the element is not there, it prints bpftrace's message.
func (g *generator) deletion(n *node) script.Stmt {
	m := *n.kids[0]
	if len(n.kids) == 2 {
		m.kids = []*node{n.kids[1]}
	}
	e := g.elem(&m)
	if g.infos[m.text].single() {
		return script.Do{X: script.Assign{To: e, Op: script.Set, X: script.Number(0)}}
	}
	key := g.local(e.Array.Keys[0])
	held := script.Do{X: script.Assign{To: key, Op: script.Set, X: e.Keys[0]}}
	e.Keys = []script.Expr{key}
	const enoent = -2
	missing := g.helperFailed(n.at, "Can't delete map element because it does not exist.", "map_delete_elem", enoent)
	return script.Block{held, script.If{Cond: script.Has{Array: e.Array, Keys: e.Keys}, Then: script.Delete{X: e}, Else: missing}}
}

// helperFailed makes the statement that prints bpftrace's message about a BPF helper that fails.
func (g *generator) helperFailed(at span, message, helper string, code int) script.Stmt {
	text := g.helperText(at, message, helper, code)
	if text == "" {
		return script.Block{}
	}
	return script.Do{X: call(number("warn", nil, func(t *script.Thread, _ *script.Args) int64 { t.Print([]byte(text)); return 0 }))}
}

// updated notes the place of an element's update, and bpftrace's message for a full map there.
func (g *generator) updated(e script.Elem, at span) script.Elem {
	const e2big = -7
	e.Near = g.near(at)
	g.full[e.Near] = g.helperText(at, "Map full; can't update element. Try increasing max_map_keys config", "map_update_elem", e2big)
	return e
}

// helperText returns bpftrace's message about a BPF helper that fails, "" with NoWarnings.
func (g *generator) helperText(at span, message, helper string, code int) string {
	if g.c.o.NoWarnings {
		return ""
	}
	p := &Problems{file: g.c.problems.file}
	p.warn(at, "%s\nAdditional Info - helper: %s, retcode: %d", message, helper, code)
	text := p.Text()
	if g.c.o.JSON {
		text = fmt.Sprintf("{\"type\": \"helper_error\", \"msg\": \"%s\", \"helper\": \"%s\", \"retcode\": %d, \"line\": %d, \"col\": %d}\n",
			message, helper, code, at.from.line, at.from.col)
	}
	return text
}
