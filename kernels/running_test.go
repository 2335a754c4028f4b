package kernels

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunningKernel: the image is required; for the other files the text says which could be read.
func TestRunningKernel(t *testing.T) {
	dir := t.TempDir()
	_, err := findRunning(dir, "6.1.0-56-cloud-amd64")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "the running kernel's image cannot be read: open "+dir+"/vmlinuz-6.1.0-56-cloud-amd64: no such file or directory")
	_, err = findRunning(dir, "")
	require.ErrorIs(t, err, ErrNoRelease)

	image := filepath.Join(dir, "vmlinuz-6.1")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	b, err := findRunning(dir, "6.1")
	require.NoError(t, err)
	require.Equal(t, image, b.Image)
	require.Empty(t, b.Config)
	require.Equal(t, "running kernel 6.1, read from /boot: vmlinuz-6.1, config-6.1 not (there is none)", b.String())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "config-6.1"), nil, 0o600))
	b, err = findRunning(dir, "6.1")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "config-6.1"), b.Config)
	require.True(t, strings.HasSuffix(b.String(), ": vmlinuz-6.1, config-6.1"), b.String())
}
