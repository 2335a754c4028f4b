package archive_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/debuginfo"
	"kprobelab/internal/report"
)

// Rule: a definition by parameters is answered as for an image without DWARF.
func TestDefinitionsByParametersAreAnsweredAlike(t *testing.T) {
	img := guest(t)
	k := archived(t, img)
	const lines = "vfs_read count\nvfs_read file->f_pos count:x32\nvfs_read%return $retval\nvfs_read nosuch\nvfs_read:3\nvfs_read $vars\nmine=gcd a b\nnosuch a\ngcd@math.c a\n"
	probes, err := report.ReadProbes(strings.NewReader(lines))
	require.NoError(t, err)
	want := report.CheckImageFile(img, debuginfo.Of(img), "", probes, nil).Probes
	attach := 0
	for i, row := range cells(t, k, lines) {
		cell := &want[i].Cells[0]
		cell.Absent, row.Cells[0].Absent = nil, nil // DWARF tells of the image
		if cell.Attaches {
			attach++
		}
		require.Equal(t, cell.Attaches, row.Cells[0].Attaches, "%s: %s, and %s", row.Text, cell.Detail, row.Cells[0].Detail)
		require.Equal(t, cell.Errno, row.Cells[0].Errno, row.Text)
	}
	require.Greater(t, attach, 2)
	require.NoError(t, k.Err())
}
