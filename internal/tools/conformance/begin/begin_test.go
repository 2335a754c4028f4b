package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/bpftrace"
)

// What is drawn has a right grammar but for what is drawn wrong on purpose, and the seed decides it.
func TestScriptsAreRead(t *testing.T) {
	accepted, unread := 0, 0
	for i := range uint64(400) {
		s := drawScript(rand.New(rand.NewPCG(7, i)))
		require.Equal(t, s, drawScript(rand.New(rand.NewPCG(7, i))))
		_, err := bpftrace.Analyze("stdin", s.text, &bpftrace.Options{Args: s.args}, nil)
		var p *bpftrace.Problems
		if err == nil {
			accepted++
		} else if require.ErrorAs(t, err, &p); strings.Contains(p.Text(), "syntax error") {
			unread++
		}
	}
	require.Less(t, unread, 20)
	require.Greater(t, accepted, 100, "both what is accepted and what is refused has to be drawn")
	require.Less(t, accepted, 390)
}

// A difference has a cause only for what the tool, or this program, says of it.
func TestCauses(t *testing.T) {
	ours := answer{code: 0, out: "1\n"}
	require.Empty(t, causeOf(script{}, answer{code: 1, said: "stdin:1:1-2: ERROR: no\n"}, ours))
	require.NotEmpty(t, causeOf(script{}, answer{code: 139}, ours))
	require.NotEmpty(t, causeOf(script{}, answer{code: 1, said: "ERROR: Error loading BPF program for BEGIN_1.\n"}, ours))
	require.Equal(t, answer{said: "a\n"}, answer{said: "WARNING: Unknown error -1: couldn't set RLIMIT_MEMLOCK for bpftrace.\na\n"}.cleaned())
}

// A tool that is not there is an error, and no answer.
func TestToolThatIsNotThere(t *testing.T) {
	_, err := ask(script{text: "BEGIN { }"}, "/nonexistent/bpftrace")
	require.Error(t, err)
}
