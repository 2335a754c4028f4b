package kprobelab_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
)

func TestOpenImageNamesTheGuestKernel(t *testing.T) {
	for _, path := range []string{"", "-"} {
		img, err := kprobelab.OpenImage(path, nil)
		require.NoError(t, err)
		require.Equal(t, kprobelab.GuestKernel, img.Name())
	}
	_, err := kprobelab.OpenImage("/nosuch/vmlinuz", nil)
	require.Error(t, err)
}
