package bpf_test

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/shard"
)

// columns are the answers of three kernels, of which the last could not be asked.
func columns() []bpf.Column {
	yes, no, offset := true, false, 8
	good := answer.Program{Name: "a", Section: "kprobe/vfs_read", Loads: true, Attaches: &yes, Instructions: 2, Verified: 2, States: 1, Log: "<0: R1=ctx()>"}
	bad := answer.Program{Name: "b", Section: "kprobe/x", Error: "R2 !read_ok", Errno: "EACCES", Log: "0: r0 = r2\n", Blame: &answer.Place{Instruction: 1, File: "/src/t.c", Line: 9, Text: "return x;"}}
	absent := answer.Program{Name: "b", Section: "kprobe/x", Loads: true, Attaches: &no, AttachError: "ENOENT: no such file or directory"}
	return []bpf.Column{
		{Kernel: "6.1", Release: "6.1.0-1", Programs: []answer.Program{good, bad}, Fields: []answer.Field{{Name: "task_struct.pid", Kind: "field", Found: answer.Present, Offset: &offset, Programs: []string{"a"}}}},
		{Kernel: "6.12", Release: "6.12.0-1", Programs: []answer.Program{good, absent}},
		{Kernel: "5.4", Err: "there is no such kernel"},
	}
}

// TestShardsOfBPFAreOneRun: the merged shards print what one run prints, to the byte, with its exit code; JUnit, too.
func TestShardsOfBPFAreOneRun(t *testing.T) {
	all, dir := columns(), t.TempDir()
	for _, form := range []bpf.Form{{Object: "t.o"}, {Object: "t.o", JSON: true}, {Object: "t.o", Verbose: true}} {
		for _, asked := range [][]bpf.Column{all, all[:2], all[2:]} {
			var want bytes.Buffer
			junit := filepath.Join(dir, "one.xml")
			code, err := form.Show(&want, junit, asked)
			for n := 1; n <= 4; n++ {
				var names []string
				for i := 1; i <= n; i++ {
					var out bytes.Buffer
					p := shard.Part{I: i, N: n}
					w, err := shard.Begin(&out, "v1", []string{"bpf", "t.o"}, p, make([]string, len(asked)), form)
					require.NoError(t, err)
					require.NoError(t, shard.All(w, shard.Of(p, asked)))
					names = append(names, filepath.Join(dir, p.String()[:1]))
					require.NoError(t, os.WriteFile(names[i-1], out.Bytes(), 0o600))
				}
				r, err2 := shard.Open("v1", names)
				require.NoError(t, err2)
				again, list, err2 := bpf.MergeShards(r)
				r.Close()
				require.NoError(t, err2)
				var got bytes.Buffer
				merged := filepath.Join(dir, "merged.xml")
				code2, err3 := again.Show(&got, merged, list)
				require.Equal(t, want.String(), got.String())
				require.Equal(t, [2]any{code, err}, [2]any{code2, err3})
				a, err := os.ReadFile(junit)
				require.NoError(t, err)
				b, err := os.ReadFile(merged)
				require.NoError(t, err)
				require.Equal(t, string(a), string(b))
			}
		}
	}
}

// TestJUnitOfPrograms: a program that a kernel refuses is a failure, a kernel that was not asked an error.
func TestJUnitOfPrograms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "j.xml")
	form := bpf.Form{Object: "t.o"}
	code, err := form.Show(&bytes.Buffer{}, file, columns())
	require.ErrorIs(t, err, bpf.ErrNotAsked)
	require.Equal(t, 3, code)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	require.NoError(t, xml.Unmarshal(b, &got))
	require.Equal(t, [3]int{5, 2, 1}, [3]int{got.Tests, got.Failures, got.Errors})
	require.Contains(t, string(b), `<failure message="refused">R2 !read_ok (EACCES)&#xA;      at instruction 1, t.c:9: return x;</failure>`)
	require.Contains(t, string(b), `<failure message="not attached">ENOENT: no such file or directory</failure>`)
	require.Contains(t, string(b), `<error message="there is no such kernel">`)
	code, err = form.Show(&bytes.Buffer{}, "", columns()[:2])
	require.NoError(t, err)
	require.Equal(t, 1, code)
	code, err = form.Show(&bytes.Buffer{}, filepath.Join(t.TempDir(), "no", "x.xml"), columns()[:2])
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Zero(t, code)
}
