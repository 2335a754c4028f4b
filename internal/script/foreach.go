package script

// unlimited is the limit of a loop that has none.
const unlimited = 1 << 62

// foreach makes the code of a loop over an array. The list of its elements is made before the
// first turn.
func (c *compiler) foreach(s Foreach) stmtFn {
	index, near := s.Array.index, s.Near
	var keys []func(*Thread, []byte)
	for i, k := range s.Keys {
		keys = append(keys, c.keepKey(s.Array.Keys[i], k))
	}
	value := c.keepValue(s)
	limit := c.optional(s.Limit, unlimited)
	only, parts := func(*Thread) int { return 0 }, []bool(nil)
	if s.Only != nil {
		only = c.key(s.Array, s.Only)
		parts, _ = anyParts(s.Only)
	}
	body, by, what, descending := c.stmt(s.Body), s.Sort, s.By, s.Descending
	return func(t *Thread) ctl {
		t.act(near)
		most := limit(t)
		held := len(t.keys)
		from := only(t)
		tab := t.tables[index]
		at := tab.list(by, what, descending, most)
		t.loops = append(t.loops, mark{tab, at})
		last := len(tab.order)
		r := goOn
		for ; at < last && most > 0; at++ {
			i := tab.order[at]
			if !tab.nodes[i].live {
				continue
			}
			if parts != nil && !tab.matches(i, t.keys[from:], parts) {
				continue
			}
			most--
			key, off := tab.key(i), 0
			for n, keep := range keys {
				var part []byte
				part, off = tab.part(key, n, off)
				keep(t, part)
			}
			value(t, tab, i)
			t.act(near)
			if r = body(t); r > continues {
				break
			}
			if r == breaks {
				break
			}
		}
		t.keys = t.keys[:held]
		t.unwind(len(t.loops) - 1)
		if r == breaks || r == continues {
			r = goOn
		}
		return r
	}
}

// keepKey stores a part of a key.
func (c *compiler) keepKey(typ Type, to Expr) func(*Thread, []byte) {
	if to == nil {
		return func(*Thread, []byte) {}
	}
	if to.Type() != typ {
		bug("a %s for a key that is a %s", to.Type(), typ)
	}
	if typ == String {
		place := c.place(to)
		return func(t *Thread, part []byte) {
			p := place(t)
			*p = append((*p)[:0], part...)
		}
	}
	set := c.setInt(to)
	return func(t *Thread, part []byte) { set(t, number(part)) }
}

func (c *compiler) keepValue(s Foreach) func(*Thread, *table, int32) {
	if s.Value == nil {
		return func(*Thread, *table, int32) {}
	}
	if s.Value.Type() != s.Array.Value {
		bug("a %s for a value that is a %s", s.Value.Type(), s.Array.Value)
	}
	if s.Array.Value == String {
		place := c.place(s.Value)
		return func(t *Thread, tab *table, i int32) {
			p := place(t)
			*p = append((*p)[:0], tab.value(i)...)
		}
	}
	set := c.setInt(s.Value)
	return func(t *Thread, tab *table, i int32) { set(t, tab.ints[i]) }
}

// place makes the code that returns a string variable's memory.
func (c *compiler) place(e Expr) func(*Thread) *[]byte {
	switch e := e.(type) {
	case Local:
		n := c.slot(e)
		return func(t *Thread) *[]byte { return &t.texts[t.tb+n] }
	case Global:
		n := e.Var.index
		return func(t *Thread) *[]byte { return &t.varTexts[n] }
	}
	bug("%T is no variable", e)
	return nil
}

func (c *compiler) setInt(e Expr) func(*Thread, int64) {
	switch e := e.(type) {
	case Local:
		n := c.slot(e)
		return func(t *Thread, v int64) { t.ints[t.ib+n] = v }
	case Global:
		n := e.Var.index
		return func(t *Thread, v int64) { t.vars[n] = v }
	}
	bug("%T is no variable", e)
	return nil
}

// buckets makes the code of a loop over a histogram.
func (c *compiler) buckets(s Buckets) stmtFn {
	of, near, body := c.stat(s.Of, false), s.Near, c.stmt(s.Body)
	key, value := func(*Thread, int64) {}, func(*Thread, int64) {}
	if s.Key != nil {
		key = c.setInt(s.Key)
	}
	if s.Value != nil {
		value = c.setInt(s.Value)
	}
	limit := c.optional(s.Limit, unlimited)
	return func(t *Thread) ctl {
		t.act(near)
		most := limit(t)
		st := of(t)
		if st == nil || st.count == 0 {
			t.Fail(near, "empty aggregate")
		}
		for i := 0; i < len(st.buckets) && int64(i) < most; i++ {
			key(t, int64(i))
			value(t, st.buckets[i])
			t.act(near)
			switch r := body(t); r {
			case goOn, continues:
			case breaks:
				return goOn
			default:
				return r
			}
		}
		return goOn
	}
}
