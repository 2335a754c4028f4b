package running

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kimage/vmcore"
)

// oneOfTwo writes the dump of two processors with the registers of one alone.
func oneOfTwo(t *testing.T, cpu int) string {
	core, err := vmcore.Open(runs.File(t, "6.1.smp2"))
	require.NoError(t, err)
	defer core.Close()
	img := core.Image()
	require.Len(t, img.CPUs, 2)
	img.CPUs = img.CPUs[cpu : cpu+1]
	file := filepath.Join(t.TempDir(), "idle")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, vmcore.Write(f, img))
	require.NoError(t, f.Close())
	return file
}

// TestADumpStoppedInIdle: an idle task makes no system call, and the error names tasks that do.
// Calls as another task work. The dump's only program is on one of the two processors, either one.
func TestADumpStoppedInIdle(t *testing.T) {
	var k *kernel
	var err error
	for cpu := range 2 {
		k = bootFile(t, oneOfTwo(t, cpu), &kprobelab.Options{Budget: budget})
		if _, err = k.SystemCall("getpid"); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, errno.EINVAL)
	require.ErrorContains(t, err, "the dump's task is not in a system call of a 64-bit program; --as TASK calls as another one")
	v, err := k.Call("int_sqrt", 81)
	require.NoError(t, err)
	require.EqualValues(t, 9, v, "a function needs no program")
	require.NoError(t, k.As("kthreadd"))
	v, err = k.Call("int_sqrt", 64)
	require.NoError(t, err)
	require.EqualValues(t, 8, v)
}
