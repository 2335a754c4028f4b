//go:build unix

package own

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
)

// Answers that another user can have written are not believed.
func TestAnswersOfAnotherUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "measured")
	file := filepath.Join(dir, "a.json")
	want := []kimage.Answer{{Field: "f", Value: "v", Evidence: "e"}}
	writeCache(file, want)
	require.Equal(t, want, readCache(file))
	require.NoError(t, os.Chmod(file, 0o666))
	require.Nil(t, readCache(file))
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.Nil(t, readCache(file))
	require.NoError(t, os.Chmod(dir, 0o700))
	require.Equal(t, want, readCache(file))
	if os.Chown(file, 12345, -1) == nil {
		require.Nil(t, readCache(file))
	}
	// A link that leads to another's file is that file.
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte(`{"version":1,"answers":[]}`), 0o666))
	require.NoError(t, os.Chmod(other, 0o666))
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Symlink(other, file))
	require.Nil(t, readCache(file))
}
