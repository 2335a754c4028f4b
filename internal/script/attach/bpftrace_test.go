package attach

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/bpftrace"
)

// bpftraced runs a bpftrace script without a kernel, and returns its output with the lines for the user.
func bpftraced(t *testing.T, name, text string, o *bpftrace.Options) string {
	t.Helper()
	s, err := bpftrace.Analyze(name, text, o, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	out.WriteString(s.Attaching())
	r, err := New(&Script{Program: s.Program, Probes: s.Probes, Words: bpftrace.Words{}, First: s.Start, Last: s.PrintMaps},
		&Options{Out: &out, Log: func(l string) { out.WriteString(l + "\n") }, HZ: 250})
	require.NoError(t, err)
	r.Begin()
	r.Wait(60e9)
	r.End()
	return out.String()
}

// The output of these scripts is what bpftrace 0.23.2 printed for them, on Linux 6.18.
func TestRunsOfBpftrace(t *testing.T) {
	files, err := filepath.Glob("../bpftrace/testdata/runs/*.bt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, format := range []string{"text", "json"} {
			t.Run(filepath.Base(f)+"/"+format, func(t *testing.T) {
				want, err := os.ReadFile(strings.TrimSuffix(f, "bt") + format)
				require.NoError(t, err)
				got := bpftraced(t, f, string(b), &bpftrace.Options{Args: []string{"first", "42"}, JSON: format == "json"})
				assert.Equal(t, string(want), got)
			})
		}
	}
}

func TestBpftraceScripts(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"intervals":   {`interval:ms:100 { @n++; } interval:s:1 { print(@n); exit(); }`, "@n: 10\n"},
		"end_follows": {`BEGIN { exit(); } END { printf("end\n"); }`, "end\n"},
		"exit_is_now": {`BEGIN { exit(); printf("no\n"); }`, "\n\n"},
		"endless":     {`BEGIN { while (1) { @++; } }`, "stdin:1:9-14: ERROR: a handler has executed more than 1048576 statements; a loop has to end\n"},
		"lost": {`config = { max_map_keys = 2 } BEGIN { @[1] = 1; @[2] = 2; @[3] = 3; print(@); exit(); }`,
			"stdin:1:59-67: WARNING: Map full; can't update element. Try increasing max_map_keys config\nAdditional Info - helper: map_update_elem, retcode: -7\n" +
				"config = { max_map_keys = 2 } BEGIN { @[1] = 1; @[2] = 2; @[3] = 3; print(@); exit(); }\n" + strings.Repeat(" ", 58) + "~~~~~~~~\n@[1]: 1\n@[2]: 2\n\n"},
		"deleted_in_loop": {`BEGIN { @[1] = 1; @[2] = 2; @[3] = 3; for ($kv : @) { if (has_key(@, 2)) { delete(@, 2); } printf("%d ", $kv.0); } exit(); }`,
			"1 3 "},
		"never_time_0":  {`BEGIN { @t = nsecs; if (@t) { printf("a time, elapsed %d\n", elapsed); } exit(); }`, "a time, elapsed 0\n"},
		"division_by_0": {`BEGIN { $z = 0; printf("%d %d\n", 5 / $z, 5 % $z); exit(); }`, "0 5\n"},
		"bad_address":   {`BEGIN { printf("[%s] %d\n", str(16), *(uint32 *)16); exit(); }`, "[] 0\n"},
		"rand_repeats":  {`BEGIN { @ = rand; if (rand != @) { printf("other\n"); } clear(@); exit(); }`, "other\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := bpftraced(t, "stdin", c.script, &bpftrace.Options{Args: []string{"positional"}})
			_, got, _ = strings.Cut(got, "\n")
			assert.True(t, strings.HasPrefix(got, c.want), got)
		})
	}
}

// The sizes that bpftrace 0.23.2 gives: a tuple is laid out as a structure of C is.
func TestBpftraceSizes(t *testing.T) {
	for expr, want := range map[string]int{
		"((uint8)1, (int16)2)": 4, "((uint8)1, (int64)2)": 16, `((uint8)1, "ab")`: 4, `(1, "ab")`: 16, "((uint8)1, (uint8)2, (uint32)3, (uint8)4)": 12,
		"(1, ((uint8)2, (uint16)3))": 16, "((uint8)2, (1, 2))": 24, `(buf("abc", 3), 1)`: 16, `((uint8)1, buf("abc", 3))`: 8, "(1, kstack)": 24, "(1, ustack)": 32,
		"((uint8)1, comm)": 17, "((uint8)1, (uint16*)5)": 16, "((uint8)1, (uint16[4])5)": 10, "((uint8)1, ksym(0))": 16, `((uint8)1, strftime("%H", 0))`: 17,
		"((uint8)1, macaddr(0))": 7, `strftime("%H", 0)`: 16, "kstack": 16, "ustack": 24, "ustack(perf, 3)": 24, "probe": 6, "comm": 16, "uid": 8, "pid": 4,
	} {
		got := bpftraced(t, "stdin", "BEGIN { print(sizeof("+expr+")); exit(); }", &bpftrace.Options{})
		assert.Contains(t, got, fmt.Sprintf("\n%d\n", want), expr)
	}
}

// A positional parameter counts as a signed number until all types are known, and then as an unsigned one; where it is
// assigned as it is, it takes the variable's type. What bpftrace 0.23.2 prints.
func TestBpftraceParameters(t *testing.T) {
	for text, want := range map[string]string{
		"$x = $1; $x = -1; print($x);":              "-1\n",
		"$x = $1; print($x - 6);":                   "-1\n",
		"@x = $1; print(@x - 6); clear(@x);":        "-1\n",
		"print($1 - 6);":                            "18446744073709551615\n",
		"print($2 - 6);":                            "-11\n",
		"print($9 - 6);":                            "18446744073709551610\n",
		"$x = (uint8)1; $x = $2; print($x);":        "251\n",
		"$x = (int32)1; $x = $1; print($x);":        "5\n",
		"let $x : int64 = $1; print($x);":           "5\n",
		"$x = $1; $y = $x - 10; print($y);":         "-5\n",
		"if ($1 > -1) { print(2); } print($3 / 2);": "9223372036854775807\n",
	} {
		got := bpftraced(t, "stdin", "BEGIN { "+text+" exit(); }", &bpftrace.Options{Args: []string{"5", "-5", "18446744073709551615"}})
		assert.Contains(t, got, "\n"+want, text)
	}
}
