package bounded

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFIFOWithoutWriter: it is an error, and a writer that comes late is not.
func TestFIFOWithoutWriter(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	_, err := openPipe(name, time.Millisecond)
	require.EqualError(t, err, "read "+name+": nothing writes to this FIFO")

	go func() {
		w, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err == nil {
			_, _ = w.WriteString("late")
			_ = w.Close()
		}
	}()
	f, err := Open(name)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "late", string(b))
}
