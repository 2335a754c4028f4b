package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A user of libtracefs finds the files at the directory, and the image's symbols, and
// cannot come to the running kernel's: nothing of the caller's mount table is seen.
func TestWithTracefs(t *testing.T) {
	for _, may := range [][]string{{"unshare", "--mount", "true"}, {"unshare", "--map-root-user", "--mount", "true"}} {
		if err := exec.Command(may[0], may[1:]...).Run(); os.Geteuid() == 0 || len(may) == 4 {
			if err != nil {
				t.Skipf("no mount namespaces for this user, who is not root: %v", err)
			}
			break
		}
	}
	script, err := filepath.Abs("../../../scripts/with-tracefs.sh")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "a b")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "kprobelab"), 0o755))
	run := func(args ...string) (string, error) {
		out, err := exec.Command(script, args...).CombinedOutput()
		return string(out), err
	}
	_, err = run()
	require.Error(t, err)
	out, err := run(dir, "true")
	require.Error(t, err)
	require.Contains(t, out, "has no kprobe_events: mount it first")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "kprobe_events"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kprobelab/kallsyms"), []byte("ffffffff81000000 T _text\n"), 0o644))
	out, err = run(dir, "cat", "/proc/mounts", "/proc/kallsyms")
	require.NoError(t, err, out)
	escaped := filepath.Join(filepath.Dir(dir), `a\040b`)
	require.Equal(t, "tracefs "+escaped+" tracefs rw 0 0\ndebugfs "+escaped+" debugfs rw 0 0\nffffffff81000000 T _text\n", out)
	out, err = run(dir, "cat", "/proc/sys/kernel/ftrace_enabled")
	require.NoError(t, err, out)
	require.Equal(t, "1\n", out)
	out, err = run(dir, "sh", "-c", "exit 7")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, out)
	require.Equal(t, 7, exit.ExitCode(), "the command's own")
}
