package bpftrace

import (
	"net/netip"
	"strings"

	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

func (g *generator) builtin(n *node) value {
	t := n.typ
	plain := func(x script.Expr) value { return value{x: x, t: t, width: t.slot()} }
	if n.text == "func" && t.Kind == Usym {
		return plain(userFunction())
	}
	if b, ok := builtinWords[n.text]; ok {
		return plain(call(b))
	}
	switch n.text {
	case "ncpus":
		return plain(script.Number(g.cpus()))
	case "usermode":
		return plain(call(usermodeCode))
	case "comm":
		return plain(call(commCode))
	case "probe":
		return plain(call(nameCode))
	case "username":
		return plain(call(builtinWords["uid"]))
	case "elapsed":
		return plain(script.Binary{Op: script.Sub, X: call(builtinWords["nsecs"]), Y: script.Global{Var: g.s.started}})
	case "rand":
		// xorshift, from the same beginning in each run.
		v := script.Global{Var: g.s.random}
		step := func(x script.Expr, op script.Op, by int64) script.Expr {
			return script.Binary{Op: script.Xor, X: x, Y: script.Binary{Op: op, X: x, Y: script.Number(by)}}
		}
		set := func(x script.Expr) script.Expr { return script.Assign{To: v, Op: script.Set, X: x} }
		return plain(script.Binary{Op: script.ShrU, X: set(step(set(step(set(step(v, script.Shl, 13)), script.ShrU, 7)), script.Shl, 17)), Y: script.Number(32)})
	case "kstack", "ustack":
		return plain(g.stack(t))
	case "ctx":
		return plain(script.Number(0))
	case "args":
		return plain(script.Number(0))
	case "retval":
		return plain(script.Low(script.Register{N: 0}, t.slot()))
	}
	i := int(n.text[len(n.text)-1] - '0')
	if strings.HasPrefix(n.text, "sarg") {
		return plain(script.Load{Addr: script.Plus(script.Register{N: 7}, int64(8*(i+1))), Size: 8, Space: t.Space, Lenient: true})
	}
	if g.probe.Kind == host.Trace {
		i++ // the first parameter of a callback is its own data
	}
	if i >= len(script.Params) {
		g.fail(n.at, "%s of a tracepoint is not in a register", n.text)
	}
	return plain(script.Register{N: script.Params[i]})
}

func (g *generator) stack(t *Type) script.Expr {
	g.s.longest = append(g.s.longest, t)
	if t.Kind == Ustack {
		g.s.UserSymbols = true
		return call(userStackCode, script.Number(t.N))
	}
	return call(stackCode, script.Number(t.N))
}

// callValue is a call with a value.
func (g *generator) callValue(n *node) value {
	t, k := n.typ, n.kids
	plain := func(x script.Expr) value { return value{x: x, t: t} }
	same := func(n *node) value { v := g.integer(n); return value{x: v.x, t: t, width: v.width} }
	if g.newest() {
		if v, ok := g.newestCallValue(n); ok {
			return v
		}
	}
	switch n.text {
	case "str":
		return plain(g.str(n))
	case "buf":
		return plain(g.buf(n))
	case "kstack", "ustack":
		return plain(g.stack(t))
	case "uaddr":
		if g.probe.InProgram != nil {
			if s, ok := symbolIn(g.probe.InProgram.Program, k[0].text); ok {
				return plain(script.Number(int64(s.Addr)))
			}
		}
		return plain(script.Number(0))
	case "usym":
		g.s.UserSymbols = true
		return plain(call(userSymbolCode, g.raw(k[0])))
	case "percpu_kaddr":
		return plain(g.perCPU(n))
	case "path":
		return plain(g.path(n))
	case "ksym", "strerror", "kptr", "uptr":
		return same(k[0])
	case "reg":
		number, _ := script.RegisterNumber(k[0].text)
		return plain(script.Register{N: number})
	case "kaddr":
		if g.c.k != nil && g.c.k.Symbol != nil {
			if addr, ok := g.c.k.Symbol(k[0].text); ok {
				return plain(script.Number(int64(addr)))
			}
		}
		g.c.plain("Failed to compile: Failed to resolve kernel symbol: %s", k[0].text)
		panic(failed{})
	case "nsecs":
		if len(k) == 1 && strings.HasSuffix(k[0].text, "tai") {
			return plain(call(wallCode))
		}
		return plain(call(builtinWords["nsecs"]))
	case "strncmp":
		return plain(call(compareCode, g.text(k[0]), g.text(k[1]), g.num(k[2])))
	case "strcontains":
		return plain(call(containsCode, g.text(k[0]), g.text(k[1])))
	case "bswap":
		return value{x: call(swapCode, g.raw(k[0]), script.Number(k[0].typ.Size)), t: t, width: t.slot()}
	case "macaddr":
		return plain(call(macCode, g.bytes(k[0], 6)))
	case "ntop":
		return plain(g.ntop(n))
	case "pton":
		addr, _ := netip.ParseAddr(k[0].text)
		b := addr.AsSlice()
		return value{x: script.Text(b), t: t, raw: true, own: true}
	case "strftime":
		f, most := k[0].text, g.c.maxStr
		boot := k[1].typ.Clock == ""
		return plain(call(textual("strftime", ints[:1], func(th *script.Thread, a *script.Args, dst []byte) []byte {
			ns := uint64(a.Int[0])
			if boot {
				s := system(th)
				ns += s.Wall() - s.Now()
			}
			if text := strftime(microseconds(f, ns), ns, nil); len(text) > 0 && len(text) < most {
				return append(dst, text...)
			}
			system(th).Log("ERROR: " + noTime)
			return append(dst, "(?)"...)
		}), g.raw(k[1])))
	case "has_key":
		info := g.infos[k[0].text]
		return value{x: script.Has{Array: info.array, Keys: []script.Expr{g.as(k[1], info.key)}}, t: t, width: 1}
	case "len":
		if k[0].op != nMap {
			frames := call(framesCode, g.text(k[0]))
			if k[0].typ.Kind == Ustack {
				frames = script.Plus(frames, -1) // the process
			}
			return plain(frames)
		}
		a := g.arrays[k[0].text]
		return plain(call(number("len", nil, func(t *script.Thread, _ *script.Args) int64 { return int64(t.Len(a)) })))
	}
	g.fail(n.at, "%s() has no value", n.text)
	return value{}
}

func (g *generator) str(n *node) script.Expr {
	k := n.kids
	var known script.Expr
	if b := k[0]; n.post {
		known = script.Text(g.c.param(int(b.num)))
	} else if b.op == nBinary && (b.kids[0].op == nParam || b.kids[1].op == nParam) {
		p, off := b.kids[0], b.kids[1]
		if p.op != nParam {
			p, off = off, p
		}
		known = script.Text(g.c.param(int(p.num))[off.num:])
	}
	var size script.Expr = script.Number(n.typ.Size)
	if len(k) == 2 {
		size = call(leastCode, g.raw(k[1]), script.Number(g.c.maxStr)) // with the NUL
	}
	switch {
	case known != nil && len(k) == 2:
		return call(cutCode, known, script.Plus(size, -1))
	case known != nil:
		return known
	}
	g.reads(k[0].typ)
	return call(strCode, g.raw(k[0]), size, script.Number(k[0].typ.Space))
}

// bytes makes a string of a value's bytes: an array's own bytes, or for an address the bytes there.
func (g *generator) bytes(n *node, size int) script.Expr {
	x := g.expr(n)
	if x.Type() == script.String {
		return x
	}
	g.reads(n.typ)
	return call(bytesCode, x, script.Number(size), script.Number(n.typ.Space))
}

func (g *generator) buf(n *node) script.Expr {
	x := g.expr(n.kids[0])
	var size script.Expr = script.Number(n.typ.Size)
	if len(n.kids) == 2 {
		size = call(leastCode, g.raw(n.kids[1]), script.Number(g.c.maxStr-4))
	}
	if t := n.kids[0].typ; x.Type() != script.String || t.Kind == Array {
		g.reads(t)
	}
	if x.Type() == script.String {
		return call(padCode, x, size)
	}
	return call(bytesCode, x, size, script.Number(n.kids[0].typ.Space))
}

func (g *generator) ntop(n *node) script.Expr {
	a := n.kids[len(n.kids)-1]
	x := g.expr(a)
	if x.Type() == script.Int {
		x = call(packCode, script.Low(x, 32), script.Number(16)) // the rest of an address is zeros
	} else {
		g.reads(a.typ)
	}
	var family script.Expr = script.Number(0)
	switch {
	case len(n.kids) == 2:
		family = g.num(n.kids[0])
	case a.typ.isInt():
		family = script.Number(2)
	}
	return call(inetCode, x, family)
}

// effect returns the statement for an expression whose value is not used.
func (g *generator) effect(n *node) script.Stmt {
	if g.newest() {
		if s := g.newestEffect(n); s != nil {
			return s
		}
	}
	switch {
	case n.op == nTernary && n.typ.Kind == None:
		return script.If{Cond: g.num(n.kids[0]), Then: g.effect(n.kids[1]), Else: g.effect(n.kids[2])}
	case n.op == nMap && g.infos[n.text].val.castable():
		return script.Do{X: g.read(n).x}
	case n.op == nMap || n.op == nBuiltin && n.typ.Args:
		return script.Block{}
	case n.typ.Kind == Array || n.typ.Kind == Record:
		return script.Do{X: g.fetch(g.value(n), n.at)}
	case n.op != nCall:
		return script.Do{X: g.expr(n)}
	}
	k := n.kids
	switch n.text {
	case "printf":
		return g.printf(n)
	case "print":
		return g.print(n)
	case "exit":
		var code script.Expr = script.Number(0)
		if len(k) == 1 {
			code = g.raw(k[0])
		}
		return script.Block{script.Do{X: call(exitCode, code)}, script.Next{}}
	case "clear", "zero":
		return g.reset(n)
	case "delete":
		return g.deletion(n)
	case "time":
		f := "%H:%M:%S\n"
		if len(k) > 0 {
			f = k[0].text
		}
		return script.Do{X: call(number("time", nil, func(t *script.Thread, _ *script.Args) int64 {
			if text := strftime(f, system(t).Wall(), nil); len(text) > 0 && len(text) < timeRoom {
				g.s.message(t, "time", string(text), false)
			} else {
				system(t).Log("WARNING: " + noTime)
			}
			return 0
		}))}
	case "join":
		delim := " "
		if len(k) > 1 {
			delim = k[1].text
		}
		space := k[0].typ.Space
		g.reads(k[0].typ)
		return script.Do{X: call(number("join", ints[:1], func(t *script.Thread, a *script.Args) int64 {
			g.s.message(t, "join", join(system(t), space, uint64(a.Int[0]), delim), true)
			return 0
		}), g.raw(k[0]))}
	}
	return script.Do{X: g.expr(n)}
}

// join reads the strings of an array of addresses: 16 of 1024 bytes at most.
func join(s host.System, space script.Space, at uint64, delim string) string {
	var list []string
	room := make([]byte, 0, 1024)
	for i := range uint64(16) {
		var b [8]byte
		if !space.Read(s, at+8*i, b[:]) {
			break
		}
		p := uint64(0)
		for j := 7; j >= 0; j-- {
			p = p<<8 | uint64(b[j])
		}
		if p == 0 {
			break
		}
		list = append(list, string(readString(s, space, p, 1024, room[:0])))
	}
	return strings.Join(list, delim)
}

func (g *generator) printf(n *node) script.Stmt {
	format := n.kids[0].text
	p := script.Printf{Near: g.near(n.at)}
	last := 0
	for i, d := range g.c.o.Language.directives(format) {
		p.Format = append(p.Format, script.Piece{Text: plain(format[last:d.from])})
		last = d.to
		a := n.kids[1+i]
		x := g.argumentOf(a)
		piece := script.Piece{Verb: d.verb[len(d.verb)-1], Width: d.width, Precision: d.precision, Left: d.left, Zero: d.zero}
		switch d.verb {
		case "s":
			piece.Zero = false
			piece.Show = g.s.show(a.typ)
			if show := piece.Show; a.typ.enum() { // by its name in JSON, too
				piece.Show = func(th *script.Thread, num int64, text, dst []byte) []byte {
					if name, ok := a.typ.enumerator(num); ok {
						return append(dst, name...)
					}
					return show(th, num, text, dst)
				}
			}
		case "r", "rx", "rh":
			piece.Verb = 's'
			how := d.verb
			if d.to-d.from > len("%")+len(d.verb) {
				// With a width, C does not know it, and prints it.
				text := format[d.from:d.to]
				piece.Width, piece.Precision = -1, -1
				piece.Show = func(_ *script.Thread, _ int64, _, dst []byte) []byte { return append(dst, text...) }
				break
			}
			piece.Show = func(_ *script.Thread, _ int64, text, dst []byte) []byte { return hexBuffer(text, how, dst) }
		case "c":
			piece.Verb, piece.Width, piece.Show = 's', -1, character(d.width, d.left)
		case "p":
			piece.Verb, piece.Show = 's', pointerText
		case "gr", "lgr":
			piece.Verb, piece.Zero, piece.Width, piece.Precision, piece.Show = 's', false, -1, -1, showGFP(a.typ, d)
		default:
			x = sized(x, d.verb)
		}
		if d.precision >= 0 && d.verb != "s" {
			piece.Zero = false
		}
		p.Format, p.Args = append(p.Format, piece), append(p.Args, x)
	}
	// What comes after the last directive is not gone through as a format.
	p.Format = append(p.Format, script.Piece{Text: format[last:]})
	if g.c.o.JSON {
		p.As = func(dst, line []byte) []byte { return jsonMessage(dst, "printf", line) }
	}
	return p
}

// character shows a number as a character of a width. As the tool's text ends at a NUL, so does this one.
func character(width int, left bool) func(th *script.Thread, num int64, text, dst []byte) []byte {
	return func(_ *script.Thread, num int64, _, dst []byte) []byte {
		pad := strings.Repeat(" ", max(width-1, 0))
		switch c := byte(num); {
		case left && c == 0:
			return dst
		case c == 0:
			return append(dst, pad...)
		case left:
			return append(append(dst, c), pad...)
		default:
			return append(append(dst, pad...), c)
		}
	}
}

// argumentOf is an argument of printf: an integer of fewer than 64 bits by its type gets those by its sign.
func (g *generator) argumentOf(n *node) script.Expr {
	v := g.loaded(n)
	if n.typ.slot() < 64 && v.x.Type() == script.Int {
		return g.wide(v)
	}
	return v.x
}

// sized cuts a number to what C's printf takes of it.
func sized(x script.Expr, verb string) script.Expr {
	signed := verb[len(verb)-1] == 'd'
	switch strings.TrimRight(verb, "duoxX") {
	case "hh":
		return convert(script.Low(x, 8), 8, 64, signed)
	case "h":
		return convert(script.Low(x, 16), 16, 64, signed)
	case "":
		return convert(script.Low(x, 32), 32, 64, signed)
	}
	return x
}

// print prints a map or a value.
func (g *generator) print(n *node) script.Stmt {
	k := n.kids
	if k[0].op == nMap && (len(k[0].kids) == 0) {
		info := g.infos[k[0].text]
		var top, div int64
		if len(k) > 1 {
			top, _ = g.c.number(k[1])
		}
		if len(k) > 2 {
			div, _ = g.c.number(k[2])
		}
		return later("print", func(t *script.Thread) { g.s.printMap(t, info, top, div) })
	}
	x, t := g.loaded(k[0]).x, k[0].typ
	p := script.Printf{Args: []script.Expr{x}, Near: g.near(n.at)}
	element := k[0].op == nMap
	name := k[0].text
	p.Format = []script.Piece{{Verb: 's', Width: -1, Precision: -1, Show: func(th *script.Thread, num int64, text, dst []byte) []byte {
		v := g.s.render(th, t, num, text, false, 1)
		return append(dst, g.s.printed(name, element, v)...)
	}}}
	return p
}
