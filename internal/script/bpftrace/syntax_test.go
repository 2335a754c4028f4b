package bpftrace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What bpftrace 0.23.2 says to texts that are no script.
func TestSyntaxErrorsAreTheTools(t *testing.T) {
	for text, want := range map[string]string{
		"BEGIN { print; }":                   "1:9-15: ERROR: syntax error, unexpected ;, expecting ++ or --",
		"BEGIN { $x = str + 1; }":            "1:18-19: ERROR: syntax error, unexpected +, expecting ++ or --",
		"BEGIN { delete @x[1]; }":            "1:16-18: ERROR: syntax error, unexpected map, expecting ++ or --",
		"BEGIN { (1; }":                      `1:9-12: ERROR: syntax error, unexpected ;, expecting ","`,
		"BEGIN { (1, 2 3; }":                 `1:15-16: ERROR: syntax error, unexpected integer, expecting ","`,
		"BEGIN { print(1 2); }":              `1:17-18: ERROR: syntax error, unexpected integer, expecting ) or ","`,
		"BEGIN { let $x y; }":                "1:16-17: ERROR: syntax error, unexpected identifier, expecting ; or =",
		"BEGIN { let $x : uint8* y; }":       "1:26-27: ERROR: syntax error, unexpected identifier, expecting ; or =",
		"BEGIN { return ); }":                "1:16-17: ERROR: syntax error, unexpected ), expecting ; or }",
		"BEGIN { return &$x; }":              "1:16-17: ERROR: syntax error, unexpected &, expecting ; or }",
		"BEGIN { return":                     "1:9-15: ERROR: syntax error, unexpected end of file, expecting ; or }",
		"BEGIN { (uint8 5; }":                "1:16-17: ERROR: syntax error, unexpected integer, expecting ) or *",
		"BEGIN { (struct s* 5; }":            "1:21-22: ERROR: syntax error, unexpected integer, expecting ) or *",
		"BEGIN { sizeof(uint8 5); }":         "1:22-23: ERROR: syntax error, unexpected integer, expecting ) or *",
		"BEGIN { offsetof(struct s, a b); }": "1:31-32: ERROR: syntax error, unexpected identifier, expecting ) or .",
		"BEGIN { if (1) { } else }":          "1:25-26: ERROR: syntax error, unexpected }, expecting { or if",
		"BEGIN { unroll(pid) { } }":          "1:9-19: ERROR: syntax error, unexpected builtin, expecting $# or - or positional parameter or integer",
		"fn f( { }":                          "1:7-8: ERROR: syntax error, unexpected {, expecting ) or variable",
		"fn f($x : int64 $y) : int64 { }":    `1:18-20: ERROR: syntax error, unexpected variable, expecting ) or ","`,
		"BEGIN { $x $#; }":                   "1:12-14: ERROR: syntax error, unexpected $#, expecting ; or }",
	} {
		_, err := Analyze("stdin", text, &Options{}, nil)
		var p *Problems
		require.ErrorAs(t, err, &p, text)
		require.Equal(t, "stdin:"+want, firstLine(p.Text()), text)
	}
}

func firstLine(text string) string {
	for i := range text {
		if text[i] == '\n' {
			return text[:i]
		}
	}
	return text
}

// The tool reads tokens as it needs them: what is wrong after the last one is not said, and what is wrong before is.
func TestTokensAfterTheErrorAreNotRead(t *testing.T) {
	for text, want := range map[string]int{
		"BEGIN { ->print(1); } return; '}": 1, "BEGIN { ' 5 6; }": 2, "BEGIN { 5 6 \"abc": 1, "BEGIN { @x = ' ' 5 6 ' }": 3, "BEGIN { 09 09 + ; 09 }": 3,
	} {
		_, err := Analyze("stdin", text, &Options{}, nil)
		var p *Problems
		require.ErrorAs(t, err, &p, text)
		require.Len(t, p.list, want, "%s\n%s", text, p.Text())
	}
}

// What bpftrace 0.23.2 says to types that do not go together.
func TestTypeErrorsAreTheTools(t *testing.T) {
	for text, want := range map[string][]string{
		"BEGIN { @a = avg(1); @a++; }":              {"The ++ (post) operator can not be used on expressions of type 'avg_t'"},
		`BEGIN { $y = "s"; --$y; }`:                 {"The -- (pre) operator can not be used on expressions of type 'string[2]'"},
		"BEGIN { printf($1); }":                     {"ERROR: Use str($1) to treat $1 as a string\nstdin:1:9-19: ERROR: printf() expects a string literal (int provided)"},
		"BEGIN { reg($1); }":                        {"ERROR: Use str($1) to treat $1 as a string\nstdin:1:9-16: ERROR: reg can not be used with \"BEGIN\" probes"},
		`BEGIN { @m = 5; @m = "a"; print(!comm); }`: {"The ! operator can not be used on expressions of type 'string[16]'", "Type mismatch for @m"},
		"BEGIN { @c = count(); if (!@c) { } }":      {"The ! operator can not be used on expressions of type 'count_t'"},
		"BEGIN { print(!curtask); }":                {"The ! operator can not be used on expressions of type 'struct task_struct *'"},
		"BEGIN { (int8)print(5); }":                 {`Cannot cast from "none" type`, `Cannot cast from "none" to "int8"`},
		"BEGIN { (uint8)func; }":                    {"The func builtin can not be used with 'BEGIN' probes", `Cannot cast from "none" to "uint8"`},
		"BEGIN { @m = 5; @m = comm; }":              {"String size mismatch: 8 < 16. The value may be truncated.", "trying to assign value of type 'string[16]' when map already contains a value of type 'int64'"},
		"BEGIN { $x = $1 + 0; $x = -1; }":           {"1:9-20: ERROR: Type mismatch for $x: trying to assign value of type 'uint64' when variable already contains a value of type 'int64'"},
		"BEGIN { let $x : uint8 = $1; print($x); }": {"1:9-29: ERROR: Type mismatch for $x: trying to assign value of type 'uint8' when variable already contains a value of type 'int64'"},
		"BEGIN { $x = $1 ? $1 : -1; print($x); }":   {"trying to assign value of type 'uint64' when variable already contains a value of type 'int64'"},
		`BEGIN { "abcdef" || $1; }`:                 {"Type mismatch for '||': comparing 'string[7]' with 'uint64'"},
	} {
		_, err := Analyze("stdin", text, &Options{Args: []string{"5"}}, nil)
		var p *Problems
		require.ErrorAs(t, err, &p, text)
		for _, w := range want {
			require.Contains(t, p.Text(), w, text)
		}
	}
}
