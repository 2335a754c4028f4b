package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/colour"
	"kprobelab/shard"
)

var shardKernels = []string{"5.10", "a/b.core", "6.1", "gone\xff", "6.12", "newest", "late"}

// ran fills in a cell: outputs that are no UTF-8, events, exit codes, kernels that could not be had or did not get their turn.
func ran(_ context.Context, c *Cell) {
	switch c.Kernel {
	case "gone\xff":
		c.Code, c.Err = 3, errors.New("it cannot be had\n\xfe")
		return
	case "late":
		c.Code, c.Err = 1, ErrEnded
		return
	case "6.12":
		c.Code, c.Err = 6, errors.New("the guest kernel panicked")
	case "newest":
		c.Code = 4
	}
	c.Release = c.Kernel + "-cloud"
	fmt.Fprintf(&c.Stdout, "<out> %d\xff\n\x1b[0m", len(c.Kernel))
	c.Stderr.WriteString("err & more")
	c.events.WriteString(`{"event":"planted","n":1}` + "\n" + `{"event":"hit"}` + "\n")
}

func printed(t *testing.T, m *Matrix) string {
	var b bytes.Buffer
	for _, c := range m.Cells {
		c.Took = 1500 // durations are real
	}
	require.NoError(t, m.Table(&b))
	require.NoError(t, m.Diffs(&b, colour.Style(false)))
	require.NoError(t, m.JSON(&b, "./tool"))
	x, err := m.JUnit("./tool")
	require.NoError(t, err)
	fmt.Fprintf(&b, "%s%s%d", x, m.Base().Whole(), m.Code())
	return b.String()
}

func shardsOf(t *testing.T, n int) (names []string) {
	dir := t.TempDir()
	for i := 1; i <= n; i++ {
		m, err := New(shardKernels)
		require.NoError(t, err)
		p := shard.Part{I: i, N: n}
		m.Take(p)
		m.Run(t.Context(), ran)
		var b bytes.Buffer
		w, err := shard.Begin(&b, "v1", []string{"exec", "./tool"}, p, shardKernels, Form{Program: "./tool", JSON: true})
		require.NoError(t, err)
		_ = m.WriteShard(w) // TestAShardWithoutItsKernel
		names = append(names, filepath.Join(dir, fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(names[i-1], b.Bytes(), 0o600))
	}
	return names
}

// Rule: the matrix of merged shards prints what that of one run prints, in every form.
func TestShardsMakeOneMatrix(t *testing.T) {
	whole, err := New(shardKernels)
	require.NoError(t, err)
	whole.Run(t.Context(), ran)
	want := printed(t, whole)
	for _, n := range []int{1, 3, 9} {
		r, err := shard.Open("v1", shardsOf(t, n))
		require.NoError(t, err)
		m, form, err := Merged(r)
		require.NoError(t, err)
		r.Close()
		require.Equal(t, Form{Program: "./tool", JSON: true}, form)
		require.Equal(t, want, printed(t, m))
	}
}

// Rule: a kernel that could not be had is an error of its shard, which is whole.
func TestAShardWithoutItsKernel(t *testing.T) {
	for kernel, says := range map[string]string{"6.1": "", "gone\xff": "it cannot be had", "late": ErrEnded.Error()} {
		m, err := New([]string{kernel})
		require.NoError(t, err)
		m.Run(t.Context(), ran)
		var b strings.Builder
		w, err := shard.Begin(&b, "v1", []string{"exec"}, shard.Part{I: 1, N: 1}, []string{kernel}, Form{})
		require.NoError(t, err)
		err = m.WriteShard(w)
		if says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, says)
		}
		require.Contains(t, b.String(), `{"end":1}`)
	}
}

func TestHostileResultsOfKernels(t *testing.T) {
	for _, result := range []string{`{"code":256}`, `{"code":-1}`, `{"code":1e9}`, `{"stdout":1}`, `[]`, `"x"`} {
		name := filepath.Join(t.TempDir(), "shard")
		require.NoError(t, os.WriteFile(name, []byte(`{"kprobelab_shard":1,"version":"v1","command":"exec","arguments":["exec"],"form":{},"shard":"1/1","items":1,"list":""}`+
			"\n"+`{"item":0,"result":`+result+"}\n"+`{"end":1}`+"\n"), 0o600))
		r, err := shard.Open("v1", []string{name})
		require.NoError(t, err)
		_, _, err = Merged(r)
		require.Error(t, err, result)
		r.Close()
	}
}
