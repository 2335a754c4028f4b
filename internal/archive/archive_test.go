package archive_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

func guest(t testing.TB) *kimage.Image {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	return img
}

// packed makes an image's file, and reads it.
func packed(t testing.TB, img *kimage.Image) (*archive.Kernel, string) {
	p, err := archive.Pack(img, nil)
	require.NoError(t, err)
	name, err := p.Write(t.TempDir())
	require.NoError(t, err)
	k, err := archive.Open(name)
	require.NoError(t, err)
	return k, name
}

func cells(t testing.TB, k report.Kernel, text string) []report.CheckRow {
	probes, err := report.ReadProbes(strings.NewReader(text))
	require.NoError(t, err)
	var c report.Check
	c.Add(k, probes)
	return c.Probes
}

// Rule: the file answers as the image does, at every address of the guest kernel's
// text and around it.
func TestEveryAddressIsAnsweredAlike(t *testing.T) {
	img := guest(t)
	k, _ := packed(t, img)
	text := img.Table().Kernel.Text
	var points strings.Builder
	for a := text.Start - 16; a < text.End+16; a++ {
		points.WriteString(a.String() + "\n")
	}
	sameCells(t, cells(t, report.OfImage(img), points.String()), cells(t, k, points.String()))
	require.NoError(t, k.Err())
}

func sameCells(t testing.TB, want, got []report.CheckRow) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i], want[i].Text)
	}
}

// Rule: two files of one kernel have one name, so that packing again replaces.
func TestPackIsRepeatable(t *testing.T) {
	one, err := archive.Pack(guest(t), nil)
	require.NoError(t, err)
	two, err := archive.Pack(guest(t), nil)
	require.NoError(t, err)
	require.Equal(t, one.FileName(), two.FileName())
	require.Equal(t, one.Bytes, two.Bytes)
	dir := t.TempDir()
	for _, p := range []*archive.Packed{one, two} {
		_, err := p.Write(dir)
		require.NoError(t, err)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, archive.Suffix, filepath.Ext(left[0].Name()))
}
