package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func digest(t *testing.T, lines ...string) (*summary, string) {
	t.Helper()
	s := newSummary()
	var out strings.Builder
	require.NoError(t, s.read(strings.NewReader(strings.Join(lines, "\n")), &out))
	return s, out.String()
}

func TestCountsLeavesOnly(t *testing.T) {
	s, out := digest(t,
		`{"Action":"pass","Package":"m/a","Test":"TestX/one"}`,
		`{"Action":"skip","Package":"m/a","Test":"TestX/two"}`,
		`{"Action":"pass","Package":"m/a","Test":"TestX"}`,
		`{"Action":"pass","Package":"m/a","Elapsed":1.5}`)
	require.Equal(t, map[string]result{"m/a.TestX/one": passed, "m/a.TestX/two": skipped}, s.counted())
	require.Contains(t, out, "ok    m/a")
	require.False(t, s.failed())
}

func TestParentFailingByItselfCounts(t *testing.T) {
	s, _ := digest(t,
		`{"Action":"pass","Package":"m/a","Test":"TestX/one"}`,
		`{"Action":"fail","Package":"m/a","Test":"TestX"}`,
		`{"Action":"fail","Package":"m/a"}`)
	require.Equal(t, map[string]result{"m/a.TestX/one": passed, "m/a.TestX": failed}, s.counted())
}

// A test that runs on each engine fails if it fails on one, and counts as passed if it runs on one.
func TestResultsOfSeveralRunsAreJoined(t *testing.T) {
	for want, runs := range map[result][]string{
		failed:  {"fail", "pass"},
		passed:  {"pass", "skip"},
		skipped: {"skip", "skip"},
	} {
		for _, order := range [][]string{runs, {runs[1], runs[0]}} {
			s, _ := digest(t,
				`{"Action":"`+order[0]+`","Package":"m/a","Test":"TestX"}`,
				`{"Action":"`+order[1]+`","Package":"m/a","Test":"TestX"}`)
			require.Equal(t, map[string]result{"m/a.TestX": want}, s.counted(), order)
		}
	}
}

func TestTheLongestTestsAreNamed(t *testing.T) {
	s, _ := digest(t,
		`{"Action":"pass","Package":"m/a","Test":"TestX/one","Elapsed":8}`,
		`{"Action":"pass","Package":"m/a","Test":"TestX","Elapsed":9}`,
		`{"Action":"pass","Package":"m/a","Test":"TestY","Elapsed":0.5}`,
		`{"Action":"pass","Package":"m/b","Test":"TestZ","Elapsed":10.25}`,
		`{"Action":"pass","Package":"m/b","Elapsed":11}`)
	for n, want := range map[int]string{
		0: "",
		2: "   10.2 s  m/b.TestZ\n    9.0 s  m/a.TestX\n",
		9: "   10.2 s  m/b.TestZ\n    9.0 s  m/a.TestX\n    0.5 s  m/a.TestY\n",
	} {
		var out strings.Builder
		s.printLongest(&out, n)
		require.Equal(t, want, out.String())
	}
}

func TestSlashesInASubtestsName(t *testing.T) {
	s, _ := digest(t,
		`{"Action":"fail","Package":"m/a","Test":"TestX/6.1/false"}`,
		`{"Action":"fail","Package":"m/a","Test":"TestX"}`,
		`{"Action":"fail","Package":"m/a"}`)
	require.Equal(t, map[string]result{"m/a.TestX/6.1/false": failed}, s.counted())
}

func TestPackageFailingWithoutATestCounts(t *testing.T) {
	s, out := digest(t,
		`{"Action":"build-output","ImportPath":"m.x/b [m.x/b.test]","Output":"b.go:1:1: syntax error\n"}`,
		`{"Action":"fail","Package":"m.x/b"}`)
	require.Equal(t, map[string]result{"m.x/b.": failed}, s.counted())
	require.Contains(t, out, "syntax error")
	require.True(t, s.failed())
}

func TestFailuresAndSkipsAreSaid(t *testing.T) {
	s, _ := digest(t,
		`{"Action":"output","Package":"a","Test":"TestA","Output":"    a_test.go:9: no oracle here\n"}`,
		`{"Action":"skip","Package":"a","Test":"TestA"}`,
		`{"Action":"output","Package":"a","Test":"TestB","Output":"    a_test.go:12: no oracle here\n"}`,
		`{"Action":"skip","Package":"a","Test":"TestB"}`,
		`{"Action":"output","Package":"a","Test":"TestC","Output":"    c_test.go:1: want 1\n"}`,
		`{"Action":"fail","Package":"a","Test":"TestC"}`)
	var out, tally strings.Builder
	s.printFailures(&out)
	require.NoError(t, s.tally(&tally))
	require.NoError(t, printTotal(&out, strings.NewReader(tally.String())))
	require.Equal(t, `--- FAIL: a.TestC
    c_test.go:1: want 1
skipped: no oracle here (a.TestA and 1 more)
0 passed, 1 failed, 2 skipped
`, out.String())
}

func TestTotalJoinsRuns(t *testing.T) {
	var out strings.Builder
	require.NoError(t, printTotal(&out, strings.NewReader(
		"pass\ta.TestA\t\nskip\ta.TestA\tshort\nskip\ta.TestB\tshort\npass\ta.TestC\t\nfail\ta.TestC\t\npass\ta.TestC\t\n")))
	require.Equal(t, "skipped: short (a.TestB)\n1 passed, 1 failed, 1 skipped\n", out.String())

	out.Reset()
	require.NoError(t, printTotal(&out, strings.NewReader(
		"skip\tm/a.TestA/one\tshort\nfail\tm/a.TestB\t\npass\tm/a.TestA/one/x\t\npass\tm/a.TestA/one/y\t\npass\tm/a.TestB/x\t\n")))
	require.Equal(t, "3 passed, 1 failed, 0 skipped\n", out.String(), "subtests that ran count in place of a skipped parent")

	require.Error(t, printTotal(&out, strings.NewReader("nonsense")))
}
