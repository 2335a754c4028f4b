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

// idleDump is the dump of two processors with the registers of the one alone that has nothing to do.
func idleDump(t *testing.T) string {
	core, err := vmcore.Open(runs.File(t, "6.1.smp2"))
	require.NoError(t, err)
	defer core.Close()
	img := core.Image()
	require.Len(t, img.CPUs, 2)
	img.CPUs = img.CPUs[1:]
	file := filepath.Join(t.TempDir(), "idle")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, vmcore.Write(f, img))
	require.NoError(t, f.Close())
	return file
}

// TestADumpStoppedInIdle: an idle task makes no system call, and the error names tasks that do.
// Calls as another task work.
func TestADumpStoppedInIdle(t *testing.T) {
	k := bootFile(t, idleDump(t), &kprobelab.Options{Budget: budget})
	_, err := k.SystemCall("getpid")
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
