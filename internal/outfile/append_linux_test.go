//go:build linux

package outfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A row that does not fit is not there at all, and what was before is. The test runs itself once more, with a limit on the
// size of files in place of a full disk.
func TestRowsAreAppendedWhole(t *testing.T) {
	if file := os.Getenv("APPEND_TO"); file != "" {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 15, Max: 15}))
		require.NoError(t, Append(file, "the first\n"))
		require.ErrorIs(t, Append(file, "the second\n"), unix.EFBIG)
		require.NoError(t, Append(file, "end\n"))
		return
	}
	file := filepath.Join(t.TempDir(), "rows")
	cmd := exec.Command(os.Args[0], "-test.run=^TestRowsAreAppendedWhole$")
	cmd.Env = append(os.Environ(), "APPEND_TO="+file)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "the first\nend\n", string(b))
}
