package running

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
)

// TestCodeWrittenByAnotherAddress: the bytes that were written last are executed, whatever the
// address of the write (SDM Vol. 3A, 13.6, self-modifying code; the kernel changes programs by its
// own addresses).
func TestCodeWrittenByAnotherAddress(t *testing.T) {
	program := filepath.Join(t.TempDir(), "alias")
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc to assemble the program with")
	}
	out, err := exec.Command("gcc", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-o", program, "testdata/alias.S").CombinedOutput()
	require.NoError(t, err, "%s", out)
	code, err := os.ReadFile(program)
	require.NoError(t, err)
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			runs.File(t, name)
			k := boot(t, name)
			k.put("/alias", code)
			require.Equal(t, ended{}, k.program("/alias"))
		})
	}
}

// put makes a program of the guest.
func (k *kernel) put(path string, code []byte) {
	call := func(name string, args ...any) int64 {
		v, err := k.SystemCall(name, args...)
		require.NoError(k.t, err, name)
		require.GreaterOrEqual(k.t, v, int64(0), name)
		return v
	}
	const cwd, writeCreate, executable = -100, 0o101, 0o755
	fd := call("openat", cwd, path, writeCreate, executable)
	require.EqualValues(k.t, len(code), call("write", fd, code, len(code)))
	call("close", fd)
}

// TestTheClockGoesOn: a dump's kernel has been up for seconds, and finds itself so.
func TestTheClockGoesOn(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			runs.File(t, name)
			k := bootWith(t, name, &kprobelab.Options{Budget: budget})
			seconds := func() float64 {
				first, _, _ := strings.Cut(k.program("/bin/busybox", "cat", "/proc/uptime").out, " ")
				v, err := strconv.ParseFloat(first, 64)
				require.NoError(t, err)
				return v
			}
			before := seconds()
			require.Less(t, before, 60.0)
			require.Zero(t, k.program("/bin/busybox", "sleep", "3").code)
			require.InDelta(t, 3, seconds()-before, 0.5)
		})
	}
}
