package bpf_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/kernels/bisect"
)

// TestTheVerdictThatChanged: the stable release is named with the package's version and the new reason; few kernels are asked.
func TestTheVerdictThatChanged(t *testing.T) {
	releases := []string{"5.10.0-46-cloud-amd64", "6.1.0-50-cloud-amd64", "6.1.0-51-cloud-amd64", "6.1.0-52-cloud-amd64", "6.1.0-53-cloud-amd64", "6.12.118+deb13-cloud-amd64"}
	absent := errors.New("no such package")
	asked := 0
	ask := func(_ context.Context, release string) (*bpf.Table, error) {
		asked++
		p := answer.Program{Name: "a", Loads: true}
		switch n := slices.Index(releases, release); {
		case release == releases[2]:
			return nil, absent
		case n >= 3:
			p = answer.Program{Name: "a", Error: "R2 !read_ok", Errno: "EACCES", Blame: &answer.Place{Instruction: 1, File: "t.c", Line: 9, Text: "return x;"}}
		}
		return &bpf.Table{Columns: []bpf.Column{{Kernel: release, Programs: []answer.Program{p}}}}, nil
	}
	version := func(release string) string {
		return map[string]string{releases[1]: "6.1.176-1", releases[3]: "6.1.180-1"}[release]
	}
	c, err := bpf.Bisect(t.Context(), "a", releases, ask, version, nil)
	require.NoError(t, err)
	require.LessOrEqual(t, asked, 6)
	var out bytes.Buffer
	require.NoError(t, c.Show(&out, false))
	require.Equal(t, `a: loads up to 6.1.0-50-cloud-amd64 (6.1.176-1), refused from 6.1.0-52-cloud-amd64 (6.1.180-1) on: a stable release of 6.1 brought it
    R2 !read_ok (EACCES)
    at instruction 1, t.c:9: return x;
between them 6.1.0-51-cloud-amd64 could not be asked: no such package
5 of 6 kernels were asked
`, out.String())
	out.Reset()
	require.NoError(t, c.Show(&out, true))
	require.Contains(t, out.String(), `"after": "6.1.0-52-cloud-amd64"`)
	require.Contains(t, out.String(), `"stable": true`)
	require.Contains(t, out.String(), `"errno": "EACCES"`)

	// What is wrong on every kernel is said after one.
	for name, err := range map[string]error{"object": bpf.ErrObject, "loader": bpf.ErrLoader} {
		asked = 0
		_, got := bpf.Bisect(t.Context(), "a", releases, func(context.Context, string) (*bpf.Table, error) { asked++; return nil, err }, version, nil)
		require.ErrorIs(t, got, err, name)
		require.Equal(t, 1, asked, name)
		require.Equal(t, 3, bisect.Code(got))
	}
	asked = 0
	_, err = bpf.Bisect(t.Context(), "b", releases, ask, version, nil)
	require.ErrorContains(t, err, "the object has no program b; it has a")
	require.Equal(t, 1, asked)
	_, err = bpf.Bisect(t.Context(), "a", releases[3:], ask, version, nil)
	require.ErrorIs(t, err, bisect.ErrSame)
	require.Equal(t, 1, bisect.Code(err))
}
