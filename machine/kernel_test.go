package machine_test

import (
	"hash/crc32"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	. "kprobelab/machine"
)

var (
	kernelMu sync.Mutex
	kernels  = map[string]*kimage.Image{}
)

// bootKernel makes a machine of a measured kernel's image.
func bootKernel(t testing.TB, kernel string, o *Options) *Machine {
	t.Helper()
	file := oracle.Image(t, kernel)
	kernelMu.Lock()
	defer kernelMu.Unlock()
	img := kernels[kernel]
	if img == nil {
		var err error
		img, err = kimage.Open(file, nil)
		require.NoError(t, err)
		kernels[kernel] = img
	}
	return boot(t, img, o)
}

func TestRealKernelFunctions(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			m := bootKernel(t, kernel, &Options{CPUs: 2})
			buf := make([]byte, 64)
			n, err := m.Call("snprintf", buf, len(buf), "%s-%04d:%#llx %c", "probe", 42, uint64(0xdeadbeefcafe), '!')
			require.NoError(t, err)
			require.Equal(t, "probe-0042:0xdeadbeefcafe !", string(buf[:n]))

			msg := []byte("what the kernel computes")
			got, err := m.Call("crc32_le", ^uint32(0), msg, len(msg))
			require.NoError(t, err)
			require.Equal(t, ^crc32.ChecksumIEEE(msg), uint32(got))

			got, err = m.Call("gcd", 84, 36)
			require.NoError(t, err)
			require.Equal(t, uint64(12), got)

			got, err = m.Call("copy_from_kernel_nofault", make([]byte, 8), uint64(0xffff8880f0000000), 8)
			require.NoError(t, err)
			require.Equal(t, int32(-14), int32(got), "the exception table catches it")

			// cpu_rq(1)->nr_iowait: another CPU's variable, by __per_cpu_offset
			got, err = m.Call("nr_iowait_cpu", 1)
			require.NoError(t, err)
			require.Zero(t, got)
		})
	}
}

func BenchmarkNewKernelMachine(b *testing.B) {
	bootKernel(b, "oracle", nil)
	for b.Loop() {
		m, err := open(kernels["oracle"], nil)
		require.NoError(b, err)
		m.Close()
	}
}
