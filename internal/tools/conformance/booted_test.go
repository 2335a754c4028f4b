package conformance

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/own"
	"kprobelab/kimage"
)

// TestBootedKernelsTakeDefinitions: the parser of a kernel that has booted takes the
// definitions that check takes, and refuses others with the same errno.
func TestBootedKernelsTakeDefinitions(t *testing.T) {
	n := 150
	switch {
	case os.Getenv("KPROBELAB_SOAK") != "":
		n = 3000
	case testing.Short():
		n = 30
	}
	for _, kernel := range dumps.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img, err := kimage.Open(runs.File(t, kernel), nil)
			require.NoError(t, err)
			k, err := own.Open(img, 0)
			require.NoError(t, err)
			defer k.Close()
			names := Names(img, nil, n, 1)
			rows, err := computed(img, []byte(strings.Join(names, "\n")))
			require.NoError(t, err)
			a := &Agreement{}
			for i, line := range names {
				no, err := k.Define(line)
				require.NoError(t, err, line)
				a.count(line, answer(rows[i].Cells[0].Errno, "accepted"), answer(no, "accepted"))
			}
			require.Empty(t, a.Differences, a)
			t.Log(a)
			require.GreaterOrEqual(t, len(a.Kinds), 3, a)
			require.Positive(t, a.Kinds["accepted"], a)
		})
	}
}
