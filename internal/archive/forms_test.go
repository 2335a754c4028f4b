package archive_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// Rule: the first files of each form that POLICY promises are read, and answer as the image does. Programs of the day on which the
// form began have written them (28e8682b and dae7e83c): nobody writes them anew. If this test fails, the program has to read the old
// form beside the new one.
func TestTheFirstFilesOfEachFormAreRead(t *testing.T) {
	lines := []string{"vfs_read", "nosuch", "gcd+1", "callee_pop+0xa", "r:x gcd", "p:y gcd a=$arg1:u64", "vfs_*", "kernel_clone%return", "crc32_le+0x20"}
	for form, c := range map[int]struct {
		images  []*kimage.Image
		hazards bool
	}{
		2: {[]*kimage.Image{guest(t)}, false}, // hazards came a week later
		3: {[]*kimage.Image{release(t, "6.1.8", 4), release(t, "6.1.9", 3)}, true},
	} {
		t.Run(fmt.Sprint(form), func(t *testing.T) {
			files, err := archive.List(filepath.Join("testdata", "forms", fmt.Sprint(form)))
			require.NoError(t, err)
			require.Len(t, files, len(c.images))
			for i, name := range files {
				k, err := archive.Open(name)
				require.NoError(t, err)
				require.Equal(t, !c.hazards, k.Column().NoHazards)
				require.NotNil(t, k.Programs())
				for _, line := range lines {
					want, got := cells(t, report.OfImage(c.images[i]), line), cells(t, k, line)
					if !c.hazards {
						for j := range want {
							want[j].Cells[0].Hazards = nil
						}
					}
					sameCells(t, want, got)
				}
				require.NoError(t, k.Err())
			}
		})
	}
}
