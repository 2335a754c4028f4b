package merge_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/report"
	"kprobelab/internal/selfcheck"
	"kprobelab/shard"
	"kprobelab/shard/merge"
)

// Results of shards print as one run, with its exit code.
func ExamplePrint() {
	r, err := shard.Open("", []string{"testdata/1.shard", "testdata/2.shard"}) // of kprobelab check --json --shard 1/2 probes - -, and of 2/2
	if err != nil {
		panic(err)
	}
	defer r.Close()
	code, err := merge.Print(r, &merge.Options{Out: os.Stdout, Format: "junit"})
	fmt.Println(code, err)
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites tests="2" failures="0">
	//   <testsuite name="6.1.0-kprobelab" tests="1" failures="0">
	//     <testcase name="vfs_read" classname="6.1.0-kprobelab">
	//       <system-out>ftrace, return too</system-out>
	//     </testcase>
	//   </testsuite>
	//   <testsuite name="6.1.0-kprobelab" tests="1" failures="0">
	//     <testcase name="vfs_read" classname="6.1.0-kprobelab">
	//       <system-out>ftrace, return too</system-out>
	//     </testcase>
	//   </testsuite>
	// </testsuites>
	// 0 <nil>
}

// whole opens the shard 1/1 of a command.
func whole(t *testing.T, command string, form any, items ...any) *shard.Results {
	name := filepath.Join(t.TempDir(), "shard")
	var b bytes.Buffer
	w, err := shard.Begin(&b, "v1", []string{command}, shard.Part{I: 1, N: 1}, make([]string, len(items)), form)
	require.NoError(t, err)
	require.NoError(t, shard.All(w, items))
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	r, err := shard.Open("", []string{name})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

type object = map[string]any

// Rule: damaged results are ErrShards with code 3, of each command; nothing makes a panic.
func TestDamagedResults(t *testing.T) {
	for command, item := range map[string]any{
		"check":     object{"check": object{"images": []object{}}},
		"exec":      object{"code": 1000},
		"bpf":       object{"programs": 7},
		"explore":   object{"line": 5},
		"scan":      object{"totals": object{"kept": [][]int{{1 << 20, 1}}}},
		"selfcheck": object{"questions": []object{{"examples": []object{{"place": "x"}}}}},
		shard.Jobs:  object{"code": -1},
	} {
		t.Run(command, func(t *testing.T) {
			code, err := merge.Print(whole(t, command, object{}, item), &merge.Options{})
			require.ErrorIs(t, err, shard.ErrShards)
			require.Equal(t, 3, code)
			if command != "explore" && command != shard.Jobs {
				_, err = merge.Print(whole(t, command, "no form", item), &merge.Options{})
				require.ErrorIs(t, err, shard.ErrShards)
			}
		})
	}
	_, err := merge.Print(whole(t, "selfcheck", object{}), &merge.Options{})
	require.ErrorIs(t, err, shard.ErrShards)
}

// Rule: an option for another command is refused before anything is written.
func TestOptionsThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		o       merge.Options
	}{
		"format_of_scan":   {"scan", merge.Options{Format: "tsv"}},
		"junit_of_check":   {"check", merge.Options{JUnit: "j.xml"}},
		"no_format":        {"check", merge.Options{Format: "xml"}},
		"no_command":       {"explain", merge.Options{}},
		"junit_of_targets": {shard.Jobs, merge.Options{JUnit: "j.xml"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c.o.Out = &out
			code, err := merge.Print(whole(t, c.command, object{}), &c.o)
			require.ErrorIs(t, err, merge.ErrOption)
			require.Equal(t, 2, code)
			require.Empty(t, out.String())
		})
	}
}

// Rule: of programs' exit codes a difference counts more than an item that could not be had, and that more than none.
func TestCodesOfPrograms(t *testing.T) {
	for _, c := range []struct{ codes, want []int }{
		{[]int{0, 0}, []int{0}}, {[]int{0, 77, 0}, []int{77}}, {[]int{1, 77}, []int{1}}, {[]int{77, 1, 0}, []int{1}}, {[]int{1, 2}, []int{1}},
	} {
		var jobs []any
		for i, code := range c.codes {
			jobs = append(jobs, shard.Job{Item: fmt.Sprint(i), Output: shard.Text(fmt.Sprintf("%d\xff\n", i)), Code: code})
		}
		var out bytes.Buffer
		code, err := merge.Print(whole(t, shard.Jobs, nil, jobs...), &merge.Options{Out: &out})
		require.NoError(t, err)
		require.Equal(t, c.want[0], code, c.codes)
		require.Equal(t, "0\xff\n1\xff\n2\xff\n"[:3*len(c.codes)], out.String())
	}
}

type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

// Rule: an error of the output is the output's, with code 0.
func TestOutputsThatFail(t *testing.T) {
	for command, form := range map[string]any{
		"check": report.CheckForm{Format: "tsv"}, "selfcheck": selfcheck.Form{JSON: true}, shard.Jobs: nil, "explore": nil, "scan": report.ScanForm{Format: report.ScanTSV},
	} {
		item := any(object{})
		if command == "check" {
			item = object{"check": object{"images": []object{{}}, "probes": []object{}}}
		}
		if command == "selfcheck" {
			item = object{"questions": []object{{"function": "f"}}}
		}
		if command == shard.Jobs {
			item = shard.Job{Output: shard.Text("x")}
		}
		t.Run(command, func(t *testing.T) {
			code, err := merge.Print(whole(t, command, form, item), &merge.Options{Out: full{}, Err: io.Discard})
			require.ErrorIs(t, err, errFull)
			require.Zero(t, code)
		})
	}
}
