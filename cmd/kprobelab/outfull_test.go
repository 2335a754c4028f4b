//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kprobelab/internal/outfile"
)

// A disk that is full is one sentence and exit code 3, whatever is written: here a device that is always full.
func TestOutputsOnAFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	for name, write := range map[string]func(string) error{
		"trace_output": func(name string) error { return outfile.Write(name, []byte("a trace")) },
		"append":       func(name string) error { return appendWhole(name, "a row\n") },
	} {
		err := write("/dev/full")
		require.EqualError(t, err, "write /dev/full: no space left on device", name)
		require.Equal(t, exitImage, exitCode(err), name)
	}
}

// A row that does not fit is not there at all, and what was before is. The test runs itself once more, with a limit on the
// size of files in place of a full disk.
func TestRowsAreAppendedWhole(t *testing.T) {
	if file := os.Getenv("APPEND_TO"); file != "" {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 15, Max: 15}))
		require.NoError(t, appendWhole(file, "the first\n"))
		require.ErrorIs(t, appendWhole(file, "the second\n"), unix.EFBIG)
		require.NoError(t, appendWhole(file, "end\n"))
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
