package boot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kernels"
)

// The dump that a word means, where nothing has to be fetched or booted.
func TestDumpsOfWords(t *testing.T) {
	dir := t.TempDir()
	s, err := kernels.Open(&kernels.Options{Dir: filepath.Join(dir, "kept"), Offline: true})
	require.NoError(t, err)
	b := &Keeper{Store: s}
	_, err = b.Find(t.Context(), "")
	require.Error(t, err, "there is none, and none can be fetched")

	k, err := s.Add(t.Context(), "../testdata/guest.elf", "")
	require.NoError(t, err)
	require.NoError(t, s.SaveDump(t.Context(), k, func(file string) error { return os.WriteFile(file, []byte("memory"), 0o600) }))
	file := filepath.Join(dir, "a.core")
	require.NoError(t, os.WriteFile(file, []byte("memory"), 0o600))
	for word, want := range map[string]string{"": k.Dump, k.Release: k.Dump, file: file, dir: dir} {
		got, err := b.Find(t.Context(), word)
		require.NoError(t, err, word)
		require.Equal(t, want, got, word)
	}
	_, err = b.Find(t.Context(), "1.2.3")
	require.ErrorIs(t, err, kernels.ErrOffline)

	image := filepath.Join(dir, "vmlinuz")
	require.NoError(t, os.WriteFile(image, []byte("MZ and no more"), 0o600))
	_, err = b.Find(t.Context(), image)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
}
