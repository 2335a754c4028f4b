//go:build linux

package mount

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestNonBlockingReads: trace_pipe keeps O_NONBLOCK, given at open or by fcntl.
func TestNonBlockingReads(t *testing.T) {
	f := live(t)
	m := mountOf(t, f.Tree(), f.Guest())
	pipe, b := filepath.Join(m.Dir(), "trace_pipe"), make([]byte, 4096)
	for _, flag := range []int{unix.O_NONBLOCK, 0} {
		fd, err := unix.Open(pipe, unix.O_RDONLY|flag, 0)
		require.NoError(t, err)
		// A file that is open as the process ends would keep it for ever: its own
		// server is to answer the close.
		defer unix.Close(fd)
		if flag == 0 {
			require.NoError(t, unix.SetNonblock(fd, true))
		}
		_, err = unix.Read(fd, b)
		require.ErrorIs(t, err, unix.EAGAIN)
		require.NoError(t, f.write("trace_marker", "hello"))
		n, err := unix.Read(fd, b)
		require.NoError(t, err)
		require.Contains(t, string(b[:n]), "hello")
		_, err = unix.Read(fd, b)
		require.ErrorIs(t, err, unix.EAGAIN)
	}
}
