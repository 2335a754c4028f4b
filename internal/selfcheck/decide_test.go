package selfcheck

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/profile"
)

// scanOwn is the rows of a scan in which the image decides.
func scanOwn(t *testing.T, img *kimage.Image, own bool, pattern string) (string, *report.ScanTotals) {
	t.Helper()
	s := report.NewScan(img)
	if own {
		d, err := NewDecider(img)
		require.NoError(t, err)
		defer d.Close()
		s.Own = d.At
		require.NotEmpty(t, d.Rest())
	}
	functions, err := s.Functions(pattern)
	require.NoError(t, err)
	var out bytes.Buffer
	totals, err := s.WriteFunctions(&out, report.ScanTSV, functions)
	require.NoError(t, err)
	return out.String(), totals
}

// Rule: if the rules are right, the image decides the same.
func TestImageDecidesAsTheRules(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img, err := kimage.Open(oracle.Image(t, kernel), nil)
			require.NoError(t, err)
			rows, totals := scanOwn(t, img, true, "vfs_fallocate")
			require.NotContains(t, rows, "!", "the rules say otherwise")
			require.Equal(t, totals.Points, totals.Own["errno"])
			require.Positive(t, totals.Own["optimized"])
		})
	}
}

// Rule: with the rules of another release the image's answers stay the same, and rows
// for which the rules give another value are marked.
func TestImageDecidesAgainstWrongRules(t *testing.T) {
	wrong, ok := profile.Named("6.1")
	require.True(t, ok)
	right, err := kimage.Open(oracle.Image(t, "oracle612"), nil)
	require.NoError(t, err)
	img, err := kimage.Open(oracle.Image(t, "oracle612"), &kimage.Options{Profile: wrong})
	require.NoError(t, err)
	want, _ := scanOwn(t, right, false, "vfs_fallocate")
	got, totals := scanOwn(t, img, true, "vfs_fallocate")
	require.Positive(t, totals.Own["!"])
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	require.Len(t, gots, len(wants))
	require.Greater(t, len(gots), 100)
	for i := range wants[1:] {
		w, g := strings.Split(wants[i], "\t"), strings.Split(gots[i], "\t")
		if len(g) > 7 && g[2] != "0" { // where a probe at an entry is placed is the rules'
			require.Equal(t, w[:4], g[:4], "address to errno")
			require.Equal(t, w[7], g[7], "optimized: %s", gots[i])
		}
	}
}
