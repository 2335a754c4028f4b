package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/bpftrace"
)

// newest runs a script of 0.27 without a kernel. It returns the output, the messages and the exit code.
func newest(t *testing.T, text string, o *bpftrace.Options) (out, said string, code int) {
	t.Helper()
	o.Language = bpftrace.Language27
	s, err := bpftrace.Analyze("stdin", text, o, nil)
	var p *bpftrace.Problems
	if errors.As(err, &p) {
		return "", p.Text(), 1
	}
	require.NoError(t, err)
	var b, log bytes.Buffer
	r, err := New(&Script{Program: s.Program, Probes: s.Probes, Words: bpftrace.Words{}, First: s.Start, Last: s.PrintMaps},
		&Options{Out: &b, Log: func(l string) { log.WriteString(l + "\n") }, HZ: 250})
	require.NoError(t, err)
	r.Begin()
	r.Wait(2e9)
	r.End()
	return b.String(), s.Warnings + log.String(), int(r.Code())
}

// otherwise are the features whose answer differs here, with the cause.
var otherwise = map[string]string{
	"dot_through_pointer": "a kernel's types", "dot_through_two_pointers": "a kernel's types", "ppid": "a kernel's types", "pcomm": "a kernel's types",
	"leader": "a kernel's types", "offsetof_expression": "a kernel's types", "pid_namespace": "a kernel's task", "print_args": "a kernel's types",
	"rawtracepoint_args": "a kernel's types", "rawtracepoint_module": "a kernel's tracepoints", "fentry_bpf": "a kernel's functions", "socket_cookie": "a kernel's functions",
	"for_map_break": "a hash table has another order in each run", "kstack_build_id": "a program's stack",
	"address_of": "addresses of the script's own memory are not there", "address_of_map": "addresses of the script's own memory are not there",
	"cat":      "not there",
	"cgroupid": "bpftrace dies", "unused_function": "bpftrace dies",
}

var timeOfDay = regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d+\b`)

// timeless is an output without the time of day at which the script ran.
func timeless(out string) string {
	return timeOfDay.ReplaceAllStringFunc(strings.TrimSpace(out), func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '0'
			}
			return r
		}, s)
	})
}

// The answers are bpftrace 0.27.1's, on Linux 6.18: the exit code, and the output of what is accepted.
func TestFeaturesOf027(t *testing.T) {
	b, err := os.ReadFile("../bpftrace/testdata/newest/features.txt")
	require.NoError(t, err)
	answers := map[string]struct {
		Code int
		Out  string
	}{}
	j, err := os.ReadFile("../bpftrace/testdata/newest/answers.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(j, &answers))
	same := 0
	for _, f := range strings.Split(string(b), "## ")[1:] {
		name, text, _ := strings.Cut(f, "\n")
		if otherwise[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, ok := answers[name]
			require.True(t, ok)
			out, said, code := newest(t, strings.TrimSpace(text), &bpftrace.Options{})
			assert.Equal(t, want.Code != 0, code != 0, said)
			if want.Code == 0 {
				assert.Equal(t, timeless(want.Out), timeless(out), said)
			}
			same++
		})
	}
	t.Logf("%d of %d features", same, len(answers))
}

// Named parameters follow the script, as --NAME or --NAME=VALUE.
func TestGetoptTakesNamedParameters(t *testing.T) {
	out, said, _ := newest(t, `begin { print((getopt("n", 3), getopt("t", "x"), getopt("b"), getopt("f", true))); exit(); }`,
		&bpftrace.Options{Named: []string{"n=5", "t=word", "b", "f=false"}})
	assert.Equal(t, "(5, word, true, false)\n\n\n", out, said)
}

// A record's fields are stored by their names, a macro's variables are its own.
func TestNamesDoNotMix(t *testing.T) {
	for text, want := range map[string]string{
		`@r = (a=1, b=2); @r = (b=3, a=4); print(@r.a);`:                             "4\n",
		`$x = 1; own(); print($x);`:                                                  "1\n",
		`@m[1] = 2; let $v; if find(@m, 1, $v) { print($v); }`:                       "2\n",
		`$a = 3; $b = $a > 2 ? { $c = $a; $c * 2 } : 0; print($b);`:                  "6\n",
		`for $i : 0..2 { $t = ($i, "x"); print($t[0]); }`:                            "0\n1\n",
		`if (1 == 2) { print(1); } else if true { print(2); }`:                       "2\n",
		`print(comptime (2 * 3) + 1); print((uint8)255 + 1); print(5 == 5);`:         "7\n256\ntrue\n",
		`$s = "abc"; $i = 1; print($s[$i]); print(str_concat($s, "d")); `:            "98\nabcd\n",
		`$u = (uint8)0; $u--; print($u); $u = -1; @x = (uint8)255; @x++; print(@x);`: "-1\n@x: 256\n",
	} {
		out, said, _ := newest(t, "macro own() { $x = 5; $x } begin { "+text+" exit(); }", &bpftrace.Options{})
		assert.True(t, strings.HasPrefix(out, want), "%s: %q %s", text, out, said)
	}
}

// The drawings are bpftrace 0.27.1's of the same values.
func TestSeriesAreDrawnAsByTheTool(t *testing.T) {
	for text, want := range map[string]string{
		`interval:50ms { @n++; if (@n < 5) { @a[1] = tseries(@n, 50ms, 8); } if (@n > 7 && @n != 9) { @a[2] = tseries(@n*3, 50ms, 8); } if (@n == 11) { clear(@n); exit(); } }`: `
@a[1]:
             3                                                   5
hh:mm:ss.ms  |___________________________________________________|
00:00:00.000 |                         *                         | 4
00:00:00.000 |                                                   | -
00:00:00.000 |                                                   | -
00:00:00.000 |                                                   | -
00:00:00.000 |                                                   | -
00:00:00.000 |                                                   | -
00:00:00.000 |                                                   | -
00:00:00.000 |                                                   | -
             v___________________________________________________v
             3                                                   5

@a[2]:
             24                                                 33
hh:mm:ss.ms  |___________________________________________________|
00:00:00.000 *                                                   | 24
00:00:00.000 |                                                   | -
00:00:00.000 |                                 *                 | 30
00:00:00.000 |                                                   * 33
             v___________________________________________________v
             24                                                 33`,
		`interval:100us { @n++; if (@n % 10 == 4) { @c = tseries(-@n, 100us, 12); } if (@n == 14) { clear(@n); exit(); } }`: `
@c:
                -14                                                -4
hh:mm:ss.μs    |___________________________________________________|
00:00:00.000000 |                                                   * -4
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 |                                                   | -
00:00:00.000000 *                                                   | -14
                v___________________________________________________v
                -14                                                -4`,
		`begin { @a = tseries(5, 1s, 3); zero(@a); exit(); }`: "@a:\n<no data>",
	} {
		out, said, _ := newest(t, "config = { unstable_tseries = enable } "+text, &bpftrace.Options{})
		assert.Equal(t, strings.TrimSpace(want), timeless(out), said)
	}
}

// Where 0 stands, and a value beside it, was measured with the tool for these ranges.
func TestSeriesHaveALineAtZero(t *testing.T) {
	for bounds, want := range map[[2]int]int{
		{-97, 3}: 51, {-96, 4}: 50, {-93, 7}: 49, {-85, 15}: 45, {-70, 30}: 37, {-60, 40}: 31, {-55, 45}: 29, {-40, 60}: 21, {-30, 70}: 15,
		{-15, 85}: 7, {-9, 91}: 4, {-3, 97}: 1, {-1, 99}: -1, {-661, 1256}: 18, {-7, 10}: 21, {-11, 3}: 41, {0, 10}: -1, {-10, 0}: -1,
	} {
		out, said, _ := newest(t, fmt.Sprintf("interval:10ms { @n++; if (@n == 1) { @a = tseries((int64)%d, 10ms, 9); } if (@n == 3) { @a = tseries((int64)%d, 10ms, 9); exit(); } }", bounds[0], bounds[1]),
			&bpftrace.Options{})
		_, row, found := strings.Cut(timeless(out), "\n00:00:00.000 |")
		require.True(t, found, out+said)
		require.Equal(t, want, max(-1, strings.IndexByte("|"+row[:51], '.')), "%v", bounds)
	}
}

// bpftrace 0.27.1 computes the condition of X ?: Y twice if it holds: once to decide, once as the value. Measured with
// the real tool on Linux 6.18.
func TestShortTernaryComputesItsConditionTwice(t *testing.T) {
	for text, want := range map[string]string{
		`$x = 0; $y = $x++ ?: 5;`: "5 1",
		`$x = 1; $y = $x++ ?: 5;`: "2 3",
	} {
		out, said, _ := newest(t, "begin { "+text+` printf("%d %d\n", $y, $x); exit(); }`, &bpftrace.Options{})
		assert.Equal(t, want, strings.TrimSpace(out), "%s %s", text, said)
	}
}
