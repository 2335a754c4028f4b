package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A profile that does not exist is a wrong use, where the file with the debugging information is no image, too.
func TestDefinitionsForAProfileThatIsNot(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not here")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.o")
	require.NoError(t, os.WriteFile(source, []byte("int f(int a) { return a; }\n"), 0o600))
	out, err := exec.Command(gcc, "-g", "-c", "-o", program, source).CombinedOutput()
	require.NoError(t, err, string(out))
	var stdout, stderr strings.Builder
	require.Equal(t, exitUsage, execute([]string{"kprobelab", "probe", "--profile", "nosuch", "-D", "f", program}, &stdout, &stderr))
	require.Contains(t, stderr.String(), `there is no profile "nosuch"`)
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"))
}
