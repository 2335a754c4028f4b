package kimage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/unnoted"
	"kprobelab/kimage"
	"kprobelab/kimage/vmcore"
)

// Rule: the control registers found in memory equal QEMU's notes. CR2 is not compared: it
// holds the address of the last page fault, which the kernel does not keep. The hidden parts
// of the segment registers follow from their selectors.
func TestRegistersFoundAreThoseNoted(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			noted, err := kimage.Open(dumps.File(t, name), nil)
			require.NoError(t, err)
			require.Empty(t, noted.Fact("control registers"))
			want, err := noted.Processors()
			require.NoError(t, err)
			img, err := kimage.Open(unnoted.File(t, name), nil)
			require.NoError(t, err)
			require.Equal(t, "found", img.Fact("control registers").Value)
			got, err := img.Processors()
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for i := range want {
				require.NotNil(t, got[i].Control)
				w := *want[i].Control
				w.CR2 = 0
				for _, s := range []*vmcore.Segment{&w.CS, &w.DS, &w.ES, &w.FS, &w.GS, &w.SS, &w.LDT} {
					*s = vmcore.Segment{}
				}
				require.Equal(t, w, *got[i].Control, "CPU %d", i)
				same := want[i]
				same.Control = got[i].Control
				require.Equal(t, same, got[i], "CPU %d", i)
			}
		})
	}
}
