package scripts_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/scripts"
)

// A script finds what it sources, and says what it cannot do; nothing is fetched.
func TestFetchRunsWhereItIsLaidDown(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
	dir := filepath.Join(t.TempDir(), "a folder")
	qemu := filepath.Join(dir, "qemu")
	t.Setenv("KPROBELAB_QEMU", qemu)
	var said bytes.Buffer
	got, err := scripts.Fetch(t.Context(), dir, "qemu.sh", &said)
	require.NoError(t, err, said.String())
	require.Equal(t, qemu, got)

	t.Setenv("FLAVOUR", "none")
	_, err = scripts.Fetch(t.Context(), dir, "kernel.sh", &said)
	require.ErrorIs(t, err, scripts.ErrFetch)
	require.Contains(t, said.String(), "FLAVOUR=none is none of")
	list, err := os.ReadDir(filepath.Join(dir, "scripts"))
	require.NoError(t, err)
	require.Len(t, list, 7, "no temporary file stays")
}

// TestAFolderThatCannotBeKept: what cannot be written is said at once, before a kernel is looked for.
func TestAFolderThatCannotBeKept(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, script := range []string{"conformance.sh", "conformance-levels.sh"} {
		t.Run(script, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), "sh", script)
			// A kernel that is no file would end it with another sentence.
			c.Env = append(os.Environ(), "KEEP="+file+"/kept", "KERNEL="+file+"/none")
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 2, exit.ExitCode())
			require.Contains(t, string(out), "KEEP="+file+"/kept: nothing can be kept there")
			require.NotContains(t, string(out), "KERNEL=")
		})
	}
}
