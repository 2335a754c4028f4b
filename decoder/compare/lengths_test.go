package compare

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/profile"
)

// The kernel view finds the lengths that insn_decode of these releases found, at every
// enumerated string (make decoder-kernel records them).
func TestKernelViewIsTheKernels(t *testing.T) {
	for release, name := range map[string]string{
		"5.10.262": "5.10", "6.1.192": "6.1", "6.12.117": "6.12", "7.2.12": "7.0",
	} {
		t.Run(release, func(t *testing.T) {
			want, err := readLengths(filepath.Join("testdata", "kernel_lengths", release+".gz"))
			require.NoError(t, err)
			c, ok := profile.Named(name)
			require.True(t, ok)
			i, differ := 0, 0
			Enumerate(func(b []byte) {
				if got := KernelLength(b, &c.Decoder); got != want[i] {
					if differ++; differ <= 20 {
						t.Errorf("%x: %d here, %d in %s", b, got, want[i], release)
					}
				}
				i++
			})
			require.Equal(t, len(want), i)
			require.Zero(t, differ)
		})
	}
}

// readLengths reads a file of WriteLengths.
func readLengths(name string) ([]byte, error) {
	b, err := bounded.ReadFile(name, 1<<20)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return bounded.ReadAll(r, 1<<24)
}
