package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/process"
)

// The files that a program without a kernel has are bounded, how many there are and their bytes.
func TestFilesThatAreTooMany(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(name, []byte("abc"), 0o600))
	t.Run("ProgramFiles", func(t *testing.T) {
		f := &Files{others: make([]*process.File, bounded.ProgramFiles-1)}
		require.NoError(t, f.Add("/x="+dir))
		require.ErrorContains(t, f.Add("/x="+dir), dir+": --file takes 20000 files at most")
	})
	t.Run("ProgramBytes", func(t *testing.T) {
		f := &Files{bytes: bounded.ProgramBytes - 3}
		require.NoError(t, f.Add("/x="+name))
		require.ErrorContains(t, f.Add("/x="+name), "the files of --file have more than 1024 MB")
		f = &Files{bytes: bounded.ProgramBytes - 2}
		require.ErrorContains(t, f.Add("/x="+dir), "the files of --file have more than 1024 MB")
	})
}
