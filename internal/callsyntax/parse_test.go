package callsyntax

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"no_arguments":        {"schedule()", "schedule()"},
		"spaces_everywhere":   {" f ( 1 ,\t2 ) ; ", "f(1, 2)"},
		"sequence":            {"a(); b(1);c()", "a(); b(1); c()"},
		"trailing_semicolon":  {"a();", "a()"},
		"snprintf":            {`snprintf(buf[64], 64, "%s has %d things", "abc", 42)`, `snprintf(buf[64], 64, "%s has %d things", "abc", 42)`},
		"negative":            {"f(-1, -9223372036854775808)", "f(-1, -9223372036854775808)"},
		"hex":                 {"f(0xFF, 0xffffffffffffffff)", "f(0xff, 0xffffffffffffffff)"},
		"char":                {`f('a', '\n', '\'', '"', '\0')`, `f('a', '\n', '\'', '"', '\000')`},
		"escapes":             {`f("\x41\101\t\"\\")`, `f("AA\t\"\\")`},
		"nul_then_digit":      {`f("\0001")`, `f("\0001")`},
		"invalid_utf8":        {`f("\xff")`, `f("\377")`},
		"text_outside_ascii":  {`f("größe")`, `f("größe")`},
		"bytes":               {"f({01 ff00})", "f({01 ff 00})"},
		"no_bytes":            {"f({})", "f({})"},
		"symbol":              {"f(&jiffies, &init_task+16, &m:x+0x8)", "f(&jiffies, &init_task+0x10, &m:x+0x8)"},
		"function_called_buf": {"buf(buf [ 3 ])", "buf(buf[3])"},
		"compiler_suffix":     {"foo.constprop.0(1)", "foo.constprop.0(1)"},
		"module":              {"demo:leaf(1)", "demo:leaf(1)"},
	} {
		t.Run(name, func(t *testing.T) {
			calls, err := Parse(c.in)
			require.NoError(t, err)
			require.Equal(t, c.want, join(calls))
		})
	}
}

func join(calls []Call) string {
	texts := make([]string, len(calls))
	for i, c := range calls {
		texts[i] = c.String()
	}
	return strings.Join(texts, "; ")
}

func TestParseErrors(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		col  int
		want string
	}{
		"empty":              {"", 1, "expected a function name, found the end of the text"},
		"only_semicolon":     {";", 1, "expected a function name, found ';'"},
		"no_parenthesis":     {"f", 2, "expected '(' after f"},
		"not_closed":         {"f(1", 4, "expected ',' or ')' after argument 1, found the end"},
		"missing_comma":      {"f(1 2)", 5, "expected ',' or ')' after argument 1, found '2'"},
		"missing_argument":   {"f(1,)", 5, "expected an argument"},
		"bare_word":          {"f(jiffies)", 3, `a symbol's address is &jiffies`},
		"bad_number":         {"f(12ab)", 3, `"12ab" is not a number`},
		"too_large":          {"f(1, 0x10000000000000000)", 6, "does not fit in 64 bits"},
		"too_negative":       {"f(-9223372036854775809)", 3, "does not fit in 64 bits"},
		"minus_alone":        {"f(-)", 4, "expected digits"},
		"open_string":        {`f("abc)`, 3, "the closing \" of this literal is missing"},
		"unknown_escape":     {`f("a\q")`, 5, `\q is not an escape of C`},
		"escape_no_byte":     {`f("\777")`, 4, `\777 is not a byte`},
		"two_chars":          {`f('ab')`, 3, "holds one byte, this one 2"},
		"half_byte":          {"f({0})", 4, "two hexadecimal digits"},
		"open_bytes":         {"f({00", 3, "the closing } of these bytes is missing"},
		"buffer_no_size":     {"f(buf[])", 7, "expected the buffer's size"},
		"buffer_not_closed":  {"f(buf[3)", 8, "expected ']'"},
		"buffer_too_big":     {"f(buf[99999999])", 7, "at most 16777216 bytes"},
		"buffer_one_more":    {"f(buf[16777217])", 7, "at most 16777216 bytes"},
		"symbol_no_name":     {"f(&)", 4, "expected a symbol's name after '&'"},
		"symbol_no_offset":   {"f(&a+)", 6, "expected the offset"},
		"module_no_symbol":   {"m:(1)", 3, "after the module's name"},
		"text_after_call":    {"f() g()", 5, "expected ';' or the end"},
		"other_alphabet":     {"f(é)", 3, "found 'é'"},
		"invalid_utf8_input": {"\xff", 1, "found '�'"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.in)
			var e *Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.Contains(t, e.Error(), c.want)
			require.Equal(t, c.col, e.Col)
			require.Equal(t, c.in, e.Text)
		})
	}
}

func TestParseCallRefusesASecond(t *testing.T) {
	_, err := ParseCall("a(); b()")
	require.EqualError(t, err, "column 6: expected one call, found a second one")
	c, err := ParseCall("a();")
	require.NoError(t, err)
	require.Equal(t, "a", c.Name)
}

func TestColumns(t *testing.T) {
	c, err := ParseCall(`  f(1, "two", &three)`)
	require.NoError(t, err)
	require.Equal(t, 3, c.Col)
	require.Equal(t, []int{5, 8, 15}, []int{c.Args[0].Column(), c.Args[1].Column(), c.Args[2].Column()})
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		arg  string
		size int
		want bool
	}{
		{"255", 1, true}, {"256", 1, false}, {"-128", 1, true}, {"-129", 1, false},
		{"-0", 1, true}, {"0xffffffff", 4, true}, {"0x100000000", 4, false},
		{"-2147483648", 4, true}, {"-2147483649", 4, false},
		{"-9223372036854775808", 8, true}, {"0xffffffffffffffff", 8, true}, {"1", 0, true},
	} {
		call, err := ParseCall("f(" + c.arg + ")")
		require.NoError(t, err)
		require.Equal(t, c.want, call.Args[0].(Int).Fits(c.size), "%s in %d", c.arg, c.size)
	}
}

func TestCaretStandsUnderThePlace(t *testing.T) {
	_, err := Parse("größe(1,\n x)")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "größe(1,  x)\n  ^", e.Caret())
	e.Col = 999
	require.Equal(t, "größe(1,  x)\n            ^", e.Caret())
}

func TestCaretCutsALongText(t *testing.T) {
	e := &Error{Text: strings.Repeat("a", 200) + "!" + strings.Repeat("b", 200), Col: 201}
	line, caret, _ := strings.Cut(e.Caret(), "\n")
	require.Equal(t, "…"+strings.Repeat("a", 50)+"!"+strings.Repeat("b", 49)+"…", line)
	require.Equal(t, strings.Repeat(" ", 51)+"^", caret)
}

// Whatever can be written down reads back as itself.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := join(rapid.SliceOfN(genCall(), 1, 4).Draw(t, "calls"))
		calls, err := Parse(want)
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if got := join(calls); got != want {
			t.Fatalf("wrote %s, read %s", want, got)
		}
	})
}

func genCall() *rapid.Generator[Call] {
	return rapid.Custom(func(t *rapid.T) Call {
		return Call{
			Name: rapid.StringMatching(`([a-z_]{1,8}:)?[a-zA-Z_][a-z0-9_.$]{0,12}`).Draw(t, "name"),
			Args: rapid.SliceOfN(genArg(), 0, 8).Draw(t, "args"),
		}
	})
}

func genArg() *rapid.Generator[Arg] {
	return rapid.OneOf(
		rapid.Map(rapid.Uint64(), func(v uint64) Arg { return Int{Value: v} }),
		rapid.Map(rapid.Uint64(), func(v uint64) Arg { return Int{Value: v, Form: Hex} }),
		rapid.Map(rapid.Int64Max(-1), func(v int64) Arg { return Int{Value: uint64(v), Form: Negative} }),
		rapid.Map(rapid.Byte(), func(v byte) Arg { return Int{Value: uint64(v), Form: Char} }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(v []byte) Arg { return String{Text: string(v)} }),
		rapid.Map(rapid.String(), func(v string) Arg { return String{Text: v} }),
		rapid.Map(rapid.IntRange(0, MaxBuffer), func(v int) Arg { return Buf{N: v} }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(v []byte) Arg { return Bytes{Data: v} }),
		rapid.Map(rapid.Uint64(), func(v uint64) Arg { return SymbolRef{Name: "s", Off: v} }),
	)
}

// A string's bytes survive being written and read.
func TestStringBytesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		c, err := ParseCall("f(" + Quote(want) + ")")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Args[0].(String).Text; got != string(want) {
			t.Fatalf("wrote %q, read %q", want, got)
		}
	})
}

// Any text either reads, and then its written form reads as the same, or gives
// one line with a place inside the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "f()", `snprintf(buf[64], 64, "%s has %d", "abc", 42)`, "a(); b(-1, 0x2, 'c')",
		`f("\x00\377\n", {01 ff}, &sym+0x10)`, "m:f(buf[0],)", "f(buf[", `f("\`, "f('", "f({0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		calls, err := Parse(text)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.GreaterOrEqual(t, e.Col, 1)
			require.LessOrEqual(t, e.Col, len(text)+1)
			require.NotContains(t, err.Error(), "\n")
			e.Caret()
			return
		}
		again, err := Parse(join(calls))
		require.NoError(t, err)
		require.Equal(t, join(calls), join(again))
	})
}

func ExampleParse() {
	calls, _ := Parse(`snprintf(buf[64], 64, "%d\n", -1); schedule()`)
	for _, c := range calls {
		fmt.Println(c.Name, len(c.Args), c)
	}
	// Output:
	// snprintf 4 snprintf(buf[64], 64, "%d\n", -1)
	// schedule 0 schedule()
}

func ExampleError_Caret() {
	_, err := Parse(`snprintf(buf[64], 64 "x")`)
	var e *Error
	if errors.As(err, &e) {
		fmt.Println(e)
		fmt.Println(e.Caret())
	}
	// Output:
	// column 22: expected ',' or ')' after argument 2, found '"'
	// snprintf(buf[64], 64 "x")
	//                      ^
}

// A buffer has as many bytes as the bound says, one of a size and one of its bytes.
func TestBuffersThatAreTooLarge(t *testing.T) {
	calls, err := Parse(fmt.Sprintf("f(buf[%d])", MaxBuffer))
	require.NoError(t, err)
	require.Equal(t, MaxBuffer, calls[0].Args[0].(Buf).N)
	_, err = Parse(fmt.Sprintf("f(buf[%d])", MaxBuffer+1))
	require.ErrorContains(t, err, "a buffer has at most 16777216 bytes")
	calls, err = Parse("f({" + strings.Repeat("00", MaxBuffer) + "})")
	require.NoError(t, err)
	require.Len(t, calls[0].Args[0].(Bytes).Data, MaxBuffer)
	_, err = Parse("f({" + strings.Repeat("00", MaxBuffer+1) + "})")
	require.ErrorContains(t, err, "a buffer has at most 16777216 bytes")
	require.Less(t, len(err.Error()), 10_000)
}
