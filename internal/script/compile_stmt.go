package script

// stmt makes the code of a statement.
func (c *compiler) stmt(s Stmt) stmtFn {
	switch s := s.(type) {
	case nil:
		return func(*Thread) ctl { return goOn }
	case Block:
		return c.block(s)
	case Do:
		return c.do(s.X)
	case If:
		cond, then, other := c.int(s.Cond), c.stmt(s.Then), c.stmt(s.Else)
		return func(t *Thread) ctl {
			t.act("")
			if cond(t) != 0 {
				return then(t)
			}
			return other(t)
		}
	case Loop:
		return c.loop(s)
	case Foreach:
		return c.foreach(s)
	case Buckets:
		return c.buckets(s)
	case Break:
		return func(t *Thread) ctl { t.act(""); return breaks }
	case Continue:
		return func(t *Thread) ctl { t.act(""); return continues }
	case Return:
		return c.ret(s)
	case Next:
		return func(t *Thread) ctl { t.act(""); return ends }
	case Skip:
		return func(t *Thread) ctl { t.act(""); return skips }
	case Try:
		return c.try(s)
	case Fail:
		text, near := c.hold(s.X), s.Near
		return func(t *Thread) ctl { t.Fail(near, string(text(t))); return goOn }
	case Delete:
		return c.delete(s)
	case Clear:
		index := s.Array.index
		return func(t *Thread) ctl { t.act(""); t.tables[index].clear(); return goOn }
	case Accumulate:
		return c.accumulate(s)
	case Printf:
		format, as := c.format(s.Format, s.Args, s.Near), s.As
		return func(t *Thread) ctl {
			t.act("")
			// The arguments may print themselves, so the line is made on the side.
			o := out{t.line(), 0}
			o.end = cap(o.b)
			format(t, &o)
			if as != nil {
				t.shown = as(t.shown[:0], o.b)
				t.busy--
				t.Print(t.shown)
				return goOn
			}
			t.printed(o.b)
			return goOn
		}
	case PrintHistogram:
		of, h, near := c.stat(s.Of, false), histogramOf(s.Of), s.Near
		return func(t *Thread) ctl {
			t.act("")
			s := of(t)
			if s == nil || s.count == 0 {
				t.Fail(near, "empty aggregate")
			}
			o := out{t.line(), 0}
			o.end = cap(o.b)
			h.print(&o, s.buckets)
			t.printed(o.b)
			return goOn
		}
	case Save:
		n, x := s.N, c.int(s.X)
		return func(t *Thread) ctl { t.Context.SetSaved(n, x(t)); return goOn }
	}
	bug("%T is no statement", s)
	return nil
}

func (c *compiler) block(list Block) stmtFn {
	var fns []stmtFn
	for _, s := range list {
		fns = append(fns, c.stmt(s))
	}
	if len(fns) == 1 {
		return fns[0]
	}
	return func(t *Thread) ctl {
		for _, fn := range fns {
			if r := fn(t); r != goOn {
				return r
			}
		}
		return goOn
	}
}

func (c *compiler) do(e Expr) stmtFn {
	if e.Type() == String {
		text := c.own(e)
		return func(t *Thread) ctl { t.act(""); text(t); return goOn }
	}
	x := c.int(e)
	return func(t *Thread) ctl { t.act(""); x(t); return goOn }
}

func (c *compiler) optional(e Expr, otherwise int64) intFn {
	if e == nil {
		return func(*Thread) int64 { return otherwise }
	}
	if e.Type() == String {
		text := c.own(e)
		return func(t *Thread) int64 { text(t); return otherwise }
	}
	return c.int(e)
}

func (c *compiler) loop(s Loop) stmtFn {
	start, cond, post, body := c.optional(s.Init, 0), c.optional(s.Cond, 1), c.optional(s.Post, 0), c.stmt(s.Body)
	near := s.Near
	return func(t *Thread) ctl {
		start(t)
		for t.act(near); cond(t) != 0; t.act(near) {
			switch r := body(t); r {
			case goOn, continues:
			case breaks:
				return goOn
			default:
				return r
			}
			post(t)
		}
		return goOn
	}
}

func (c *compiler) ret(s Return) stmtFn {
	if s.X == nil {
		return func(t *Thread) ctl { t.act(""); return returns }
	}
	if s.X.Type() == String {
		text := c.own(s.X)
		return func(t *Thread) ctl {
			t.act("")
			s := text(t)
			t.resultText = append(t.resultText[:0], s...)
			return returns
		}
	}
	x := c.int(s.X)
	return func(t *Thread) ctl { t.act(""); t.result = x(t); return returns }
}

func (c *compiler) try(s Try) stmtFn {
	body, catch := c.stmt(s.Body), c.stmt(s.Catch)
	keep := func(*Thread) {}
	if s.To != nil {
		if s.To.Type() != String {
			bug("an error's text in a %s", s.To.Type())
		}
		keep = c.keepText(s.To, func(t *Thread, dst []byte) []byte {
			o := out{dst, len(dst) + t.StringSize() - 1}
			o.string(t.message)
			return o.b
		})
	}
	return func(t *Thread) ctl {
		t.act("")
		var r ctl
		if t.guarded(func() { r = body(t) }) {
			return r
		}
		keep(t)
		return catch(t)
	}
}

// guarded does something that may fail. If it fails, the thread is as it was before.
func (t *Thread) guarded(do func()) (ok bool) {
	ib, tb, nesting, depth, busy, keys, loops := t.ib, t.tb, t.nesting, t.depth, t.busy, len(t.keys), len(t.loops)
	defer func() {
		switch e := recover(); e {
		case nil:
		case any(aborted):
			t.ib, t.tb, t.nesting, t.depth, t.busy, t.keys = ib, tb, nesting, depth, busy, t.keys[:keys]
			t.unwind(loops)
		default:
			panic(e)
		}
	}()
	do()
	return true
}

// keepText stores the string that make returns.
func (c *compiler) keepText(to Expr, make textFn) func(*Thread) {
	set := c.assignText(Assign{To: to, Op: Set, X: fixed{make}})
	n := c.newText()
	return func(t *Thread) { set(t, t.texts[t.tb+n][:0]) }
}

// fixed is a string that the host gives.
type fixed struct{ fn textFn }

func (fixed) Type() Type { return String }

func (c *compiler) delete(s Delete) stmtFn {
	switch x := s.X.(type) {
	case Local:
		n := c.slot(x)
		if x.Of == String {
			return func(t *Thread) ctl { t.act(""); t.texts[t.tb+n] = t.texts[t.tb+n][:0]; return goOn }
		}
		return func(t *Thread) ctl { t.act(""); t.ints[t.ib+n] = 0; return goOn }
	case Global:
		n := x.Var.index
		return func(t *Thread) ctl {
			t.act("")
			t.vars[n], t.varTexts[n] = 0, t.varTexts[n][:0]
			t.stats[n].reset()
			return goOn
		}
	case Elem:
		key, index := c.key(x.Array, x.Keys), x.Array.index
		parts, some := anyParts(x.Keys)
		return func(t *Thread) ctl {
			t.act("")
			from := key(t)
			tab := t.tables[index]
			if some {
				for i := tab.first; i != nobody; {
					next := tab.nodes[i].next
					if tab.matches(i, t.keys[from:], parts) {
						tab.remove(i)
					}
					i = next
				}
			} else if i := tab.find(t.keys[from:]); i != nobody {
				tab.remove(i)
			}
			t.keys = t.keys[:from]
			return goOn
		}
	}
	bug("%T cannot be deleted", s.X)
	return nil
}

func (c *compiler) accumulate(s Accumulate) stmtFn {
	to, x, h := c.stat(s.To, true), c.int(s.X), histogramOf(s.To)
	if s.At == nil {
		return func(t *Thread) ctl {
			t.act("")
			v := x(t)
			if s := to(t); s != nil {
				s.add(h, v)
			}
			return goOn
		}
	}
	at := c.int(s.At)
	return func(t *Thread) ctl {
		t.act("")
		v, ns := x(t), uint64(at(t))
		if s := to(t); s != nil {
			s.addAt(h, v, ns)
		}
		return goOn
	}
}
