package script

import (
	"encoding/binary"
	"fmt"

	"kprobelab/internal/bounded"
)

// Code is a program that can run.
type Code struct {
	program     *Program
	ints, texts int // the largest frame
}

type (
	intFn  func(*Thread) int64
	textFn func(*Thread, []byte) []byte // appends
	stmtFn func(*Thread) ctl
)

// ctl is the way in which a statement ends: it goes on to the next one, or leaves a loop, a function or the handler.
type ctl uint8

const (
	goOn ctl = iota
	breaks
	continues
	returns
	ends
	skips
)

// body is the code of a function or a handler with its frame.
type body struct {
	run         stmtFn
	ints, texts int
	// slots are the places of the locals in the frame. Strings count among strings, all other types among integers.
	slots []int
	types []Type
}

// clear makes a frame's locals 0 and "".
func (b *body) clear(t *Thread, ib, tb int) {
	clear(t.ints[ib : ib+b.ints])
	texts := t.texts[tb : tb+b.texts]
	for i := range texts {
		texts[i] = texts[i][:0]
	}
}

// ErrTooLarge refuses a program that needs more memory than its limits give.
type ErrTooLarge struct{ What string }

func (e *ErrTooLarge) Error() string { return e.What }

// Compile checks a program and makes code of it. If a front end made a wrong program, the error
// begins with BUG.
func Compile(p *Program) (code *Code, err error) {
	defer func() {
		if r := recover(); r != nil {
			bug, ok := r.(mistake)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("BUG: %s", string(bug))
		}
	}()
	c := &Code{program: p}
	for i, v := range p.Vars {
		v.index = i
	}
	memory := 0
	for i, a := range p.Arrays {
		a.index = i
		if memory += tableSize(a, &p.Limits); memory > p.Limits.Memory {
			return nil, &ErrTooLarge{fmt.Sprintf("the arrays take more than %d MiB of memory", p.Limits.Memory>>20)}
		}
	}
	for _, f := range p.Funcs {
		f.code = layOut(f.Locals)
	}
	for _, f := range p.Funcs {
		(&compiler{c, f.code, f}).whole(f.Body)
	}
	for _, h := range p.Handlers {
		h.code = layOut(h.Locals)
		(&compiler{c, h.code, nil}).whole(h.Body)
	}
	if c.ints > bounded.ScriptFrame || c.texts > bounded.ScriptFrame {
		return nil, &ErrTooLarge{"a function has too many variables"}
	}
	if need := c.texts * (p.Limits.Nesting + 2) * 2 * p.Limits.StringSize; need > p.Limits.Memory {
		return nil, &ErrTooLarge{fmt.Sprintf("strings take more than %d MiB of memory", p.Limits.Memory>>20)}
	}
	return c, nil
}

// mistake is the panic value for a wrong program of a front end; Compile turns it into an error.
type mistake string

func bug(format string, a ...any) { panic(mistake(fmt.Sprintf(format, a...))) }

func layOut(locals []Type) *body {
	b := &body{types: locals}
	for _, typ := range locals {
		if typ == String {
			b.slots = append(b.slots, b.texts)
			b.texts++
		} else {
			b.slots = append(b.slots, b.ints)
			b.ints++
		}
	}
	return b
}

// compiler makes the code of one body.
type compiler struct {
	c  *Code
	b  *body
	fn *Func // nil for a handler
}

func (c *compiler) whole(s Stmt) {
	c.b.run = c.stmt(s)
	c.c.ints, c.c.texts = max(c.c.ints, c.b.ints), max(c.c.texts, c.b.texts)
}

// newInt and newText are places for intermediate values.
func (c *compiler) newInt() int  { c.b.ints++; return c.b.ints - 1 }
func (c *compiler) newText() int { c.b.texts++; return c.b.texts - 1 }

func (c *compiler) limit() int { return c.c.program.Limits.StringSize - 1 }

// hold makes the code that evaluates a string into a place of the frame and returns its bytes.
func (c *compiler) hold(e Expr) func(*Thread) []byte {
	if s, ok := e.(Text); ok {
		b := []byte(s[:min(len(s), c.limit())])
		return func(*Thread) []byte { return b }
	}
	fn, n := c.text(e), c.newText()
	return func(t *Thread) []byte {
		b := fn(t, t.texts[t.tb+n][:0])
		t.texts[t.tb+n] = b
		return b
	}
}

// argument evaluates arguments into places of the frame; a caller may then use them all.
type argument struct {
	typ  Type
	n    int
	num  intFn
	text func(*Thread) []byte
}

func (c *compiler) arguments(list []Expr, types func(i int) Type) []argument {
	var out []argument
	for i, e := range list {
		a := argument{typ: types(i)}
		if a.typ == String {
			a.n = c.b.texts // the place that own takes
			a.text = c.own(e)
		} else {
			a.num = c.int(e)
			a.n = c.newInt()
		}
		out = append(out, a)
	}
	return out
}

// own does as hold, and never shares the bytes with another expression.
func (c *compiler) own(e Expr) func(*Thread) []byte {
	n := c.newText()
	fn := c.text(e)
	return func(t *Thread) []byte {
		b := fn(t, t.texts[t.tb+n][:0])
		t.texts[t.tb+n] = b
		return b
	}
}

func evaluate(t *Thread, list []argument) {
	for i := range list {
		if a := &list[i]; a.typ == String {
			a.text(t)
		} else {
			t.ints[t.ib+a.n] = a.num(t)
		}
	}
}

// key makes the code that appends an element's key to the thread's keys and returns the key's
// beginning. The caller cuts the key off after use. Parts that are nil are left out.
func (c *compiler) key(a *Array, keys []Expr) func(*Thread) int {
	if len(keys) != len(a.Keys) {
		bug("%s has %d keys, not %d", a.Name, len(a.Keys), len(keys))
	}
	var parts []func(*Thread)
	for i, e := range keys {
		switch {
		case e == nil:
		case a.Keys[i] == String:
			text := c.hold(e)
			parts = append(parts, func(t *Thread) {
				s := text(t)
				t.keys = append(t.keys, byte(len(s)), byte(len(s)>>8))
				t.keys = append(t.keys, s...)
			})
		default:
			num := c.int(e)
			parts = append(parts, func(t *Thread) {
				t.keys = binary.LittleEndian.AppendUint64(t.keys, uint64(num(t)))
			})
		}
	}
	if len(parts) == 1 {
		only := parts[0]
		return func(t *Thread) int {
			from := len(t.keys)
			only(t)
			return from
		}
	}
	return func(t *Thread) int {
		from := len(t.keys)
		for _, p := range parts {
			p(t)
		}
		return from
	}
}

func anyParts(keys []Expr) (parts []bool, some bool) {
	for _, k := range keys {
		parts = append(parts, k == nil)
		some = some || k == nil
	}
	return parts, some
}

// entry makes the code that finds an element of an array. With make it adds a missing element.
func (c *compiler) entry(e Elem, make bool) func(*Thread) (*table, int32) {
	key, index, near := c.key(e.Array, e.Keys), e.Array.index, e.Near
	return func(t *Thread) (*table, int32) {
		from := key(t)
		tab := t.tables[index]
		var i int32
		if make {
			i = tab.put(t.keys[from:])
		} else {
			i = tab.find(t.keys[from:])
		}
		t.keys = t.keys[:from]
		if make && i == nobody {
			t.overflow(tab, near)
		}
		return tab, i
	}
}

// stat makes the code that finds an aggregate; the code returns nil if the array has no such element.
func (c *compiler) stat(e Expr, make bool) func(*Thread) *stat {
	if e.Type() != Stat {
		bug("%T is no aggregate", e)
	}
	switch e := e.(type) {
	case Global:
		index := e.Var.index
		return func(t *Thread) *stat { return &t.stats[index] }
	case Elem:
		entry := c.entry(e, make)
		return func(t *Thread) *stat {
			tab, i := entry(t)
			if i == nobody {
				return nil
			}
			return &tab.stats[i]
		}
	}
	bug("%T is no aggregate", e)
	return nil
}

func histogramOf(e Expr) *Histogram {
	switch e := e.(type) {
	case Global:
		return &e.Var.Histogram
	case Elem:
		return &e.Array.Histogram
	}
	bug("%T has no histogram", e)
	return nil
}
