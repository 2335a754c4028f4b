package script

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
)

// Context gives a handler the registers and the memory of the hit at which it runs.
type Context interface {
	// Register returns a register of the hit by its DWARF number.
	Register(n int) uint64
	// Read reads memory; with user it is the memory of the current task's program. False is a fault.
	Read(addr uint64, b []byte, user bool) bool
	// SetRegister and Write change a register and memory. They return false if they cannot.
	SetRegister(n int, v uint64) bool
	Write(addr uint64, b []byte, user bool) bool
	// Saved and SetSaved are words that the entry and the return of one call share.
	Saved(n int) int64
	SetSaved(n int, v int64)
}

// Thread runs the handlers of a program, one at a time, and has its global variables.
type Thread struct {
	// Context is the running handler's.
	Context Context

	code *Code
	w    io.Writer
	// ints and texts are the frames of the running functions, from ib and tb on the
	// innermost's.
	ints   []int64
	texts  [][]byte
	ib, tb int

	vars     []int64
	varTexts [][]byte
	stats    []stat
	tables   []*table

	// kept holds the bytes that builtins keep from one call to the next, by the builtin's name.
	kept map[string]*[]byte

	// word is the buffer of a Load.
	word  [8]byte
	keys  []byte // of elements, innermost last
	loops []mark
	out   []byte
	// lines are the buffers of lines that are being made, one inside another; busy of them are in use.
	lines [][]byte
	busy  int

	// shown is the text of an argument that is being printed.
	shown []byte
	// events holds the functions to call after the handler; waiting is the size of their text in bytes.
	events  []func()
	waiting int

	result     int64
	resultText []byte

	actions, nesting int
	args             []Args // one for each level of builtins inside of builtins
	depth            int

	// message and near are of the error that ended something.
	message, near string

	pattern *regexp.Regexp
	subject []byte
}

// Kept returns the bytes that a builtin keeps from one call to the next while the script runs. builtin is its name.
func (t *Thread) Kept(builtin string) *[]byte {
	b := t.kept[builtin]
	if b == nil {
		if t.kept == nil {
			t.kept = map[string]*[]byte{}
		}
		b = new([]byte)
		t.kept[builtin] = b
	}
	return b
}

// mark is the beginning of a loop's entries in the order of its table.
type mark struct {
	t    *table
	from int
}

// Error is the error that ended a handler. Near names its place in the script, "" for none.
type Error struct{ Message, Near string }

func (e *Error) Error() string {
	if e.Near == "" {
		return e.Message
	}
	return e.Message + " " + e.Near
}

// outRoom is the number of bytes that a Thread collects before it writes them, and the room of a line's buffer.
const outRoom = 8192

// NewThread makes a thread whose variables have their first values. The output of each handler
// goes to w after the handler has ended.
func (c *Code) NewThread(w io.Writer) *Thread {
	p, l := c.program, &c.program.Limits
	t := &Thread{
		code: c, w: w,
		ints:  make([]int64, c.ints*(l.Nesting+2)),
		texts: make([][]byte, c.texts*(l.Nesting+2)),
		vars:  make([]int64, len(p.Vars)), varTexts: make([][]byte, len(p.Vars)), stats: make([]stat, len(p.Vars)),
		keys: make([]byte, 0, 16*(l.StringSize+64)), loops: make([]mark, 0, 16),
		out: make([]byte, 0, 2*outRoom), resultText: make([]byte, 0, 2*l.StringSize),
		args: make([]Args, 8), lines: [][]byte{make([]byte, 0, outRoom)}, subject: make([]byte, 0, l.StringSize),
	}
	for i := range t.texts {
		t.texts[i] = make([]byte, 0, 2*l.StringSize)
	}
	for i, v := range p.Vars {
		t.vars[i] = v.Number
		t.varTexts[i] = append(make([]byte, 0, 2*l.StringSize), v.Text[:min(len(v.Text), l.StringSize-1)]...)
		t.stats[i].buckets = make([]int64, v.Histogram.Buckets())
	}
	for _, a := range p.Arrays {
		t.tables = append(t.tables, newTable(a, l))
	}
	return t
}

// abort is the panic value with which Fail unwinds a handler.
type abort struct{}

var aborted = &abort{}

// Fail ends the running handler with an error, unless a Try catches the error. Builtins call it.
func (t *Thread) Fail(near, message string) {
	t.message, t.near = message, near
	panic(aborted)
}

// Failf is Fail with a formatted message.
func (t *Thread) Failf(near, format string, a ...any) { t.Fail(near, fmt.Sprintf(format, a...)) }

// Run runs a handler. The error is an *Error.
func (t *Thread) Run(h *Handler) error {
	t.ib, t.tb, t.nesting, t.depth, t.busy = 0, 0, 0, 0, 0
	t.actions = h.Actions
	t.keys = t.keys[:0]
	t.unwind(0)
	ok := t.protect(h.code)
	t.catchUp()
	t.Flush()
	if ok {
		return nil
	}
	return &Error{t.message, t.near}
}

func (t *Thread) protect(b *body) (ok bool) {
	defer func() {
		if r := recover(); r != nil && r != any(aborted) {
			panic(r)
		}
	}()
	b.clear(t, 0, 0)
	b.run(t)
	return true
}

// unwind forgets the loops from the nth on.
func (t *Thread) unwind(n int) {
	for i := len(t.loops) - 1; i >= n; i-- {
		t.loops[i].t.order = t.loops[i].t.order[:t.loops[i].from]
	}
	t.loops = t.loops[:n]
}

// act counts a statement.
func (t *Thread) act(near string) {
	if t.actions--; t.actions < 0 {
		t.Fail(near, "MAXACTION exceeded")
	}
}

func (t *Thread) read(at uint64, b []byte, user bool, near string) {
	if t.Context == nil || !t.Context.Read(at, b, user) {
		t.fault("read", at, near)
	}
}

func (t *Thread) fault(what string, at uint64, near string) {
	t.Failf(near, "%s fault [man error::fault] at %#x", what, at)
}

// Print prints a text, after the calls of Later that wait.
func (t *Thread) Print(s []byte) {
	if len(t.events) > 0 {
		text := bytes.Clone(s)
		t.waiting += len(text)
		t.Later(func() { t.Print(text) })
		return
	}
	for len(s) > 0 {
		n := min(len(s), outRoom)
		t.out = append(t.out, s[:n]...)
		s = s[n:]
		t.room()
	}
}

// line returns an empty buffer for a line; printed prints it.
func (t *Thread) line() []byte {
	if t.busy == len(t.lines) {
		t.lines = append(t.lines, make([]byte, 0, outRoom))
	}
	t.busy++
	return t.lines[t.busy-1]
}

func (t *Thread) printed(b []byte) {
	t.busy--
	t.Print(b)
}

// room makes room for another line.
func (t *Thread) room() {
	if len(t.out) > outRoom {
		t.Flush()
	}
}

// Flush writes what has been printed.
func (t *Thread) Flush() {
	if len(t.out) > 0 {
		t.w.Write(t.out)
		t.out = t.out[:0]
	}
}

// StringSize returns the room of a string in bytes, with its NUL.
func (t *Thread) StringSize() int { return t.code.program.Limits.StringSize }

// Number returns an integer variable's value.
func (t *Thread) Number(v *Var) int64 { return t.vars[v.index] }

// Text returns a string variable's value; it is valid until a handler runs.
func (t *Thread) Text(v *Var) []byte { return t.varTexts[v.index] }

// Stats is the content of an aggregate. Buckets are the counts of its histogram.
type Stats struct {
	Count, Sum, Min, Max int64
	Buckets              []int64
}

// Entry is an element of an array. It is valid until a handler runs.
type Entry struct {
	// Key is a tuple of the array's keys.
	Key   []byte
	Int   int64
	Text  []byte
	Stats Stats
}

// Entries returns an array's elements, the oldest first.
func (t *Thread) Entries(a *Array) []Entry {
	tab := t.tables[a.index]
	list := make([]Entry, 0, tab.n)
	for i := tab.first; i != nobody; i = tab.nodes[i].next {
		e := Entry{Key: tab.key(i)}
		switch a.Value {
		case Int:
			e.Int = tab.ints[i]
		case String:
			e.Text = tab.value(i)
		case Stat:
			s := &tab.stats[i]
			e.Stats = Stats{s.count, s.sum, s.min, s.max, s.buckets}
		}
		list = append(list, e)
	}
	return list
}

// Empty removes all elements of an array.
func (t *Thread) Empty(a *Array) { t.tables[a.index].clear() }

// Zero sets the values of all elements to 0, to "" or to none.
func (t *Thread) Zero(a *Array) {
	tab := t.tables[a.index]
	clear(tab.ints)
	clear(tab.lens)
	for i := range tab.stats {
		tab.stats[i].reset()
	}
}

// Len returns the number of an array's elements.
func (t *Thread) Len(a *Array) int { return t.tables[a.index].n }

// Matched returns group number n of the last match, and the number of groups. Group 0 is the whole match.
func (t *Thread) Matched(n int) (text []byte, groups int) {
	if t.pattern == nil {
		return nil, 0
	}
	at := t.pattern.FindSubmatchIndex(t.subject)
	if at == nil || n < 0 || 2*n >= len(at) || at[2*n] < 0 {
		return nil, len(at) / 2
	}
	return t.subject[at[2*n]:at[2*n+1]], len(at) / 2
}

// Actions returns the number of statements that the last run of h executed.
func (t *Thread) Actions(h *Handler) int { return h.Actions - max(t.actions, 0) }

// SetNumber gives a global variable a value.
func (t *Thread) SetNumber(v *Var, n int64) { t.vars[v.index] = n }
