package bounded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadBelow(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "dir")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "x.c"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(top, "secret"), []byte("s"), 0o600))
	require.NoError(t, os.Symlink("../../secret", filepath.Join(dir, "a", "out.c")))
	require.NoError(t, os.Symlink("x.c", filepath.Join(dir, "a", "in.c")))
	for name, want := range map[string]bool{
		"a/x.c": true, "a/../a/x.c": true, "a/in.c": true,
		"a/out.c": false, "../secret": false, "a/../../secret": false, filepath.Join(top, "secret"): false, "a": false, "nosuch": false, "": false,
	} {
		b, err := ReadBelow(dir, name, 10)
		require.Equal(t, want, err == nil, name)
		require.Equal(t, want, string(b) == "x", name)
	}
	_, err := ReadBelow(dir, "a/x.c", 0)
	require.ErrorIs(t, err, ErrTooLong)
	_, err = ReadBelow("/proc/self", "environ", 1<<20)
	require.NoError(t, err)
	_, err = ReadBelow("/dev", "zero", 10)
	require.Error(t, err)
}
