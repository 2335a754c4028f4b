package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFolderThatCannotBeKept: a file that cannot be written is reported at once, before a kernel
// is looked for.
func TestAFolderThatCannotBeKept(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell here")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, script := range []string{"conformance.sh", "conformance-levels.sh"} {
		t.Run(script, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), "sh", script)
			c.Dir = "../../../scripts"
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
