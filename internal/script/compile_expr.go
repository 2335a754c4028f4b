package script

import (
	"bytes"
	"encoding/binary"
)

// int makes the code of an expression that gives an integer.
func (c *compiler) int(e Expr) intFn {
	if e.Type() == String || e.Type() == Stat {
		bug("%T is a %s, not a long", e, e.Type())
	}
	switch e := e.(type) {
	case Number:
		v := int64(e)
		return func(*Thread) int64 { return v }
	case Local:
		n := c.slot(e)
		return func(t *Thread) int64 { return t.ints[t.ib+n] }
	case Global:
		n := e.Var.index
		return func(t *Thread) int64 { return t.vars[n] }
	case Elem:
		entry := c.entry(e, false)
		return func(t *Thread) int64 {
			tab, i := entry(t)
			if i == nobody {
				return 0
			}
			return tab.ints[i]
		}
	case Has:
		return c.has(e)
	case Unary:
		return c.unary(e)
	case Binary:
		return c.binary(e)
	case Cond:
		cond, then, other := c.int(e.If), c.int(e.Then), c.int(e.Else)
		return func(t *Thread) int64 {
			if cond(t) != 0 {
				return then(t)
			}
			return other(t)
		}
	case Assign:
		return c.assignInt(e)
	case Seq:
		body, x := c.stmt(e.Body), c.int(e.X)
		return func(t *Thread) int64 { body(t); return x(t) }
	case Call:
		call := c.call(e)
		return func(t *Thread) int64 { call(t); return t.result }
	case CallBuiltin:
		enter, fn := c.builtin(e), e.Builtin.Int
		return func(t *Thread) int64 {
			a := enter(t)
			v := fn(t, a)
			t.depth--
			return v
		}
	case Load:
		return c.load(e)
	case Part:
		whole, layout, n := c.hold(e.X), e.Layout, e.N
		return func(t *Thread) int64 { v, _ := Unpack(whole(t), layout, n); return v }
	case Member:
		return c.member(e)
	case Register:
		n := e.N
		return func(t *Thread) int64 { return int64(t.Context.Register(n)) }
	case Saved:
		n := e.N
		return func(t *Thread) int64 { return t.Context.Saved(n) }
	case Extract:
		of, what, near := c.stat(e.Of, false), e.What, e.Near
		return func(t *Thread) int64 {
			s := of(t)
			if s == nil {
				s = &stat{}
			}
			v, ok := s.extract(what)
			if !ok {
				t.Fail(near, "empty aggregate")
			}
			return v
		}
	case Bucket:
		of, n, near := c.stat(e.Of, false), c.int(e.N), e.Near
		return func(t *Thread) int64 {
			i, s := n(t), of(t)
			if s == nil || s.count == 0 {
				t.Fail(near, "empty aggregate")
			}
			if i < 0 || i >= int64(len(s.buckets)) {
				t.Fail(near, "histogram index out of range")
			}
			return s.buckets[i]
		}
	case Match:
		text, re, not := c.hold(e.X), e.Pattern, e.Not
		return func(t *Thread) int64 {
			s := text(t)
			ok := re.Match(s)
			if t.pattern = nil; ok {
				t.pattern, t.subject = re, append(t.subject[:0], s...)
			}
			return truth(ok != not)
		}
	}
	bug("%T gives no long", e)
	return nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *compiler) slot(e Local) int {
	if e.N < 0 || e.N >= len(c.b.slots) || c.b.types[e.N] != e.Of {
		bug("there is no variable %d of type %s", e.N, e.Of)
	}
	return c.b.slots[e.N]
}

func (c *compiler) has(e Has) intFn {
	key, index := c.key(e.Array, e.Keys), e.Array.index
	parts, some := anyParts(e.Keys)
	return func(t *Thread) int64 {
		from := key(t)
		tab, found := t.tables[index], false
		if some {
			for i := tab.first; i != nobody && !found; i = tab.nodes[i].next {
				found = tab.matches(i, t.keys[from:], parts)
			}
		} else {
			found = tab.find(t.keys[from:]) != nobody
		}
		t.keys = t.keys[:from]
		return truth(found)
	}
}

func (c *compiler) unary(e Unary) intFn {
	x := c.int(e.X)
	switch e.Op {
	case Neg:
		return func(t *Thread) int64 { return -x(t) }
	case Not:
		return func(t *Thread) int64 { return truth(x(t) == 0) }
	case Complement:
		return func(t *Thread) int64 { return ^x(t) }
	}
	bug("operator %d has two operands", e.Op)
	return nil
}

func (c *compiler) binary(e Binary) intFn {
	if e.Op == AndAlso || e.Op == OrElse {
		x, y := c.int(e.X), c.int(e.Y)
		if e.Op == AndAlso {
			return func(t *Thread) int64 { return truth(x(t) != 0 && y(t) != 0) }
		}
		return func(t *Thread) int64 { return truth(x(t) != 0 || y(t) != 0) }
	}
	if e.X.Type() == String {
		return c.compareTexts(e)
	}
	x, y, near := c.int(e.X), c.int(e.Y), e.Near
	switch e.Op {
	case Add:
		return func(t *Thread) int64 { return x(t) + y(t) }
	case Sub:
		return func(t *Thread) int64 { return x(t) - y(t) }
	case Eq:
		return func(t *Thread) int64 { return truth(x(t) == y(t)) }
	case Lt:
		return func(t *Thread) int64 { return truth(x(t) < y(t)) }
	}
	op := e.Op
	return func(t *Thread) int64 { a := x(t); return t.operate(op, a, y(t), near) }
}

// operate does an operation of integers.
func (t *Thread) operate(op Op, a, b int64, near string) int64 {
	switch op {
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	case Div:
		if b == 0 {
			t.Fail(near, "division by 0")
		}
		return a / b
	case Mod:
		if b == 0 {
			t.Fail(near, "division by 0")
		}
		return a % b
	case Shl:
		return a << (uint64(b) & 63)
	case Shr:
		return a >> (uint64(b) & 63)
	case And:
		return a & b
	case Or:
		return a | b
	case Xor:
		return a ^ b
	case Set:
		return b
	case DivU:
		if b == 0 {
			return 0
		}
		return int64(uint64(a) / uint64(b))
	case ModU:
		if b == 0 {
			return a
		}
		return int64(uint64(a) % uint64(b))
	case ShrU:
		return int64(uint64(a) >> (uint64(b) & 63))
	case LtU:
		return truth(uint64(a) < uint64(b))
	case LeU:
		return truth(uint64(a) <= uint64(b))
	case GtU:
		return truth(uint64(a) > uint64(b))
	case GeU:
		return truth(uint64(a) >= uint64(b))
	}
	return truth(holds(op, order(a, b)))
}

func holds(op Op, c int) bool {
	switch op {
	case Eq:
		return c == 0
	case Ne:
		return c != 0
	case Lt:
		return c < 0
	case Le:
		return c <= 0
	case Gt:
		return c > 0
	}
	return c >= 0
}

func (c *compiler) compareTexts(e Binary) intFn {
	if e.Op < Eq || e.Op > Ge {
		bug("operator %d of strings", e.Op)
	}
	x, y, op := c.hold(e.X), c.hold(e.Y), e.Op
	return func(t *Thread) int64 { a := x(t); return truth(holds(op, bytes.Compare(a, y(t)))) }
}

func (c *compiler) load(e Load) intFn {
	addr, near, space := c.int(e.Addr), e.Near, e.Space
	size, signed, lenient := e.Size, e.Signed, e.Lenient
	switch size {
	case 1, 2, 4, 8:
	default:
		bug("a load of %d bytes", size)
	}
	return func(t *Thread) int64 {
		at := uint64(addr(t))
		b := t.word[:size]
		if t.Context == nil || !space.Read(t.Context, at, b) {
			if lenient {
				return 0
			}
			t.fault("read", at, near)
		}
		return integer(b, signed)
	}
}

// integer returns the little-endian integer in b, at most 8 bytes; signed extends its highest bit.
func integer(b []byte, signed bool) int64 {
	var v uint64
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	if signed {
		shift := 64 - 8*len(b)
		return int64(v<<shift) >> shift
	}
	return int64(v)
}

func (c *compiler) member(e Member) intFn {
	whole, off, end, signed := c.hold(e.X), e.Off, e.Off+e.Size, e.Signed
	switch e.Size {
	case 1, 2, 4, 8:
	default:
		bug("a member of %d bytes", e.Size)
	}
	return func(t *Thread) int64 {
		b := whole(t)
		if end > len(b) {
			return 0
		}
		return integer(b[off:end], signed)
	}
}

func (c *compiler) assignInt(e Assign) intFn {
	x, op, near, old := c.int(e.X), e.Op, e.Near, e.Old
	if to, ok := e.To.(Elem); ok {
		return c.assignElem(to, x, op, near, old)
	}
	if e.To.Type() == Int {
		switch to := e.To.(type) {
		case Memory:
			return c.assignMemory(to, x, op, old)
		case Register:
			return assignRegister(to.N, x, op, near, old)
		}
	}
	var place func(*Thread) *int64
	switch to := e.To.(type) {
	case Local:
		n := c.slot(to)
		place = func(t *Thread) *int64 { return &t.ints[t.ib+n] }
	case Global:
		n := to.Var.index
		place = func(t *Thread) *int64 { return &t.vars[n] }
	default:
		bug("an assignment to %T", e.To)
	}
	return func(t *Thread) int64 {
		v := x(t)
		p := place(t)
		before := *p
		*p = t.operate(op, before, v, near)
		if old {
			return before
		}
		return *p
	}
}

func (c *compiler) assignElem(to Elem, x intFn, op Op, near string, old bool) intFn {
	key, index, where := c.key(to.Array, to.Keys), to.Array.index, to.Near
	return func(t *Thread) int64 {
		from := key(t)
		v := x(t)
		tab := t.tables[index]
		before := int64(0)
		i := nobody
		if op != Set {
			if i = tab.find(t.keys[from:]); i != nobody {
				before = tab.ints[i]
			}
			v = t.operate(op, before, v, near)
		} else if old {
			if i = tab.find(t.keys[from:]); i != nobody {
				before = tab.ints[i]
			}
		}
		if i < 0 {
			i = tab.put(t.keys[from:])
		}
		t.keys = t.keys[:from]
		if i == nobody {
			t.overflow(tab, where)
			return v
		}
		tab.ints[i] = v
		if old {
			return before
		}
		return v
	}
}

func (t *Thread) overflow(tab *table, near string) {
	if tab.of.Full != nil {
		tab.of.Full(t, near)
		return
	}
	t.Failf(near, "Array overflow, check size limit (%d)", len(tab.nodes))
}

// text makes the code of an expression that gives a string.
func (c *compiler) text(e Expr) textFn {
	if e.Type() != String {
		bug("%T is a %s, not a string", e, e.Type())
	}
	limit := c.limit()
	switch e := e.(type) {
	case Text:
		s := e[:min(len(e), limit)]
		return func(_ *Thread, dst []byte) []byte { return append(dst, s...) }
	case Local:
		n := c.slot(e)
		return func(t *Thread, dst []byte) []byte { return append(dst, t.texts[t.tb+n]...) }
	case Global:
		n := e.Var.index
		return func(t *Thread, dst []byte) []byte { return append(dst, t.varTexts[n]...) }
	case Elem:
		entry := c.entry(e, false)
		return func(t *Thread, dst []byte) []byte {
			tab, i := entry(t)
			if i == nobody {
				return dst
			}
			return append(dst, tab.value(i)...)
		}
	case Binary:
		if e.Op != Concat {
			bug("operator %d gives no string", e.Op)
		}
		x, y := c.text(e.X), c.hold(e.Y)
		return func(t *Thread, dst []byte) []byte {
			from := len(dst)
			dst = x(t, dst)
			s := y(t)
			return append(dst, s[:min(len(s), limit-(len(dst)-from))]...)
		}
	case Cond:
		cond, then, other := c.int(e.If), c.text(e.Then), c.text(e.Else)
		return func(t *Thread, dst []byte) []byte {
			if cond(t) != 0 {
				return then(t, dst)
			}
			return other(t, dst)
		}
	case Assign:
		return c.assignText(e)
	case Call:
		call := c.call(e)
		return func(t *Thread, dst []byte) []byte { call(t); return append(dst, t.resultText...) }
	case CallBuiltin:
		enter, fn := c.builtin(e), e.Builtin.Text
		return func(t *Thread, dst []byte) []byte {
			a := enter(t)
			from := len(dst)
			dst = fn(t, a, dst)
			t.depth--
			return dst[:min(len(dst), from+limit)]
		}
	case Tuple:
		return c.tuple(e)
	case Part:
		whole, layout, n := c.hold(e.X), e.Layout, e.N
		return func(t *Thread, dst []byte) []byte { _, s := Unpack(whole(t), layout, n); return append(dst, s...) }
	case Member:
		whole, off, size := c.hold(e.X), e.Off, e.Size
		return func(t *Thread, dst []byte) []byte {
			b := whole(t)
			if off+size > len(b) {
				return dst
			}
			return append(dst, b[off:off+size]...)
		}
	case fixed:
		return e.fn
	case Sprintf:
		format := c.format(e.Format, e.Args, e.Near)
		return func(t *Thread, dst []byte) []byte {
			o := out{dst, len(dst) + limit}
			format(t, &o)
			return o.b
		}
	case Rescue:
		x, other := c.hold(e.X), c.text(e.Else)
		return func(t *Thread, dst []byte) []byte {
			var found []byte
			if !t.guarded(func() { found = x(t) }) {
				return other(t, dst)
			}
			return append(dst, found...)
		}
	}
	bug("%T gives no string", e)
	return nil
}

func (c *compiler) assignText(e Assign) textFn {
	x, limit, concat, old := c.own(e.X), c.limit(), e.Op == Concat, e.Old
	if !concat && e.Op != Set {
		bug("operator %d of a string", e.Op)
	}
	if to, ok := e.To.(Elem); ok {
		key, index, near := c.key(to.Array, to.Keys), to.Array.index, to.Near
		return func(t *Thread, dst []byte) []byte {
			from := key(t)
			s := x(t)
			tab := t.tables[index]
			i := tab.put(t.keys[from:])
			t.keys = t.keys[:from]
			if i == nobody {
				t.overflow(tab, near)
				return append(dst, s...)
			}
			if old {
				dst = append(dst, tab.value(i)...)
			}
			if concat {
				at := int(i)*tab.text + int(tab.lens[i])
				tab.lens[i] += uint16(copy(tab.texts[at:(int(i)+1)*tab.text-1], s))
			} else {
				tab.setText(i, s)
			}
			if old {
				return dst
			}
			return append(dst, tab.value(i)...)
		}
	}
	place := c.place(e.To)
	return func(t *Thread, dst []byte) []byte {
		s := x(t)
		p := place(t)
		if old {
			dst = append(dst, *p...)
		}
		if !concat {
			*p = (*p)[:0]
		}
		*p = append(*p, s[:min(len(s), limit-len(*p))]...)
		if old {
			return dst
		}
		return append(dst, *p...)
	}
}

// call makes the code of a call; the result is then in the thread.
func (c *compiler) call(e Call) func(*Thread) {
	f := e.Func
	if len(e.Args) != f.Params {
		bug("%s has %d parameters, not %d", f.Name, f.Params, len(e.Args))
	}
	args := c.arguments(e.Args, func(i int) Type { return f.Locals[i] })
	mine, theirs, near := c.b, f.code, e.Near
	limit := c.c.program.Limits.Nesting
	return func(t *Thread) {
		evaluate(t, args)
		if t.nesting >= limit {
			t.Fail(near, "MAXNESTING exceeded")
		}
		t.nesting++
		ib, tb := t.ib, t.tb
		for f, code := f, theirs; ; f, code = f.Next, f.Next.code {
			t.result, t.resultText = 0, t.resultText[:0]
			nib, ntb := ib+mine.ints, tb+mine.texts
			code.clear(t, nib, ntb)
			for i := range args {
				if a := &args[i]; a.typ == String {
					to := &t.texts[ntb+code.slots[i]]
					*to = append(*to, t.texts[tb+a.n]...)
				} else {
					t.ints[nib+code.slots[i]] = t.ints[ib+a.n]
				}
			}
			t.ib, t.tb = nib, ntb
			if code.run(t) != skips {
				break
			}
			t.ib, t.tb = ib, tb
			if f.Next == nil {
				t.Fail(near, "all functions exhausted")
			}
		}
		t.ib, t.tb = ib, tb
		t.nesting--
	}
}

// builtin makes the code that evaluates a builtin's arguments. The caller decrements the
// thread's depth after the call.
func (c *compiler) builtin(e CallBuiltin) func(*Thread) *Args {
	b := e.Builtin
	if len(e.Args) != len(b.Params) || len(e.Args) > MaxArgs {
		bug("%s has %d parameters, not %d", b.Name, len(b.Params), len(e.Args))
	}
	args, near := c.arguments(e.Args, func(i int) Type { return b.Params[i] }), e.Near
	return func(t *Thread) *Args {
		evaluate(t, args)
		if t.depth == len(t.args) {
			t.args = append(t.args, Args{})
		}
		a := &t.args[t.depth]
		t.depth++
		for i := range args {
			if args[i].typ == String {
				a.Text[i] = t.texts[t.tb+args[i].n]
			} else {
				a.Int[i] = t.ints[t.ib+args[i].n]
			}
		}
		a.Near = near
		return a
	}
}

// format makes the code that prints.
func (c *compiler) format(pieces []Piece, list []Expr, near string) func(*Thread, *out) {
	args := c.arguments(list, func(i int) Type { return list[i].Type() })
	need := 0
	for i := range pieces {
		p := &pieces[i]
		if p.Verb == 0 {
			continue
		}
		for _, star := range []bool{p.StarWidth, p.StarPrecision} {
			if star {
				if need >= len(list) || list[need].Type() != Int {
					bug("a format without its width")
				}
				need++
			}
		}
		if need >= len(list) || p.Show == nil && (list[need].Type() == String) != (p.Verb == 's') {
			bug("%%%c without its argument", p.Verb)
		}
		need++
	}
	if need != len(list) {
		bug("a format with %d arguments, not %d", len(list), need)
	}
	return func(t *Thread, o *out) {
		evaluate(t, args)
		n := 0
		next := func() int64 { n++; return t.ints[t.ib+args[n-1].n] }
		for i := range pieces {
			p := &pieces[i]
			if p.Verb == 0 {
				o.string(p.Text)
				continue
			}
			width, precision := p.Width, p.Precision
			if p.StarWidth {
				width = max(int(int32(next())), -1)
			}
			if p.StarPrecision {
				precision = max(int(int32(next())), 0)
			}
			width, precision = min(width, outRoom), min(precision, outRoom)
			switch p.Verb {
			case 's':
				if p.Show != nil {
					var number int64
					var s []byte
					if args[n].typ == String {
						s = t.texts[t.tb+args[n].n]
					} else {
						number = t.ints[t.ib+args[n].n]
					}
					n++
					t.shown = p.Show(t, number, s, t.shown[:0])
					o.str(p, width, precision, t.shown)
					continue
				}
				o.str(p, width, precision, t.texts[t.tb+args[n].n])
				n++
			case 'c':
				o.char(p, width, byte(next()))
			case 'b':
				o.binary(p, width, precision, uint64(next()))
			case 'm', 'M':
				o.memory(t, p, width, precision, uint64(next()), near)
			default:
				o.number(p, width, precision, uint64(next()))
			}
		}
	}
}

// tuple makes the code of a string that holds several values.
func (c *compiler) tuple(e Tuple) textFn {
	args := c.arguments(e.Parts, func(i int) Type { return e.Parts[i].Type() })
	limit := c.limit()
	return func(t *Thread, dst []byte) []byte {
		evaluate(t, args)
		from := len(dst)
		for i := range args {
			if a := &args[i]; a.typ == String {
				s := t.texts[t.tb+a.n]
				dst = append(dst, byte(len(s)), byte(len(s)>>8))
				dst = append(dst, s...)
			} else {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(t.ints[t.ib+a.n]))
			}
		}
		return dst[:min(len(dst), from+limit)]
	}
}
