package archtest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A build of a fresh clone before make deps ends with a sentence that names the command to run, not
// with a wall of missing headers.
func TestBuildWithoutUnicornSaysWhatToRun(t *testing.T) {
	if out, err := exec.Command("go", "env", "GOOS", "GOARCH", "CGO_ENABLED").Output(); err != nil || string(out) != "linux\namd64\n1\n" {
		t.Skip("a build here has no engine")
	}
	cmd := exec.Command("go", "build", "-tags=unicorn", "./emu")
	cmd.Dir = repositoryRoot(t)
	cmd.Env = append(os.Environ(), "CGO_CFLAGS=", "CGO_LDFLAGS=", "C_INCLUDE_PATH=", "CPATH=")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Skip("this system has Unicorn of its own")
	}
	// A failing build of a busy machine may say that it could not remove its folder.
	said := regexp.MustCompile(`(?m)^go: unlinkat .*\n?`).ReplaceAllString(string(out), "")
	require.Equal(t, "# "+module+"/emu\n"+
		"Unicorn:1:2: error: #error Unicorn 2.1 is not set up here: run make deps, then eval \"$(make env)\"",
		strings.TrimSpace(said))
}
