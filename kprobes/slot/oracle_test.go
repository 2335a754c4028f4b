package slot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestSlotsAgainstRealKernels builds the slot of every point that a real
// kernel took, where the kernel put it, and compares it to the byte.
func TestSlotsAgainstRealKernels(t *testing.T) {
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			c, _ := profile.Named(name)
			points := oracle.Points(t, kernel)
			text := oracle.LiveText(t, kernel)
			v := image(t, kernel)
			compared := 0
			for _, p := range points {
				if p.Err != 0 || p.Ftrace {
					continue
				}
				at := p.ProbedAt(text)
				compareSlot(t, v, at, p, c)
				compared++
			}
			t.Logf("%d slots compared", compared)
			require.Greater(t, compared, 10000)
		})
	}
}

// image is the kernel's own file with its live text, so that the exception
// table is the one the kernel has.
func image(t *testing.T, kernel string) kimage.View {
	t.Helper()
	img, err := kimage.Open(oracle.Image(t, kernel), &kimage.Options{LiveText: oracle.File(t, kernel, "live.elf.zst")})
	require.NoError(t, err)
	return img
}

func compareSlot(t *testing.T, v kimage.View, at x86.Addr, p oracle.Point, c *profile.Config) {
	t.Helper()
	s, err := Build(v, at, p.SlotAddr, false, c)
	require.NoError(t, err, "%v", at)
	require.Equal(t, p.TPLen, s.Len, "%v: length of the slot", at)
	require.Equal(t, p.Slot[:p.TPLen], s.Bytes[:s.Len], "%v", at)
	require.Equal(t, p.InsnSize, s.InsnLen, "%v", at)
	require.Equal(t, p.Opcode, s.Opcode, "%v", at)
	require.Equal(t, p.Boost, s.Boosted, "%v: boosted", at)
	require.Equal(t, p.Emul, s.Emulation.String(), "%v", at)
	require.Equal(t, p.EType, s.Emulation.Type, "%v: type", at)
	require.Equal(t, p.EASize, s.Emulation.AddrSize, "%v: address size", at)
	require.Equal(t, p.Rel32, s.Emulation.Rel32, "%v: displacement", at)
}

// TestRefusalsAgainstRealKernels: the points that a rule of the slot refuses, not an earlier rule.
func TestRefusalsAgainstRealKernels(t *testing.T) {
	want := map[string]struct {
		rule  rule.ID
		errno errno.Errno
	}{
		"int3_byte": {rule.SlotInt3, errno.EINVAL},
		"mov_ss":    {rule.SlotMasksExceptions, errno.EINVAL},
	}
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			c, _ := profile.Named(name)
			points := oracle.Points(t, kernel)
			text := oracle.LiveText(t, kernel)
			v := image(t, kernel)
			compared := 0
			for _, p := range points {
				w, ok := want[p.Reason]
				if !ok || text.At(p.Addr) == nil {
					continue
				}
				_, err := Build(v, p.Addr, testSlot, false, c)
				var e *Error
				require.ErrorAs(t, err, &e, "%v", p.Addr)
				require.Equal(t, w.rule, e.Rule, "%v", p.Addr)
				require.ErrorIs(t, err, w.errno)
				compared++
			}
			t.Logf("%d refusals compared", compared)
			require.Positive(t, compared)
		})
	}
}
