package kprobestest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kprobes"
	"kprobelab/kprobestest"
	"kprobelab/x86"
)

// What a test does to a booted kernel, the next one does not see; its machine is the
// same one.
func TestBootedKernelIsFreshForEachTest(t *testing.T) {
	file := runs.File(t, "6.1")
	const exist = -17
	for range 3 {
		t.Run("", func(t *testing.T) {
			m := kprobestest.New(t, &kprobestest.Options{Image: file})
			reads := 0
			m.Kprobe("vfs_read", func(*kprobes.Kprobe, *x86.PtRegs) int { reads++; return 0 }, nil)
			readFile(t, m.Lab())
			require.Equal(t, 1, reads)
			require.Zero(t, m.SystemCall("mkdir", "/tmp/new", 0o777))
			require.EqualValues(t, exist, m.SystemCall("mkdir", "/tmp/new", 0o777))
			output, code := m.Exec("/bin/busybox", "ls", "/tmp")
			require.Equal(t, "new\n", output)
			require.Zero(t, code)
		})
	}
}

func TestLeakCheckOfBootedKernel(t *testing.T) {
	file := runs.File(t, "6.1")
	said := (&recorder{}).run(func(f testing.TB) {
		m := kprobestest.New(f, &kprobestest.Options{Image: file})
		at := m.Symbol("do_sys_openat2").Addr
		require.NoError(t, m.Emu().PokeText(at+8, []byte{0xcc}))
	})
	require.Len(t, said, 1)
	require.Contains(t, said[0], "text is not restored: 0xcc at do_sys_openat2+0x8/")
	said = (&recorder{}).run(func(f testing.TB) { kprobestest.New(f, &kprobestest.Options{Image: file}) })
	require.Empty(t, said, "a machine with other text went on to the next test")
}
