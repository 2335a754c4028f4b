package frontdoor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/integration/oracle"
)

// outside builds a file of testdata as a module that has this checkout by a
// replace directive, as README tells a user to.
func outside(t *testing.T, file string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	dir := t.TempDir()
	for from, to := range map[string]string{filepath.Join("testdata", file): "main.go", filepath.Join(root, "go.sum"): "go.sum"} {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), b, 0o600))
	}
	list := exec.Command("go", "list", "-m")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	module := strings.TrimSpace(string(out))
	for _, args := range [][]string{
		{"mod", "init", "outside"},
		{"mod", "edit", "-require=" + module + "@v0.0.0", "-replace=" + module + "=" + root},
		{"build", "-mod=mod", "-o", "outside", "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
	}
	return filepath.Join(dir, "outside")
}

func TestModuleOutsideUsesTheFrontDoorOnly(t *testing.T) {
	program := outside(t, "main.go.txt")
	run := func(t *testing.T, image, name, want string) {
		out, err := exec.Command(program, image, name).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), name+"(12, 18)\n"+want+"\n# tracer: nop\n")
		require.Regexp(t, `out: \(.* <- `+name+`\) got=`+want+`\n$`, string(out))
	}
	t.Run("guest kernel", func(t *testing.T) { run(t, "", "gcd", "6") })
	t.Run("real kernel", func(t *testing.T) {
		images, err := filepath.Glob(filepath.Join(oracle.Dir(t, "oracle"), "vmlinuz-*"))
		require.NoError(t, err)
		require.Len(t, images, 1)
		run(t, images[0], "__msecs_to_jiffies", "3") // HZ is 250
	})
}

func TestModuleOutsideRunsScripts(t *testing.T) {
	dump := runs.File(t, "6.1")
	out, err := exec.Command(outside(t, "scripts.go.txt"), dump).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "busybox opened 0\n")
	require.Contains(t, string(out), "@[/etc/hostname]: 1\n")
	require.Contains(t, string(out), "code 0, probes left: \"\"\n")
}
