package bpftrace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// looped are the parts of a type that leads to itself.
type looped struct {
	to      *ctype.Type
	members []ctype.Member
}

func (l *looped) Target() *ctype.Type             { return l.to }
func (l *looped) Members() []ctype.Member         { return l.members }
func (l *looped) Enumerators() []ctype.Enumerator { return nil }
func (l *looped) Params() []ctype.Param           { return nil }

// loop is a type of a kind that leads to itself, with so many members.
func loop(kind ctype.Kind, size int64, members int) *ctype.Type {
	l := &looped{}
	t := &ctype.Type{Kind: kind, Name: "s", Bytes: size, Count: 1 << 31, Parts: l}
	l.to = t
	for i := range members {
		l.members = append(l.members, ctype.Member{Name: fmt.Sprint("m", i), Type: t})
	}
	return t
}

// TestValuesThatTakeForEver prints values of types that lead to themselves, and compares and names these.
func TestValuesThatTakeForEver(t *testing.T) {
	bytes := make([]byte, 4096)
	for name, c := range map[string]*ctype.Type{
		"structure":         loop(ctype.Struct, 8, 2),
		"structure_of_30":   loop(ctype.Struct, 8, 30),
		"union":             loop(ctype.Union, 8, 2),
		"65535_members":     loop(ctype.Struct, 8, 65535),
		"of_no_size":        loop(ctype.Struct, 0, 100_000),
		"array_of_itself":   loop(ctype.Array, 0, 0),
		"array_of_2^31":     ctype.ArrayOf(loop(ctype.Struct, 0, 2), 1<<31),
		"array_of_integers": ctype.ArrayOf(&ctype.Type{Kind: ctype.Base, Bytes: 1}, 1<<31),
		"pointer":           loop(ctype.Pointer, 8, 0),
		"typedef":           loop(ctype.Typedef, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			typ := fromC(c)
			text := (&Script{}).render(nil, typ, 0, bytes, false, 1)
			require.Less(t, len(text), 64*bounded.ValueParts)
			require.True(t, typ.same(fromC(c)) && typ.equal(fromC(c)))
			require.Less(t, len(typ.String()), 64*bounded.TypeText)
			typ.widen(fromC(c))
			typ.fits(fromC(c))
			typ.room()
		})
	}
}

// TestTuplesThatDouble: a script of a few lines makes types of any size. The tool refuses them when it compiles.
func TestTuplesThatDouble(t *testing.T) {
	doubled := func(first, format string, n int) string {
		text := "BEGIN { $v0 = " + first + ";"
		for i := 1; i <= n; i++ {
			text += fmt.Sprintf(" $v%d = "+format+";", i, i-1)
		}
		return text + " }"
	}
	for name, script := range map[string]string{
		"pairs":          doubled("(1, 1)", "($v%[2]d, $v%[2]d)", 30),
		"threes":         doubled("(1, 2, 3)", "($v%[2]d, $v%[2]d, $v%[2]d)", 20),
		"strings":        doubled(`("a", "b")`, "($v%[2]d, $v%[2]d)", 30),
		"in_brackets":    doubled("(1, 1)", "(($v%[2]d, $v%[2]d), ($v%[2]d, $v%[2]d))", 15),
		"with_ternaries": doubled("(1, 1)", "($v%[2]d, (1 ? $v%[2]d : $v%[2]d))", 30),
		"by_a_map": "BEGIN { @a = (1, 1); @b = (@a, @a); @c = (@b, @b); @d = (@c, @c); @e = (@d, @d); @f = (@e, @e); @g = (@f, @f); @h = (@g, @g); " +
			"@i = (@h, @h, @h, @h); @j = (@i, @i, @i, @i); @k = (@j, @j, @j, @j); @l = (@k, @k, @k, @k); }",
		"as_a_key": doubled("(1, 1)", "($v%[2]d, $v%[2]d)", 30) + " END { @[(1, 2)] = 1; }",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Analyze("stdin", script, &Options{}, nil)
			require.ErrorContains(t, err, "BPF stack limit is exceeded")
		})
	}
	text := doubled("(1, 1)", "($v%[2]d, $v%[2]d)", 12) // as many as the tool takes
	_, err := Analyze("stdin", text, &Options{}, nil)
	require.NoError(t, err)
}

// TestScriptsThatTakeForEver: long and deep scripts are refused, or read, within the bounds.
func TestScriptsThatTakeForEver(t *testing.T) {
	many := strings.Repeat
	for name, script := range map[string]string{
		"casts":             "BEGIN { $x = " + many("(uint64)", 5000) + "1; }",
		"brackets":          "BEGIN { $x = " + many("(", 5000) + "1" + many(")", 5000) + "; }",
		"terms":             "BEGIN { $x = 1" + many("+1", 100_000) + "; }",
		"dereferences":      "BEGIN { $x = " + many("*", 5000) + "1; }",
		"minus":             "BEGIN { $x = " + many("-", 5001) + "1; }",
		"not":               "BEGIN { $x = " + many("!", 5000) + "1; }",
		"ternaries":         "BEGIN { $x = " + many("1 ? 1 : ", 5000) + "1; }",
		"blocks":            "BEGIN { " + many("if (1) { ", 5000) + many("}", 5000) + " }",
		"else":              "BEGIN { if (1) { } " + many("else if (1) { } ", 5000) + " }",
		"arrays":            "BEGIN { $x = 1" + many("[0]", 5000) + "; }",
		"members":           "BEGIN { $x = 1" + many(".a", 5000) + "; }",
		"unroll_in_unroll":  "BEGIN { unroll(100) { unroll(100) { unroll(100) { unroll(100) { @x = 1; } } } } }",
		"printf_arguments":  "BEGIN { printf(\"" + many("%d", 20_000) + "\"" + many(",1", 20_000) + "); }",
		"map_of_map_of_map": "BEGIN { @a[1] = 1; @b[" + many("@a[", 2000) + "1" + many("]", 2000) + "] = 1; }",
		"keys":              "BEGIN { @a[1" + many(",1", 50_000) + "] = 1; }",
		"tuple":             "BEGIN { $x = (1" + many(",1", 50_000) + "); }",
		"strings":           "BEGIN { $x = \"" + many("a", 1<<19) + "\"; }",
		"stars":             "BEGIN { $x = (uint8 " + many("*", 100_000) + ")1; }",
		"predicates":        "BEGIN /1" + many("&&1", 50_000) + "/ { }",
		"macros":            "#define A B B\n#define B C C\n#define C D D\n#define D E E\n#define E F F\n#define F A A\nBEGIN { $x = A; }",
		"points":            many("BEGIN,", 1_000) + "BEGIN { }",
		"statements":        "BEGIN { " + many("$x = 1; ", 50_000) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Analyze("stdin", script, &Options{}, nil)
			if err != nil {
				require.NotEmpty(t, err.Error())
			}
		})
	}
}

// TestMessagesAreBounded: each of many errors shows a line that is long.
func TestMessagesAreBounded(t *testing.T) {
	for _, script := range []string{
		"BEGIN { $x = comm" + strings.Repeat("==comm", 9000) + "; }",
		"BEGIN { " + strings.Repeat("$x = nosuch; ", 5000) + "}",
		"BEGIN { " + strings.Repeat("print(nosuch()); ", 5000) + "}",
		strings.Repeat("nosuch:a,", 5000) + "BEGIN { }",
		"BEGIN { print((" + strings.Repeat("\"a\" + 1, ", 5000) + "1)); }",
	} {
		_, err := Analyze("stdin", script, &Options{}, nil)
		require.Error(t, err)
		require.Less(t, len(err.Error()), bounded.ProblemText+4*len(script)+1000)
	}
}
