package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An output that is not complete leaves nothing, and what had its name before stays.
func TestOutputsThatAreNotComplete(t *testing.T) {
	full := errors.New("no space left on device")
	for name, c := range map[string]struct {
		before string // of the file, "" for none
		make   func(t *testing.T, dir, name string)
		left   int // files in the folder
	}{
		"new_file":     {"", nil, 0},
		"file_that_is": {"before", nil, 1},
		"link_to_a_file": {"before", func(t *testing.T, dir, name string) {
			require.NoError(t, os.Rename(name, filepath.Join(dir, "real")))
			require.NoError(t, os.Symlink("real", name))
		}, 2},
		"read_only_file": {"before", func(t *testing.T, _, name string) { require.NoError(t, os.Chmod(name, 0o644)) }, 1},
		"private_file":   {"before", func(t *testing.T, _, name string) { require.NoError(t, os.Chmod(name, 0o600)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "out")
			if c.before != "" {
				require.NoError(t, os.WriteFile(file, []byte(c.before), 0o644))
			}
			if c.make != nil {
				c.make(t, dir, file)
			}
			o, err := Create(file)
			require.NoError(t, err)
			_, err = o.WriteString("half")
			require.NoError(t, err)
			require.ErrorIs(t, o.Done(full), full)
			list, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, list, c.left)
			if c.before != "" {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, c.before, string(b))
			}

			before, _ := os.Stat(file)
			require.NoError(t, Write(file, []byte("whole")))
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "whole", string(b))
			if after, err := os.Stat(file); before != nil {
				require.NoError(t, err)
				require.Equal(t, before.Mode(), after.Mode())
			}
		})
	}
	require.NoError(t, Write(os.DevNull, []byte("x")))
	if _, err := os.Stat("/dev/full"); err == nil {
		require.ErrorContains(t, Write("/dev/full", []byte("x")), "no space left")
	}
	require.Error(t, Write(filepath.Join(t.TempDir(), "no", "folder"), nil))
}
