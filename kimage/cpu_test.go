package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProcessorOfAnImage: an image without a processor counts as made for the default one, and a
// file that describes no processor is a FormatError.
func TestProcessorOfAnImage(t *testing.T) {
	require.Equal(t, "qemu64", (&Image{}).NearestCPU([]string{"epyc", "qemu64", "haswell"}))
	_, err := NamedProcessor(writeFile(t, "cpuinfo", []byte("flags: fpu\n")))
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "vendor_id, cpu family, flags and bugs are wanted")
}
