package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestScripts(t *testing.T) {
	for _, tool := range []string{"sh", "awk", "sort"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on PATH, and the scripts need it", tool)
		}
	}
	scripts, err := filepath.Abs("../../../scripts")
	require.NoError(t, err)
	// Every script has to work in a path with a blank.
	root := filepath.Join(t.TempDir(), "a b")
	require.NoError(t, os.Mkdir(root, 0o755))
	testscript.Run(t, testscript.Params{
		Dir:         filepath.Join("testdata", "script"),
		WorkdirRoot: root,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SCRIPTS", scripts)
			e.Setenv("PLAIN", t.TempDir())
			return nil
		},
	})
}
