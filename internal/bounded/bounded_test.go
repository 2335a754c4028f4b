package bounded

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// endless is a stream like /dev/zero.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestUnboundedReads(t *testing.T) {
	for n := range 6 {
		b, err := ReadAll(iotest.OneByteReader(strings.NewReader("abcdef"[:n])), 5)
		require.NoError(t, err)
		require.Equal(t, "abcdef"[:n], string(b))
	}
	b, err := ReadAll(strings.NewReader("abcdef"), 5)
	require.ErrorIs(t, err, ErrTooLong)
	require.Equal(t, "abcde", string(b))
	b, err = ReadAll(endless{}, 1<<20)
	require.EqualError(t, err, "too long: more than 1 MiB are not read")
	require.Len(t, b, 1<<20)

	name := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(name, []byte("abc"), 0o600))
	b, err = ReadFile(name, 3)
	require.NoError(t, err)
	require.Equal(t, "abc", string(b))
	for _, file := range []string{name, "/dev/zero"} {
		_, err = ReadFile(file, 2)
		var path *fs.PathError
		require.ErrorAs(t, err, &path)
		require.ErrorIs(t, err, ErrTooLong)
	}
	_, err = ReadFile(name+"x", 2)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
