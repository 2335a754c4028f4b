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
