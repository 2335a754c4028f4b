package filter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
)

// fields are the fields of an event with an argument of each sort.
var fields = &event.Format{
	Common: event.Common(),
	Fields: []event.Field{
		{Name: "__probe_ip", Type: "unsigned long", Offset: 8, Size: 8},
		{Name: "u8", Type: "u8", Offset: 16, Size: 1},
		{Name: "s8", Type: "s8", Offset: 17, Size: 1, Signed: true},
		{Name: "u16", Type: "u16", Offset: 18, Size: 2},
		{Name: "s16", Type: "s16", Offset: 20, Size: 2, Signed: true},
		{Name: "u32", Type: "u32", Offset: 22, Size: 4},
		{Name: "s32", Type: "s32", Offset: 26, Size: 4, Signed: true},
		{Name: "u64", Type: "u64", Offset: 30, Size: 8},
		{Name: "s64", Type: "s64", Offset: 38, Size: 8, Signed: true},
		{Name: "str", Type: "__data_loc char[]", Offset: 46, Size: 4, Signed: true, Kind: event.KindString},
		{Name: "strs", Type: "__data_loc char[][2]", Offset: 50, Size: 8, Signed: true, Kind: event.KindStringArray, Len: 2},
		{Name: "arr", Type: "u64[3]", Offset: 58, Size: 24, Kind: event.KindArray, Len: 3},
	},
}

const fixed = 82

// record has the number in every numeric field, and the text in the strings.
func record(v uint64, text string) []byte {
	rec := make([]byte, fixed, fixed+len(text)+1)
	binary.LittleEndian.PutUint32(rec[event.OffPID:], 77)
	for _, f := range fields.Fields {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		if f.Kind == event.KindPlain {
			copy(rec[f.Offset:f.Offset+f.Size], b[:])
		}
	}
	binary.LittleEndian.PutUint32(rec[46:], event.Loc(fixed, len(text)+1))
	binary.LittleEndian.PutUint32(rec[50:], event.Loc(fixed, len(text)+1))
	return append(append(rec, text...), 0)
}

func matches(t require.TestingT, text string, rec []byte, c Current) bool {
	f, err := Compile(text, fields)
	require.NoError(t, err)
	require.Equal(t, text, f.String())
	return f.Match(rec, c)
}

func TestNumbers(t *testing.T) {
	minus := ^uint64(0)
	for _, c := range []struct {
		text  string
		value uint64
		want  bool
	}{
		{"u8 == 255", minus, true},
		{"u8 > 254", minus, true},
		{"s8 == -1", minus, true},
		{"s8 < 0", minus, true},
		{"s8 < -1", minus, false},
		{"s8 <= -1", minus, true},
		{"u16 >= 0xffff", minus, true},
		{"s16 >= 0", minus, false},
		{"u32 != 4294967295", minus, false},
		{"s32==-1", minus, true},
		{"u64 == 18446744073709551615", minus, true},
		{"s64 == -1", minus, true},
		{"u64 == 0xffffffffffffffff", minus, true},
		{"u32 & 2", 6, true},
		{"u32 & 1", 6, false},
		{"u8 == 010", 8, true},
		{"u8 == 0x100", 0, true},
		{"common_pid == 77", 0, true},
		{"__probe_ip == 5", 5, true},
		{"arr == 0", 0, false},
		{"arr != 0", 0, false},
	} {
		require.Equal(t, c.want, matches(t, c.text, record(c.value, ""), Current{}), c.text)
	}
}

func TestStrings(t *testing.T) {
	for _, c := range []struct {
		text, value string
		want        bool
	}{
		{`str == "abc"`, "abc", true},
		{`str == 'abc'`, "abc", true},
		{`str == "ab"`, "abc", false},
		{`str == "abcd"`, "abc", false},
		{`str != "ab"`, "abc", true},
		{`str ~ "abc"`, "abc", true},
		{`str ~ "a*"`, "abc", true},
		{`str ~ "b*"`, "abc", false},
		{`str ~ "*c"`, "abc", true},
		{`str ~ "*b"`, "abc", false},
		{`str ~ "*b*"`, "abc", true},
		{`str ~ "*x*"`, "abc", false},
		{`str ~ "*"`, "abc", true},
		{`str ~ "a*c"`, "abbbc", true},
		{`str ~ "a?c"`, "abc", true},
		{`str ~ "a[b-d]c"`, "acc", true},
		{`str ~ "a[!b-d]c"`, "acc", false},
		{`str ~ "a[]x]c"`, "a]c", true},
		{`str ~ "a[bc"`, "a[bc", true},
		{`str ~ "a\*c"`, "a*c", true},
		{`str ~ "a\*c"`, "abc", false},
		{`str ~ "!a*"`, "abc", false},
		{`str ~ "!b*"`, "abc", true},
		{`str ~ "1*"`, "12", false}, // a digit in front: no glob
		{`str.ustring == "abc"`, "abc", true},
		{`strs == "abc"`, "abc", true},
	} {
		require.Equal(t, c.want, matches(t, c.text, record(0, c.value), Current{}), "%s on %q", c.text, c.value)
	}
}

func TestWhatRunsNow(t *testing.T) {
	now := Current{CPU: 1, Comm: "bash"}
	for text, want := range map[string]bool{
		"CPU == 1": true, "cpu != 1": false, "common_cpu > 0": true, "cpu & 1": false,
		"cpu <= -1":      false,
		`comm == "bash"`: true, `COMM == "sh"`: false, `comm ~ "ba*"`: true, `comm ~ "*as*"`: true,
		`comm ~ "*sh"`: false, // compared at the end of the 16 bytes
	} {
		require.Equal(t, want, matches(t, text, record(0, ""), now), text)
	}
	require.True(t, matches(t, `comm ~ "*def"`, record(0, ""), Current{Comm: "0123456789abdef"}))
}

func TestLogic(t *testing.T) {
	for text, want := range map[string]bool{
		"u8 == 1 && u16 == 1":             true,
		"u8 == 1 && u16 == 2":             false,
		"u8 == 2 || u16 == 1":             true,
		"u8 == 1 || u8 == 2 && u8 == 3":   true,
		"(u8 == 1 || u8 == 2) && u8 == 3": false,
		"!u8 == 2":                        true,
		"!(u8 == 1 && u16 == 2)":          true,
		"!!u8 == 1":                       true,
		"! ( ! ( u8 == 1 ) || u16 == 2 )": true,
		" u8==1&&u16==1 ":                 true,
		"u8 == 1 &&":                      true,
		"u8 == 2 ||":                      false,
		"((u8 == 1))":                     true,
		`str == "a b ) && (" || u8 == 2`:  true,
		"u8 == 1 && u8 == 1 ||":           true,
	} {
		require.Equal(t, want, matches(t, text, record(1, "a b ) && ("), Current{}), text)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		text, msg string
		pos       int
		errno     errno.Errno
	}{
		"field_not_found":       {"nosuch == 1", "Field not found", 7, errno.EINVAL},
		"invalid_operator":      {"u8 = 1", "Invalid operator", 4, errno.EINVAL},
		"no_operator":           {"u8", "Invalid operator", 3, errno.EINVAL},
		"string_for_number":     {`u8 == "a"`, "Expecting numeric field", 7, errno.EINVAL},
		"number_for_string":     {"str == 1", "Expecting string field", 8, errno.EINVAL},
		"order_of_strings":      {`str > "a"`, "Illegal operation for field type", 7, errno.EINVAL},
		"glob_of_number":        {"u8 ~ 1", "Illegal operation for field type", 6, errno.EINVAL},
		"bad_number":            {"u8 == 12ab", "Illegal integer value", 7, errno.EINVAL},
		"negative_for_unsigned": {"u8 == -1", "Illegal integer value", 7, errno.EINVAL},
		"too_big":               {"s64 == 9223372036854775808", "Illegal integer value", 8, errno.EINVAL},
		"bad_octal":             {"u8 == 09", "Illegal integer value", 7, errno.EINVAL},
		"number_too_long":       {"u8 == 012345678901234567890123", "Operand too long", 31, errno.EINVAL},
		"string_too_long":       {`str == "` + strings.Repeat("a", 256) + `"`, "Operand too long", 265, errno.EINVAL},
		"no_quotes":             {"str == abc", "Invalid value (did you forget quotes)?", 8, errno.EINVAL},
		"no_value":              {"u8 ==", "Invalid value (did you forget quotes)?", 6, errno.EINVAL},
		"two_predicates":        {"u8 == 1 u16 == 1", "Too many terms in predicate expression", 8, errno.EPERM},
		"single_and":            {"u8 == 1 & u16 == 1", "Too many terms in predicate expression", 8, errno.EPERM},
		"close_too_many":        {"u8 == 1)", "Too few '('", 7, errno.EPERM},
		"open_too_many":         {"(u8 == 1", "Too many '('", 0, errno.ENOENT},
		"inner_open":            {"(u8 == 1 && (u8 == 2)", "Too many '('", 0, errno.ENOENT},
		"second_open":           {"(u8 == 1) && (u8 == 2", "Too many '('", 13, errno.ENOENT},
		"quote":                 {`str == "abc`, "Missing matching quote", 7, errno.ESRCH},
		"only_not":              {"!", "No filter found", 1, errno.EINVAL},
		"empty":                 {"", "", 0, errno.EINVAL},
		"empty_parentheses":     {"()", "", 0, errno.EINVAL},
		"no_field":              {"== 1", "", 0, errno.EPERM},
		"operator_first":        {"&& u8 == 1", "", 0, errno.EPERM},
		"and_after_or":          {"u8 == 1 || u8 == 2 &&", "", 0, errno.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(c.text, fields)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, Error{Text: c.text, Msg: c.msg, Pos: c.pos, Errno: c.errno}, *e)
			require.ErrorIs(t, err, c.errno)
			require.Contains(t, err.Error(), "filter ")
		})
	}
}

func TestReadBack(t *testing.T) {
	for text, want := range map[string]string{
		"nosuch == 1": "nosuch == 1\n       ^\nparse_error: Field not found\n",
		"(u8 == 1":    "(u8 == 1\n^\nparse_error: Too many '('\n",
		"u8":          "u8\n  ^\nparse_error: Invalid operator\n",
		"== 1":        "== 1\nError: (0)\n",
	} {
		_, err := Compile(text, fields)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, want, e.ReadBack())
	}
	group := (&Error{Text: "a == 1", Msg: msgFieldNotFound, Pos: 2, Errno: errno.EINVAL}).ForGroup()
	require.Equal(t, "a == 1\n^\nparse_error: Couldn't find or set field in one of a subsystem's events\n", group.ReadBack())
}

func TestNilFilterAndShortRecords(t *testing.T) {
	var f *Filter
	require.True(t, f.Match(nil, Current{}))
	require.False(t, matches(t, "!u64 == 1", record(1, "")[:20], Current{}))
	rec := record(1, "")
	binary.LittleEndian.PutUint32(rec[46:], event.Loc(0xffff, 9))
	require.False(t, matches(t, `str == "a"`, rec, Current{}))
}

func TestMatchDoesNotAllocate(t *testing.T) {
	f, err := Compile(`u8 == 1 && (str ~ "a*c" || comm == "bash") && !u64 & 2`, fields)
	require.NoError(t, err)
	rec := record(1, "abbbc")
	require.True(t, f.Match(rec, Current{}))
	require.Zero(t, testing.AllocsPerRun(100, func() { f.Match(rec, Current{}) }))
}

// Random expressions have the same value as in Go.
func TestAgainstGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, 3).Draw(t, "v")
		var expr func(depth int) (string, bool)
		expr = func(depth int) (string, bool) {
			kind := rapid.IntRange(0, 4).Draw(t, "kind")
			if depth == 0 {
				kind = 0
			}
			switch kind {
			case 1, 2: // the left side of && binds tighter: put || in parentheses
				a, av := expr(depth - 1)
				b, bv := expr(depth - 1)
				if kind == 1 {
					return "(" + a + ") && (" + b + ")", av && bv
				}
				return a + " || " + b, av || bv
			case 3:
				a, av := expr(depth - 1)
				return "!(" + a + ")", !av
			case 4:
				a, av := expr(depth - 1)
				return " ( " + a + ")", av
			}
			n := rapid.Uint64Range(0, 3).Draw(t, "n")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				return fmt.Sprintf("u32 == %d", n), v == n
			case 1:
				return fmt.Sprintf("s16 != %d", n), v != n
			case 2:
				return fmt.Sprintf("u8 & %d", n), v&n != 0
			}
			return fmt.Sprintf("s64 >= %d", n), v >= n
		}
		text, want := expr(4)
		require.Equal(t, want, matches(t, text, record(v, ""), Current{}), text)
	})
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"u8 == 1 && (u16 > 2 || !s32 < -1)", `str ~ "a[b-c]*\?"`, `comm == 'x' && cpu == 0`, "((((", "! !(", "a||b&&",
		`str ~ "*"`, "u8 == 0x", "\xa0u8==1", `str.ustring != ""`,
	} {
		f.Add(s, []byte("a"))
	}
	f.Fuzz(func(t *testing.T, text string, tail []byte) {
		c, err := Compile(text, fields)
		if err != nil {
			var e *Error
			require.True(t, errors.As(err, &e))
			require.NotZero(t, e.Errno)
			_ = e.ReadBack()
			return
		}
		c.Match(tail, Current{})
		c.Match(append(make([]byte, fixed), tail...), Current{CPU: 1, Comm: string(tail)})
	})
}

func BenchmarkMatch(b *testing.B) {
	f, err := Compile(`u32 > 0 && str ~ "*b*"`, fields)
	require.NoError(b, err)
	rec := record(1, "abc")
	b.ReportAllocs()
	for b.Loop() {
		f.Match(rec, Current{})
	}
}

func Example() {
	f, err := Compile(`u32 >= 10 && comm ~ "ba*"`, fields)
	if err != nil {
		panic(err)
	}
	fmt.Println(f.Match(record(12, ""), Current{Comm: "bash"}), f.Match(record(9, ""), Current{Comm: "bash"}))

	_, err = Compile("u33 == 1", fields)
	var e *Error
	errors.As(err, &e)
	fmt.Print(e.ReadBack())
	// Output:
	// true false
	// u33 == 1
	//     ^
	// parse_error: Field not found
}

// What Debian's 6.1 says of filters that end too early; 5.10 takes them.
func TestOpenEnds(t *testing.T) {
	strict := *fields
	strict.Filters = &event.Filters{RefuseOpenEnd: true}
	for _, text := range []string{"u8 == 1 &&", "u8 == 1 ||", "(u8 == 1) &&", "u8 == 1 && !", "u8 == 1 && !!", "u8 == 1 || u8 == 2 && !"} {
		_, err := Compile(text, &strict)
		var e *Error
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, Error{Text: text, Msg: "Meaningless filter expression", Pos: len(text), Errno: errno.EINVAL}, *e)
	}
	_, err := Compile("u8 == 1 &&", fields)
	require.NoError(t, err)
	_, err = Compile("!", &strict)
	require.ErrorContains(t, err, "No filter found")
	_, err = Compile("u8 == 1 && !(", &strict)
	require.ErrorContains(t, err, "Too many '('")
}
