package begin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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
	largest := script{text: "BEGIN { @a[1] = count(); @a[2] = count(); print(@a, 1); }"}
	require.NotEmpty(t, causeOf(largest, answer{out: "@a[1]: 1\n"}, answer{out: "@a[2]: 1\n"}))
	require.Empty(t, causeOf(largest, answer{out: "@a[1]: 1\n"}, answer{out: "@a[2]: 2\n"}))
	require.Empty(t, causeOf(script{text: "BEGIN { print(@a); }"}, answer{out: "@a[1]: 1\n"}, answer{out: "@a[2]: 1\n"}))
	// The sum of a histogram is its value: of two with the same sum either is the largest.
	histograms := script{text: `BEGIN { @a["x"] = hist(0); @a["y"] = hist(5); print(@a, 1); }`}
	line := func(bucket string) string { return fmt.Sprintf("%-16s 1 |%s|\n\n", bucket, strings.Repeat("@", 52)) }
	require.NotEmpty(t, causeOf(histograms, answer{out: "@a[x]:\n" + line("[0]")}, answer{out: "@a[y]:\n" + line("[4, 8)")}))
	require.Empty(t, causeOf(histograms, answer{out: "@a[x]:\n" + line("[0]")}, answer{out: "@b[y]:\n" + line("[4, 8)")}))
	require.Empty(t, causeOf(script{text: "BEGIN { print(@a); }"}, answer{out: "@a[x]:\n" + line("[0]")}, answer{out: "@a[x]:\n" + line("[4, 8)")}))
	undefined := script{text: `BEGIN { printf("%#o%d\n", 5); }`}
	require.NotEmpty(t, causeOf(undefined, answer{out: "051\n"}, answer{out: "%#o5\n"}))
	require.Empty(t, causeOf(undefined, answer{out: "051\n", said: "WARNING: a\n"}, answer{out: "%#o5\n"}))
	require.Empty(t, causeOf(script{text: `BEGIN { printf("%d%#o\n", 5); }`}, answer{out: "51\n"}, answer{out: "5%#o\n"}))
	for text, has := range map[string]bool{"@a = hist(1); delete(@a);": true, "@a[1] = lhist(1, 2, 3, 4); print(has_key(@a, 1));": true, "@a = hist(1); delete(@b);": false, "@a = count(); delete(@a);": false} {
		require.Equal(t, has, causeOf(script{text: text}, answer{out: "a\n"}, answer{out: "b\n"}) != "", text)
	}
	for text, has := range map[string]bool{
		"BEGIN { $v = ((uint16)5 || 7); print($v); }":                  true,
		"BEGIN { $v = (int32)5; $w = 2; $u = ($v && $w); }":            true,
		"BEGIN { $v = ((uint64)5 || 7); print($v); }":                  false,
		"BEGIN { $v = (5 || (uint8)7); print($v); }":                   false,
		"BEGIN { $v = (uint16)5; print(((uint16)5 || 7)); }":           false,
		"BEGIN { $v = (uint16)5; @a = ((uint8)1 || 7); $w = 1 || 2; }": false,
	} {
		require.Equal(t, has, causeOf(script{text: text}, answer{out: "0\n"}, answer{out: "1\n"}) != "", text)
		require.Empty(t, causeOf(script{text: text}, answer{code: 1}, answer{}), text)
	}
	require.Equal(t, answer{said: "a\n"}, answer{said: "WARNING: Unknown error -1: couldn't set RLIMIT_MEMLOCK for bpftrace.\na\n"}.cleaned())
}

// A tool that is not there is an error, and no answer.
func TestToolThatIsNotThere(t *testing.T) {
	_, err := ask(script{text: "BEGIN { }"}, time.Minute, "/nonexistent/bpftrace")
	require.Error(t, err)
}

// A script that goes on is interrupted, and what it prints then counts; what does not end by that has no answer.
func TestScriptsThatGoOn(t *testing.T) {
	goesOn := func(command string) answer {
		a, err := ask(script{}, time.Millisecond, "/bin/sh", "-c", command)
		require.NoError(t, err)
		return a
	}
	require.Equal(t, answer{silent: true, interrupted: true, code: -1}, goesOn("exec sleep 60"))
	a, err := ask(script{}, time.Minute, "/bin/sh", "-c", "echo ended; exit 3")
	require.NoError(t, err)
	require.Equal(t, answer{out: "ended\n", code: 3}, a)
}
