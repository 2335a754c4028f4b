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

// TestConfigurationsThatCannotBeDrawn: a sentence and exit code 2 or 1, before a source is fetched.
func TestConfigurationsThatCannotBeDrawn(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
	for _, c := range []struct{ name, set, says string }{
		{"no number", "DRAWN=x", "DRAWN=x: a number of configurations from 1 to 99 is wanted"},
		{"none", "DRAWN=0", "DRAWN=0: a number"},
		{"too many", "DRAWN=100", "DRAWN=100: a number"},
		{"below none", "DRAWN=-1", "DRAWN=-1: a number"},
		{"a file that is not there", "CONFIGS=none", "there is no scripts/configs/none.config"},
		{"the base alone", "CONFIGS=base", "there is no scripts/configs/base.config"},
		{"a suite that is a path", "SUITE=../x", "../x is no name of a Debian release"},
		{"a seed that is a path", "SEED=../x", "SEED=../x: a number is wanted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := exec.CommandContext(t.Context(), "sh", "conformance-configs.sh")
			p.Env = append(os.Environ(), c.set)
			out, err := p.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Contains(t, []int{1, 2}, exit.ExitCode(), string(out))
			require.Contains(t, string(out), c.says)
			require.NotContains(t, string(out), "fetching")
		})
	}
}
