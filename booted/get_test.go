package booted

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
)

func dirent(name string, size int) []byte {
	b := make([]byte, 19, 64)
	b = append(append(b, name...), 0)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	if size == 0 {
		size = len(b)
	}
	binary.LittleEndian.PutUint16(b[16:], uint16(size))
	return b
}

// TestEntriesOfAFolder: a name that would lead out of the folder is refused, and what is damaged, too.
func TestEntriesOfAFolder(t *testing.T) {
	names, err := entries(append(append(dirent(".", 0), dirent("..", 0)...), append(dirent("b", 0), dirent("a-long-name", 0)...)...))
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a-long-name"}, names)
	for _, name := range []string{"../x", "/etc/passwd", "", "a/b"} {
		_, err := entries(dirent(name, 0))
		require.ErrorIs(t, err, ErrOut, name)
	}
	for _, size := range []int{1, 18, 200} {
		_, err := entries(dirent("x", size))
		require.ErrorIs(t, err, errno.EIO, size)
	}
	_, err = entries([]byte("short"))
	require.ErrorIs(t, err, errno.EIO)
}
