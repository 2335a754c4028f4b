package archive_test

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// rebuilt is the guest kernel with other code at a symbol: another build of its release.
func rebuilt(t testing.TB, symbol string, code []byte) *kimage.Image {
	img, err := kimage.FromBytes("rebuilt", elfWith(t, symbol, code), nil)
	require.NoError(t, err)
	return img
}

// elfWith is the guest kernel's file with other code at a symbol.
func elfWith(t testing.TB, symbol string, code []byte) []byte {
	b := bytes.Clone(kprobelab.GuestELF())
	f, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	syms, err := f.Symbols()
	require.NoError(t, err)
	for _, s := range syms {
		if s.Name == symbol {
			text := f.Sections[s.Section]
			copy(b[text.Offset+s.Value-text.Addr:], code)
		}
	}
	require.NotEqual(t, kprobelab.GuestELF(), b)
	return b
}

// Rule: two builds of one release have two files, each answers as its own image does, and
// no form of the output gives both one name.
func TestTwoBuildsOfOneRelease(t *testing.T) {
	images := []*kimage.Image{guest(t), rebuilt(t, "gcd", []byte{0x0f, 0x1f, 0x80, 0, 0, 0, 0})} // a nop of 7 bytes
	dir := t.TempDir()
	var release string
	for _, img := range images {
		p, err := archive.Pack(img, nil)
		require.NoError(t, err)
		_, err = p.Write(dir)
		require.NoError(t, err)
		if release != "" {
			require.Equal(t, release, p.Release)
		}
		release = p.Release
	}
	files, err := archive.List(dir, release)
	require.NoError(t, err)
	require.Len(t, files, 2)

	const lines = "gcd\ngcd+1\ngcd+2\ngcd+3\ngcd+4\ngcd+5\ngcd+6\nvfs_read\n"
	probes, err := report.ReadProbes(strings.NewReader(lines))
	require.NoError(t, err)
	both, unread, err := report.Joined(archive.Check(files, probes, nil, nil), nil)
	require.NoError(t, err)
	require.Empty(t, unread)
	require.NotEqual(t, both.Images[0].BuildID, both.Images[1].BuildID)
	for _, img := range images {
		p, err := archive.Pack(img, nil)
		require.NoError(t, err)
		column := 0
		if both.Images[1].BuildID == p.BuildID {
			column = 1
		}
		for i, row := range cells(t, report.OfImage(img), lines) {
			row.Cells[0].Hazards = nil
			require.Equal(t, row.Cells[0], both.Probes[i].Cells[column], row.Text)
		}
	}
	require.NotEqual(t, both.Probes[5].Cells[0].Attaches, both.Probes[5].Cells[1].Attaches)

	both.Compare()
	for name, write := range map[string]func(*bytes.Buffer) error{
		"matrix":      func(b *bytes.Buffer) error { return both.WriteText(b) },
		"runs":        func(b *bytes.Buffer) error { return both.WriteRuns(b, false) },
		"tsv":         func(b *bytes.Buffer) error { return both.WriteTSV(b) },
		"junit":       func(b *bytes.Buffer) error { return both.WriteJUnit(b) },
		"annotations": func(b *bytes.Buffer) error { return both.WriteAnnotations(b, "probes") },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, write(&out))
			for _, image := range both.Images {
				id := strings.TrimPrefix(image.BuildID, "text-")[:8]
				require.Contains(t, out.String(), id)
				require.NotContains(t, out.String(), id+" "+id)
			}
		})
	}
}
