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

// A link where answers are kept is replaced: what it leads to is not written.
func TestLinksInTheWayOfAnswers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "measured")
	require.NoError(t, os.Mkdir(dir, 0o700))
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
	file := filepath.Join(dir, "a.json")
	require.NoError(t, os.Symlink(victim, file))
	want := []kimage.Answer{{Field: "f", Value: "v", Evidence: "e"}}
	writeCache(file, want)
	require.Equal(t, want, readCache(file))
	b, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 1, "no temporary file is left")
}
