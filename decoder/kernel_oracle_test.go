package decoder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/profile"
)

// TestKernelLengthsAgainstRealKernels compares the length that three real
// kernels found for every probed instruction.
func TestKernelLengthsAgainstRealKernels(t *testing.T) {
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			c, _ := profile.Named(name)
			points := oracle.Points(t, kernel)
			text := oracle.LiveText(t, kernel)
			compared := 0
			for _, p := range points {
				b := text.At(p.ProbedAt(text))
				if p.InsnSize == 0 || b == nil || !sameInsn(p, b) {
					continue
				}
				k, err := DecodeKernel(b, &c.Decoder)
				require.NoError(t, err, "%v", p.Addr)
				require.Equal(t, p.InsnSize, k.Length, "%v", p.Addr)
				compared++
			}
			t.Logf("%d instructions compared", compared)
			require.Greater(t, compared, 10000)
		})
	}
}

// sameInsn reports whether the dumped text equals the text at the row's boot: a few places differ
// from boot to boot.
func sameInsn(p oracle.Point, b []byte) bool {
	return len(b) >= 5 && p.Opcode == b[0]
}
