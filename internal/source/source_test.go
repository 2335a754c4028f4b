package source

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/ctype"
)

// text has one of each: functions that are inlined and that are not, members of all
// kinds, variables in registers, in memory, computed and dropped.
const text = `
struct inner { int a; unsigned flag : 3; unsigned mode : 5; char name[8]; };
struct outer {
	long id;
	struct inner *in;
	union { int u; short h; };
	struct { const volatile char c; struct inner own[2]; } deep;
	enum { RED = -1, BLUE = 4 } colour;
	int (*hook)(int, char *);
};
typedef struct outer outer_t;
long counter = 77;
volatile int v;
static inline __attribute__((always_inline)) int twice(int x) { v = x; return 2 * x; }
static inline int maybe(int y) {
	static int calls;
	calls++;
	v += y;
	return twice(y) + calls;
}
__attribute__((noipa)) long work(outer_t *o, int n, const char *text) {
	long sum = o->id + n + text[0];
	counter += sum;
	return sum;
}
__attribute__((noipa)) int one(int n) { return twice(n) + 1; }
__attribute__((noipa)) int two(int n) { return one(n) + one(n + v) + twice(n + 7); }
__attribute__((noipa)) long last(void *p) {
	struct outer local = { 1 };
	long r = work(&local, 3, "x");
	return r + work(p, maybe(2), "y");
}
__attribute__((noipa)) int always(int n) {
	static const struct { short s; signed f : 3; unsigned g : 5; int i; char text[4]; struct { unsigned char b; } in; } code = { -2, -3, 9, 77, "abc", { 200 } };
	return n + code.i + code.s;
}
`

// compiled are the files that were made, by the compiler's flags.
var compiled = map[string][]byte{}

// built is text as a file, with the flags of the compiler.
func built(t testing.TB, flags ...string) string {
	key := strings.Join(flags, " ")
	if compiled[key] == nil {
		compiled[key] = compile(t, flags...)
	}
	name := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(name, compiled[key], 0o600))
	return name
}

func compile(t testing.TB, flags ...string) []byte {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not here")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.c"), []byte(text), 0o600))
	cmd := exec.Command(gcc, append([]string{"-O2", "-ffreestanding", "-fcf-protection=none", "-o", "a", "a.c"}, flags...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "zstd") {
		t.Skip("this gcc does not compress with zstd")
	}
	require.NoError(t, err, string(out))
	b, err := os.ReadFile(filepath.Join(dir, "a"))
	require.NoError(t, err)
	return b
}

var linked = []string{"-nostdlib", "-static", "-no-pie", "-Wl,-e,last"}

// forms are the ways in which the same information is written.
var forms = map[string][]string{
	"dwarf_5":             append([]string{"-gdwarf-5"}, linked...),
	"dwarf_4":             append([]string{"-gdwarf-4"}, linked...),
	"dwarf_3_bitfields":   append([]string{"-gdwarf-3", "-gstrict-dwarf"}, linked...),
	"dwarf_64_bit":        append([]string{"-gdwarf-5", "-gdwarf64"}, linked...),
	"zlib":                append([]string{"-gdwarf-5", "-gz=zlib"}, linked...),
	"zlib_gnu":            append([]string{"-gdwarf-5", "-gz=zlib-gnu"}, linked...),
	"zstd":                append([]string{"-gdwarf-5", "-gz=zstd"}, linked...),
	"relocatable":         {"-gdwarf-5", "-c"},
	"relocatable_4":       {"-gdwarf-4", "-c"},
	"no_aranges":          append([]string{"-gdwarf-5", "-gno-as-locview-support"}, linked...),
	"without_debug_frame": append([]string{"-gdwarf-5", "-fasynchronous-unwind-tables"}, linked...),
}

func opened(t testing.TB, flags ...string) *File {
	f, err := Open(built(t, flags...))
	require.NoError(t, err)
	return f
}

func places(t *testing.T, f *File, w Where) (out []*Place) {
	require.NoError(t, f.Places(w, func(p *Place) error {
		out = append(out, p)
		return nil
	}))
	return out
}

func TestTheSameInEveryForm(t *testing.T) {
	for name, flags := range forms {
		t.Run(name, func(t *testing.T) {
			f := opened(t, flags...)
			list := places(t, f, Where{Function: "work"})
			require.Len(t, list, 1)
			at := list[0]
			require.Equal(t, "work", at.Symbol)
			require.Zero(t, at.Offset)
			vars, err := at.Variables()
			require.NoError(t, err)
			var got []string
			for _, v := range vars {
				if v.Parameter {
					got = append(got, v.Type.String()+" "+v.Name+" "+v.Location.String())
				}
			}
			require.Equal(t, []string{"outer_t* o %di", "int n %si", "char* text %dx"}, got)
			for path, want := range map[string]ctype.Member{
				"id":     {Offset: 0},
				"u":      {Offset: 16},
				"h":      {Offset: 16},
				"colour": {Offset: 56},
				"hook":   {Offset: 64},
			} {
				m, ok := vars[0].Type.Real().Target().Real().Member(path)
				require.True(t, ok, path)
				require.Equal(t, want.Offset, m.Offset, path)
			}
			counter, err := at.Variable("counter")
			require.NoError(t, err)
			require.Equal(t, Static, counter.Location.Kind)
			require.True(t, counter.Global)
		})
	}
}

// Rule: a bitfield's bits are counted from the lowest one of its word, whatever the DWARF
// counts from.
func TestBitfields(t *testing.T) {
	for _, form := range []string{"dwarf_5", "dwarf_4", "dwarf_3_bitfields"} {
		f := opened(t, forms[form]...)
		v, err := places(t, f, Where{Function: "work"})[0].Variable("o")
		require.NoError(t, err)
		x, err := v.Value()
		require.NoError(t, err)
		in, err := x.Field("in", true)
		require.NoError(t, err)
		for name, bit := range map[string]int{"flag": 0, "mode": 3} {
			m, err := in.Field(name, true)
			require.NoError(t, err, form)
			require.Equal(t, bit, m.Bit, "%s %s", form, name)
			require.Equal(t, []Read{{Offset: 8}, {Offset: 4}}, m.Reads, "%s %s", form, name)
		}
	}
}

// A structure that is nowhere, for it is always the same bytes, has members that are numbers.
func TestPartsOfAConstant(t *testing.T) {
	for _, form := range []string{"dwarf_5", "dwarf_4", "dwarf_3_bitfields"} {
		f := opened(t, forms[form]...)
		v, err := places(t, f, Where{Function: "always"})[0].Variable("code")
		require.NoError(t, err)
		require.Equal(t, "always the bytes fe ff 4d 00 4d 00 00 00 61 62 63 00 c8 00 00 00", v.Location.String(), form)
		whole, err := v.Value()
		require.NoError(t, err)
		require.Equal(t, Bytes, whole.Kind)
		number := func(x Value, err error) int64 {
			require.NoError(t, err, form)
			require.Equal(t, Constant, x.Kind, form)
			return x.Value
		}
		for name, want := range map[string]int64{"s": -2, "f": -3, "g": 9, "i": 77} {
			require.Equal(t, want, number(whole.Field(name, false)), "%s %s", form, name)
		}
		text, err := whole.Field("text", false)
		require.NoError(t, err)
		require.EqualValues(t, 'c', number(text.Index(2)))
		in, err := whole.Field("in", false)
		require.NoError(t, err)
		require.EqualValues(t, 200, number(in.Field("b", false)))
		for _, outside := range []int64{-1, 8, 1 << 62} {
			_, err = text.Index(outside)
			require.Error(t, err, outside)
		}
	}
}

// Rule: where a copy of a function has no such offset, the other copies of the unit are left out.
func TestAnOffsetOutsideOfACopy(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	var missing *NotFound
	require.ErrorAs(t, f.Places(Where{Function: "twice", Offset: 4000}, func(*Place) error { return nil }), &missing)
	require.ErrorContains(t, missing, "twice+4000 is in no function")
}

func TestPartsOfValues(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	v, err := places(t, f, Where{Function: "work"})[0].Variable("o")
	require.NoError(t, err)
	x, err := v.Value()
	require.NoError(t, err)
	deep, err := x.Field("deep", true)
	require.NoError(t, err)
	own, err := deep.Field("own", false)
	require.NoError(t, err)
	second, err := own.Index(1)
	require.NoError(t, err)
	a, err := second.Field("name", false)
	require.NoError(t, err)
	require.Equal(t, []Read{{Offset: 20 + 4 + 16 + 5}}, a.Reads)
	require.Equal(t, "char[8]", a.Type.String())

	var misuse *Misuse
	_, err = x.Field("id", false)
	require.ErrorAs(t, err, &misuse)
	require.EqualError(t, err, "o is a pointer; write o->id")
	_, err = deep.Field("own", true)
	require.EqualError(t, err, "o->deep is no pointer; write o->deep.own")
	_, err = deep.Index(1)
	require.EqualError(t, err, "o->deep is no array and no pointer")
	_, err = x.Field("nothing", true)
	var missing *NotFound
	require.ErrorAs(t, err, &missing)
	require.EqualError(t, err, "struct outer has no member nothing")
}

func TestEnumerationsAndFunctions(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	v, err := places(t, f, Where{Function: "work"})[0].Variable("o")
	require.NoError(t, err)
	s := v.Type.Real().Target().Real()
	colour, _ := s.Member("colour")
	require.Equal(t, []ctype.Enumerator{{Name: "RED", Value: -1}, {Name: "BLUE", Value: 4}}, colour.Type.Enumerators())
	hook, _ := s.Member("hook")
	fn := hook.Type.Real().Target().Real()
	require.Equal(t, ctype.Function, fn.Kind)
	require.Equal(t, "int", fn.Target().String())
	require.Len(t, fn.Params(), 2)
	require.Equal(t, "char*", fn.Params()[1].Type.String())
}

// Rule: every copy of an inlined function is a place, in the function that has its code.
func TestInlinedCopies(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	var in []string
	for _, p := range places(t, f, Where{Function: "twice"}) {
		require.True(t, p.Inlined)
		require.Equal(t, "twice", p.Function)
		in = append(in, p.Symbol)
	}
	require.ElementsMatch(t, []string{"one", "two", "last"}, in)
}

func TestCallsThatAProbeSees(t *testing.T) {
	for _, form := range []string{"dwarf_5", "dwarf_4"} {
		f := opened(t, forms[form]...)
		calls, err := f.Calls("twice")
		require.NoError(t, err)
		require.Empty(t, calls.Direct)
		require.Len(t, calls.Inlined, 3)
		calls, err = f.Calls("one")
		require.NoError(t, err)
		require.Equal(t, []Call{{"two"}, {"two"}}, calls.Direct)
		require.Empty(t, calls.Inlined)
		_, err = f.Calls("nothing")
		require.EqualError(t, err, "the debugging information has no function nothing")
	}
}

func TestLines(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	l, err := f.Lines(Where{Function: "work"}, 0, -1)
	require.NoError(t, err)
	require.Equal(t, "a.c", filepath.Base(l.Path))
	require.Contains(t, l.Lines, l.Base)
	require.Contains(t, l.Lines, l.Base+3)
	for _, no := range l.Lines {
		list := places(t, f, Where{Function: "work", Line: no - l.Base})
		require.NotEmpty(t, list, no)
		require.Equal(t, no, list[0].Line)
		same := places(t, f, Where{File: "a.c", Line: no})
		require.Contains(t, addrs(same), list[0].Addr)
	}
	_, err = f.Lines(Where{Function: "work"}, 100, -1)
	var missing *NotFound
	require.ErrorAs(t, err, &missing)
}

func addrs(list []*Place) (out []uint64) {
	for _, p := range list {
		out = append(out, p.Addr)
	}
	return out
}

// Rule: a variable that the compiler dropped at a place is reported as dropped, with the ranges
// that keep it.
func TestDroppedHere(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	at := places(t, f, Where{Function: "work"})[0]
	v, err := at.Variable("sum")
	require.NoError(t, err)
	require.Equal(t, Dropped, v.Location.Kind)
	require.NotEmpty(t, v.Readable)
	_, err = v.Value()
	var no *Unreadable
	require.ErrorAs(t, err, &no)
	require.Contains(t, err.Error(), "sum was dropped by the compiler here; it is kept at +")
	later := places(t, f, Where{Function: "work", Offset: v.Readable[0][0]})[0]
	v, err = later.Variable("sum")
	require.NoError(t, err)
	require.NotEqual(t, Dropped, v.Location.Kind)
}

// A variable in the frame is found through the frame's rule, which .debug_frame or
// .eh_frame has.
func TestVariableInTheFrame(t *testing.T) {
	for _, form := range []string{"dwarf_5", "dwarf_4", "relocatable", "without_debug_frame"} {
		f := opened(t, append([]string{"-O0"}, forms[form]...)...)
		l, err := f.Lines(Where{Function: "last"}, 2, -1)
		require.NoError(t, err)
		at := places(t, f, Where{Function: "last", Line: l.Lines[0] - l.Base})[0]
		v, err := at.Variable("local")
		require.NoError(t, err)
		require.Equal(t, Memory, v.Location.Kind, form)
		x, err := v.Value()
		require.NoError(t, err)
		_, err = x.Field("id", false)
		require.NoError(t, err)
	}
}

func TestPatternsOfFunctions(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	var names []string
	for _, p := range places(t, f, Where{Function: "t*o"}) {
		names = append(names, p.Function)
	}
	require.Equal(t, []string{"two"}, names)
}

func TestAddresses(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	s := f.Symbols("work")
	require.Len(t, s, 1)
	p, err := f.At(s[0].Start + 1)
	require.NoError(t, err)
	require.Equal(t, "work", p.Function)
	_, err = f.At(1)
	require.Error(t, err)
}

func TestFilesWithoutDWARF(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(plain, []byte("no ELF"), 0o600))
	for _, name := range []string{plain, dir, "/dev/null", built(t, linked...)} {
		_, err := Open(name)
		require.ErrorIs(t, err, ErrNone, name)
	}
	_, err := Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// ask asks everything of a file that may be damaged.
func ask(f *File) {
	for _, name := range []string{"work", "twice", "maybe", "last", "*"} {
		_ = f.Places(Where{Function: name}, func(p *Place) error {
			vars, err := p.Variables()
			for _, v := range vars {
				if x, err := v.Value(); err == nil {
					_, _ = x.Field("id", true)
					_, _ = x.Index(1)
				}
				_ = v.Type.String()
			}
			_, _ = p.Globals()
			return err
		})
		_, _ = f.Lines(Where{Function: name}, 0, -1)
		_, _ = f.Calls(name)
	}
	_ = f.Places(Where{File: "a.c", Line: 20}, func(*Place) error { return nil })
	_ = f.Statements(Statements{Function: "*", File: "a.c"}, func(p *Place) error {
		_, err := p.Visible()
		return err
	})
	_, _ = f.FunctionAt(0x401000)
	_, _ = f.At(0x401010)
}

// Rule: damage ends in one of three errors, never in a panic.
func TestCutOff(t *testing.T) {
	b, err := os.ReadFile(built(t, forms["dwarf_5"]...))
	require.NoError(t, err)
	for n := 0; n < len(b); n += 97 {
		f, err := read(strings.NewReader(string(b[:n])), int64(n))
		if err != nil {
			require.True(t, errors.Is(err, ErrNone) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrTooMuch), "%d: %v", n, err)
			continue
		}
		ask(f)
	}
}

func FuzzDWARF(f *testing.F) {
	f.Add([]byte("\x7fELF"))
	if _, err := exec.LookPath("gcc"); err == nil {
		for _, form := range []string{"dwarf_5", "dwarf_4", "relocatable"} {
			b, err := os.ReadFile(built(f, forms[form]...))
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := read(strings.NewReader(string(b)), int64(len(b)))
		if err == nil {
			ask(file)
		}
	})
}
