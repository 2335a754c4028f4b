package booted

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// TestLinesThatSayReady: each line is matched alone, in whatever pieces it comes. The lines of stdout and stderr do not mix.
func TestLinesThatSayReady(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		pieces []string
		yes    bool
	}{
		"line":               {"^begun$", []string{"begun\n"}, true},
		"line_in_pieces":     {"^begun$", []string{"x\nbe", "gun\nmore"}, true},
		"line_without_end":   {"begun", []string{"be", "gun"}, true},
		"one_of_several":     {"^b$", []string{"a\nb\nc\n"}, true},
		"over_two_lines":     {"a.*b", []string{"a\nb\n"}, false},
		"after_a_long_line":  {"^end$", []string{strings.Repeat("x", 3*bounded.ReadyLine), "\nend\n"}, true},
		"end_of_a_long_line": {"xend$", []string{strings.Repeat("x", 3*bounded.ReadyLine), "end"}, true},
		"nothing":            {"x", []string{"", "\n\n"}, false},
	} {
		r := &readiness{}
		for _, p := range c.pieces {
			r.sees(regexp.MustCompile(c.want), 1, []byte(p))
			require.LessOrEqual(t, len(r.lines[0]), bounded.ReadyLine, name)
		}
		require.Equal(t, c.yes, r.yes, name)
	}
	r := &readiness{}
	r.sees(regexp.MustCompile("ab"), 1, []byte("a"))
	r.sees(regexp.MustCompile("ab"), 2, []byte("b"))
	require.False(t, r.yes)
}
