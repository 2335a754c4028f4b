package script

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var small = Limits{StringSize: 16, Entries: 8, Nesting: 5, Memory: 16 << 20}

// ran compiles p with the handler h, runs h, and returns its output and its error.
func ran(t *testing.T, p *Program, h *Handler) (string, error) {
	t.Helper()
	if p.Limits == (Limits{}) {
		p.Limits = small
	}
	if h.Actions == 0 {
		h.Actions = 1000
	}
	p.Handlers = append(p.Handlers, h)
	code, err := Compile(p)
	require.NoError(t, err)
	var b bytes.Buffer
	err = code.NewThread(&b).Run(h)
	return b.String(), err
}

func text(verb byte, args ...Expr) Stmt {
	return Printf{Format: []Piece{{Verb: verb, Width: -1, Precision: -1}, {Text: " "}}, Args: args}
}

func TestPrograms(t *testing.T) {
	a := &Array{Name: "a", Keys: []Type{String, Int}, Value: Int}
	names := &Array{Name: "names", Keys: []Type{Int}, Value: String}
	few := &Array{Name: "few", Keys: []Type{Int}, Value: Int, Max: 2, Wrap: true}
	full := &Array{Name: "full", Keys: []Type{Int}, Value: Int, Max: 2}
	x, s := Local{0, Int}, Local{1, String}
	deep := &Func{Name: "deep", Result: Int, Locals: []Type{Int}, Params: 1}
	deep.Body = Return{Call{Func: deep, Args: []Expr{Local{0, Int}}, Near: "here"}}
	long := Text("0123456789abcdef")
	set := func(arr *Array, k, v int64) Stmt {
		return Do{Assign{To: Elem{Array: arr, Keys: []Expr{Number(k)}}, Op: Set, X: Number(v)}}
	}
	each := func(arr *Array, sort int, down bool) Stmt {
		return Foreach{Array: arr, Keys: []Expr{x}, Sort: sort, Descending: down, Body: text('d', x)}
	}
	for name, c := range map[string]struct {
		body Stmt
		want string
		err  string
	}{
		"string_is_cut":          {Block{Do{Assign{To: s, Op: Set, X: Binary{Op: Concat, X: long, Y: long}}}, text('s', s)}, "0123456789abcde ", ""},
		"string_of_parts_is_cut": {text('s', Binary{Op: Concat, X: Text("0123456789"), Y: Text("0123456789")}), "012345678901234 ", ""},
		"appended_string_is_cut": {Block{Do{Assign{To: s, Op: Concat, X: long}}, Do{Assign{To: s, Op: Concat, X: Text("zz")}}, text('s', s)}, "0123456789abcde ", ""},
		"division_by_0":          {Do{Binary{Op: Div, X: Number(1), Y: x, Near: "near 1"}}, "", "division by 0 near 1"},
		"smallest_by_minus_1":    {text('d', Binary{Op: Div, X: Number(-1 << 63), Y: Number(-1)}), "-9223372036854775808 ", ""},
		"endless_loop":           {Loop{Body: Block{}}, "", "MAXACTION exceeded"},
		"endless_calls":          {Do{Call{Func: deep, Args: []Expr{Number(1)}, Near: "here"}}, "", "MAXNESTING exceeded here"},
		"caught":                 {Try{Body: Do{Binary{Op: Mod, X: Number(1), Y: Number(0), Near: "n"}}, To: s, Catch: text('s', s)}, "division by 0 ", ""},
		"caught_in_a_loop": {Block{set(few, 1, 1), Foreach{Array: few, Keys: []Expr{x}, Sort: -1,
			Body: Try{Body: Foreach{Array: few, Sort: -1, Body: Fail{X: Text("x")}}, Catch: text('d', x)}}}, "1 ", ""},
		"two_keys": {Block{Do{Assign{To: Elem{Array: a, Keys: []Expr{Text("k"), Number(1)}}, Op: Add, X: Number(5)}},
			text('d', Elem{Array: a, Keys: []Expr{Text("k"), Number(1)}}), text('d', Has{a, []Expr{nil, Number(1)}}), text('d', Has{a, []Expr{Text("q"), nil}})}, "5 1 0 ", ""},
		"key_of_a_key":      {Block{set(few, 7, 9), set(few, 9, 4), text('d', Elem{Array: few, Keys: []Expr{Elem{Array: few, Keys: []Expr{Number(7)}}}})}, "4 ", ""},
		"absent_string":     {text('s', Elem{Array: names, Keys: []Expr{Number(1)}}), " ", ""},
		"oldest_goes":       {Block{set(few, 1, 1), set(few, 2, 2), set(few, 3, 3), each(few, -1, false)}, "2 3 ", ""},
		"full":              {Block{set(full, 1, 1), set(full, 2, 2), set(full, 3, 3)}, "", "Array overflow, check size limit (2)"},
		"sorted_by_value":   {Block{set(few, 1, 5), set(few, 2, 7), each(few, 0, true)}, "2 1 ", ""},
		"sorted_by_key":     {Block{set(few, 2, 5), set(few, 1, 7), each(few, 1, false)}, "1 2 ", ""},
		"any_key_deleted":   {Block{set(few, 2, 5), Delete{Elem{Array: few, Keys: []Expr{nil}}}, text('d', Has{few, []Expr{Number(2)}})}, "0 ", ""},
		"match":             {text('d', Match{X: Text("abc"), Pattern: regexp.MustCompilePOSIX("b+")}), "1 ", ""},
		"old_value":         {Block{text('d', Assign{To: x, Op: Add, X: Number(1), Old: true}), text('d', x)}, "0 1 ", ""},
		"or_else":           {text('d', Binary{Op: OrElse, X: Number(2), Y: Binary{Op: Div, X: Number(1), Y: Number(0)}}), "1 ", ""},
		"no_memory_to_read": {Do{Load{Addr: Number(16), Size: 4, Near: "n"}}, "", "read fault [man error::fault] at 0x10 n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ran(t, &Program{Arrays: []*Array{a, names, few, full}, Funcs: []*Func{deep}}, &Handler{Locals: []Type{Int, String}, Body: c.body})
			assert.Equal(t, c.want, got)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	none := Piece{Width: -1, Precision: -1}
	with := func(verb byte, change func(*Piece)) Piece { p := none; p.Verb = verb; change(&p); return p }
	for want, c := range map[string]struct {
		p    Piece
		args []Expr
	}{
		"   -5|":                {with('d', func(p *Piece) { p.Width = 5 }), []Expr{Number(-5)}},
		"-0005|":                {with('d', func(p *Piece) { p.Width, p.Zero = 5, true }), []Expr{Number(-5)}},
		"0xff|":                 {with('p', func(p *Piece) {}), []Expr{Number(255)}},
		"0XFF  |":               {with('X', func(p *Piece) { p.Alternate, p.Left, p.Width = true, true, 6 }), []Expr{Number(255)}},
		"012|":                  {with('o', func(p *Piece) { p.Alternate = true }), []Expr{Number(10)}},
		"  abc|":                {with('s', func(p *Piece) { p.StarWidth, p.StarPrecision = true, true }), []Expr{Number(5), Number(3), Text("abcdef")}},
		"abc|":                  {with('s', func(p *Piece) { p.StarWidth, p.StarPrecision = true, true }), []Expr{Number(-5), Number(3), Text("abcdef")}},
		`\000|`:                 {with('c', func(p *Piece) { p.Alternate = true }), []Expr{Number(0)}},
		`\t|`:                   {with('c', func(p *Piece) { p.Alternate = true }), []Expr{Number('\t')}},
		"\x02\x01|":             {with('b', func(p *Piece) { p.Width = 2 }), []Expr{Number(0x0102)}},
		"18446744073709551615|": {with('u', func(p *Piece) {}), []Expr{Number(-1)}},
		"  007|":                {with('d', func(p *Piece) { p.Width, p.Precision = 5, 3 }), []Expr{Number(7)}},
	} {
		got, err := ran(t, &Program{}, &Handler{Body: Printf{Format: []Piece{c.p, {Text: "|"}}, Args: c.args}})
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

func TestHistograms(t *testing.T) {
	for name, c := range map[string]struct {
		h      Histogram
		values []int64
		want   string
	}{
		"linear": {Histogram{Kind: Linear, Start: 1, Stop: 3, Interval: 1}, []int64{-100, 1, 2, 3, 100}, `
value |-------------------------------------------------- count
   <1 |@                                                  1
    1 |@                                                  1
    2 |@                                                  1
    3 |@                                                  1
   >3 |@                                                  1

`},
		"logarithmic_with_a_gap": {Histogram{Kind: Logarithmic}, []int64{0, 1, 1000}, `
value |-------------------------------------------------- count
    0 |@                                                  1
    1 |@                                                  1
    2 |                                                   0
    4 |                                                   0
      ~
  128 |                                                   0
  256 |                                                   0
  512 |@                                                  1
 1024 |                                                   0
 2048 |                                                   0

`},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Var{Name: "x", Type: Stat, Histogram: c.h}
			var body Block
			for _, n := range c.values {
				body = append(body, Accumulate{To: Global{v}, X: Number(n)})
			}
			got, err := ran(t, &Program{Vars: []*Var{v}}, &Handler{Body: append(body, PrintHistogram{Of: Global{v}})})
			require.NoError(t, err)
			assert.Equal(t, c.want[1:], got)
		})
	}
}

// The bucket of a value begins at or before it, and the next one after it.
func TestBucketsHoldTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Histogram{Kind: Logarithmic}
		v := rapid.Int64().Draw(t, "v")
		n := h.bucket(v)
		if v >= 0 {
			assert.LessOrEqual(t, h.Value(n), v)
		} else {
			assert.GreaterOrEqual(t, h.Value(n), v)
		}
		start := rapid.Int64Range(-1000, 1000).Draw(t, "start")
		l := Histogram{Kind: Linear, Start: start, Stop: start + rapid.Int64Range(1, 100).Draw(t, "span"), Interval: rapid.Int64Range(1, 10).Draw(t, "interval")}
		if n := l.bucket(v); n > 0 && n < l.Buckets()-1 {
			assert.LessOrEqual(t, l.Value(n), v)
			assert.Greater(t, l.Value(n+1), v)
		}
		above := l
		above.StopIsAbove = true
		assert.Equal(t, min(l.bucket(v), above.Buckets()-1), above.bucket(v), "what is one step above is too high")
		p := Histogram{Kind: Powers, Bits: rapid.IntRange(0, 5).Draw(t, "bits")}
		if n := p.bucket(v); n > 0 {
			assert.LessOrEqual(t, p.Value(n), v)
			assert.Greater(t, uint64(p.Value(n+1)), uint64(v))
		} else {
			assert.Negative(t, v)
		}
	})
}

// A table is a map that remembers in which order its keys came.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arr := &Array{Keys: []Type{String}, Value: Int, Max: 6, Wrap: rapid.Bool().Draw(t, "wrap")}
		tab := newTable(arr, &small)
		want := map[string]int64{}
		var order []string
		drop := func(k string) {
			delete(want, k)
			order = slices.DeleteFunc(order, func(o string) bool { return o == k })
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			name := string(rune('a' + rapid.IntRange(0, 9).Draw(t, "key")))
			key := append([]byte{1, 0}, name...)
			switch rapid.IntRange(0, 2).Draw(t, "do") {
			case 0:
				if i := tab.find(key); i != nobody {
					tab.remove(i)
				}
				drop(name)
			default:
				v := rapid.Int64().Draw(t, "v")
				i := tab.put(key)
				_, known := want[name]
				if i == nobody {
					require.False(t, known)
					require.Len(t, want, 6)
					break
				}
				tab.ints[i] = v
				if !known {
					if len(want) == 6 {
						drop(order[0])
					}
					order = append(order, name)
				}
				want[name] = v
			}
		}
		var got []string
		for i := tab.first; i != nobody; i = tab.nodes[i].next {
			k := string(tab.nth(i, 0))
			got = append(got, k)
			assert.Equal(t, want[k], tab.ints[i])
		}
		assert.Equal(t, strings.Join(order, ""), strings.Join(got, ""))
		assert.Equal(t, len(want), tab.n)
	})
}

func TestTooMuchMemory(t *testing.T) {
	_, err := Compile(&Program{Limits: small, Arrays: []*Array{{Name: "a", Keys: []Type{String}, Value: String, Max: 1 << 20}}})
	var large *ErrTooLarge
	require.ErrorAs(t, err, &large)
}

func TestWrongTypesAreFound(t *testing.T) {
	h := &Handler{Body: Do{Binary{Op: Add, X: Text("a"), Y: Number(1)}}}
	_, err := Compile(&Program{Limits: small, Handlers: []*Handler{h}})
	require.ErrorContains(t, err, "BUG: ")
}

// hit is a handler that counts by a name and a number, as scripts do.
func hit() (*Code, *Handler) {
	counts := &Array{Name: "counts", Keys: []Type{String, Int}, Value: Int}
	name := &Builtin{Name: "name", Result: String, Text: func(_ *Thread, _ *Args, dst []byte) []byte { return append(dst, "cat"...) }}
	h := &Handler{Actions: 1000, Locals: []Type{Int}, Body: Block{
		Do{Assign{To: Local{0, Int}, Op: Set, X: Binary{Op: And, X: Register{5}, Y: Number(7)}}},
		Do{Assign{To: Elem{Array: counts, Keys: []Expr{CallBuiltin{Builtin: name}, Local{0, Int}}}, Op: Add, X: Number(1)}},
	}}
	code, err := Compile(&Program{Limits: Limits{128, 2048, 4, 64 << 20}, Arrays: []*Array{counts}, Handlers: []*Handler{h}})
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return code, h
}

type registers uint64

func (r *registers) Register(int) uint64              { *r++; return uint64(*r) }
func (*registers) Read(uint64, []byte, bool) bool     { return false }
func (r *registers) SetRegister(_ int, v uint64) bool { *r = registers(v); return true }
func (*registers) Write(uint64, []byte, bool) bool    { return false }
func (*registers) Saved(int) int64                    { return 0 }
func (*registers) SetSaved(int, int64)                {}

// memory is a Context with 8 bytes of memory at 0x100, and one register.
type memory struct {
	registers
	bytes [8]byte
}

func (m *memory) Register(int) uint64 { return uint64(m.registers) }
func (m *memory) Read(at uint64, b []byte, _ bool) bool {
	return at >= 0x100 && at+uint64(len(b)) <= 0x108 && copy(b, m.bytes[at-0x100:]) == len(b)
}
func (m *memory) Write(at uint64, b []byte, _ bool) bool {
	return at >= 0x100 && at+uint64(len(b)) <= 0x108 && copy(m.bytes[at-0x100:], b) == len(b)
}

func TestTheTargetIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		to     Expr
		op     Op
		x      int64
		value  int64
		bytes  [8]byte
		reg    uint64
		old    bool
		failed string
	}{
		"whole":                      {to: Memory{Addr: Number(0x102), Size: 2}, op: Set, x: 0x12345, value: 0x12345, bytes: [8]byte{1, 2, 0x45, 0x23, 5, 6, 7, 8}},
		"added":                      {to: Memory{Addr: Number(0x100), Size: 1}, op: Add, x: 3, value: 4, bytes: [8]byte{4, 2, 3, 4, 5, 6, 7, 8}},
		"old_value":                  {to: Memory{Addr: Number(0x100), Size: 1}, op: Add, x: 3, value: 1, old: true, bytes: [8]byte{4, 2, 3, 4, 5, 6, 7, 8}},
		"bits_leave_their_neighbors": {to: Memory{Addr: Number(0x107), Size: 1, Bit: 2, Bits: 3}, op: Set, x: -1, value: -1, bytes: [8]byte{1, 2, 3, 4, 5, 6, 7, 0x1c}},
		"all_bits":                   {to: Memory{Addr: Number(0x100), Size: 8, Bits: 64}, op: Set, x: -1, value: -1, bytes: [8]byte{255, 255, 255, 255, 255, 255, 255, 255}},
		"past_the_end":               {to: Memory{Addr: Number(0x105), Size: 4, Near: "n"}, op: Set, x: 1, failed: "write fault [man error::fault] at 0x105 n", bytes: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}},
		"register":                   {to: Register{5}, op: Add, x: 3, value: 10, reg: 10, bytes: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Var{Name: "v", Type: Int}
			h := &Handler{Actions: 9, Body: Do{Assign{To: Global{v}, Op: Set, X: Assign{To: c.to, Op: c.op, X: Number(c.x), Old: c.old, Near: "n"}}}}
			code, err := Compile(&Program{Limits: small, Vars: []*Var{v}, Handlers: []*Handler{h}})
			require.NoError(t, err)
			m := &memory{registers: 7, bytes: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}
			th := code.NewThread(io.Discard)
			th.Context = m
			if err := th.Run(h); c.failed != "" {
				require.EqualError(t, err, c.failed)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.value, th.Number(v))
			assert.Equal(t, c.bytes, m.bytes)
			assert.Equal(t, max(c.reg, 7), uint64(m.registers))
		})
	}
}

func TestAHitAllocatesNothing(t *testing.T) {
	code, h := hit()
	th := code.NewThread(io.Discard)
	th.Context = new(registers)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if th.Run(h) != nil {
			panic("failed")
		}
	}))
}

func BenchmarkHit(b *testing.B) {
	code, h := hit()
	th := code.NewThread(io.Discard)
	th.Context = new(registers)
	b.ReportAllocs()
	for b.Loop() {
		if err := th.Run(h); err != nil {
			b.Fatal(err)
		}
	}
}
