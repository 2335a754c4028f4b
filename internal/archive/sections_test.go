package archive_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/internal/tools/conformance/sections"
	"kprobelab/kimage"
)

// drawnSections is the number of sections of BPF objects that are drawn for each kernel.
const drawnSections = 1000

// asked are the answers for objects with these sections.
func asked(t testing.TB, k report.Kernel, names []string) (rows []report.CheckRow) {
	t.Helper()
	for _, name := range names {
		probes, err := report.ReadProbes(bytes.NewReader(sections.Object(strings.TrimPrefix(name, "?"))))
		require.NoError(t, err, name)
		var c report.Check
		c.Add(k, probes)
		rows = append(rows, c.Probes...)
	}
	return rows
}

// Rule: check gives the same answer about an object's programs, with its reason, for a file as for
// the image.
func TestDrawnSectionsAreAnsweredAlike(t *testing.T) {
	images := map[string]func() *kimage.Image{"guest": func() *kimage.Image { return guest(t) }}
	if !testing.Short() {
		for _, name := range kernels(t) {
			images[filepath.Base(name)] = func() *kimage.Image {
				img, err := kprobelab.OpenImage(name, nil)
				require.NoError(t, err)
				return img
			}
		}
	}
	for name, open := range images {
		t.Run(name, func(t *testing.T) {
			img := open()
			k := archived(t, img)
			d := sections.New(img, 5)
			var names []string
			for range drawnSections {
				names = append(names, d.Section())
			}
			want := asked(t, report.OfImage(img), names)
			sameCells(t, want, asked(t, k, names))
			require.NoError(t, k.Err())
			attach := 0
			for i := range want {
				if want[i].Cells[0].Attaches {
					attach++
				}
			}
			t.Logf("%d of %d attach", attach, drawnSections)
			require.Greater(t, attach, drawnSections/20)
		})
	}
}
