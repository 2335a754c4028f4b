package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mount ends when its output ends, by its bound or by a full disk. It is then unmounted, for no process serves it.
func TestMountWhoseOutputEndsIsUnmounted(t *testing.T) {
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip("there is no FUSE here: ", err)
	} else {
		require.NoError(t, f.Close())
	}
	if _, err := exec.LookPath("fusermount3"); err != nil && os.Geteuid() != 0 {
		t.Skip("to mount takes root, or fusermount3")
	}
	for name, c := range map[string]struct {
		args []string
		out  string
		code int
		says string
	}{
		"bound":             {[]string{"--max-output", "10"}, os.DevNull, exitRefused, "the output has reached --max-output 10, and the command had not ended"},
		"bound_of_a_byte":   {[]string{"--max-output", "1"}, os.DevNull, exitRefused, "the output has reached --max-output 1,"},
		"disk_that_is_full": {nil, "/dev/full", exitImage, "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out, err := os.OpenFile(c.out, os.O_WRONLY, 0)
			require.NoError(t, err)
			defer out.Close()
			var errs strings.Builder
			require.Equal(t, c.code, execute(append(append([]string{"kprobelab", "mount"}, c.args...), dir), out, &errs), errs.String())
			require.Contains(t, errs.String(), c.says)
			list, err := os.ReadDir(dir)
			require.NoError(t, err, "a mount without a server is left")
			require.Empty(t, list)
		})
	}
}
