package vmcore

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
)

// makedumpfile reads a file of Write, and its output is read here: each page that it has
// kept is the same.
func TestMakedumpfile(t *testing.T) {
	program, err := exec.LookPath("makedumpfile")
	if err != nil {
		t.Skip("no makedumpfile on PATH")
	}
	core, err := Open(dumps.File(t, "6.1"))
	require.NoError(t, err)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	f, err := os.Create(plain)
	require.NoError(t, err)
	require.NoError(t, Write(f, core.Image()))
	require.NoError(t, f.Close())
	for _, how := range []string{"-c", "-l", "-p", "-z"} {
		for _, level := range []string{"1", "31"} {
			t.Run(how+" -d "+level, func(t *testing.T) {
				out := filepath.Join(dir, how+level)
				text, err := exec.Command(program, how, "-d", level, plain, out).CombinedOutput()
				require.NoError(t, err, string(text))
				requireKept(t, core, out)
			})
		}
	}
}

func requireKept(t *testing.T, want *Core, path string) {
	got, err := Open(path)
	require.NoError(t, err)
	defer got.Close()
	require.Equal(t, want.CPUs(), got.CPUs())
	require.Equal(t, want.VMCoreInfo(), got.VMCoreInfo())
	kept := 0
	a, b := make([]byte, PageSize), make([]byte, PageSize)
	for _, r := range got.RAM() {
		for phys := r.Phys; phys < r.End(); phys += PageSize {
			var filtered *FilteredError
			err := got.ReadPhys(phys, a)
			if errors.As(err, &filtered) {
				continue
			}
			require.NoError(t, err)
			require.NoError(t, want.ReadPhys(phys, b))
			require.True(t, bytes.Equal(a, b), "%#x", phys)
			kept++
		}
	}
	require.Greater(t, kept, 1000)
}
