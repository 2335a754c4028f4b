package kernels_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kernels"
)

func TestWhatThereIsOfAKernel(t *testing.T) {
	require.Equal(t, "can be fetched", (&kernels.Kernel{}).Has())
	require.Equal(t, "image, dump, modules", (&kernels.Kernel{Image: "i", Dump: "d", Modules: "m"}).Has())
	w := newWorld(t)
	s := w.open(t)
	_, err := s.Add(t.Context(), "../testdata/guest.elf", "")
	require.NoError(t, err)
	list, err := s.List(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, guestRelease, list[0].Release)
	require.False(t, list[0].Available)
}
