package probepoint_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestOracle registers every measured point of three real kernels, over each kernel's image with
// its live text, and compares with the kernel's answer: errno, FTRACE and ON_FUNC_ENTRY flags,
// boosting, emulation, the saved opcode and the slot's bytes.
func TestOracle(t *testing.T) {
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			points := oracle.Points(t, kernel)
			img := openOracle(t, kernel)
			c := named(t, name)
			wrong, slots := map[string]int{}, 0
			for i := range points {
				p := &points[i]
				if len(p.Slot) > 0 {
					slots++
				}
				for _, d := range differences(img, p, c) {
					wrong[d]++
					if wrong[d] <= 8 {
						t.Errorf("%s: %v %s+%d (%s, %s): kernel %d", d, p.Addr, p.Sym, p.Off, p.Kind, p.Reason, p.Err)
					}
				}
			}
			t.Logf("%d points, %d with a slot, different: %v", len(points), slots, wrong)
			require.Greater(t, slots, len(points)/2)
			require.Empty(t, wrong)
		})
	}
}

func openOracle(t testing.TB, kernel string) *kimage.Image {
	img, err := kimage.Open(oracle.Image(t, kernel), &kimage.Options{LiveText: oracle.File(t, kernel, "live.elf.zst")})
	require.NoError(t, err)
	return img
}

// differences lists the fields in which this package's answer differs from the kernel's.
func differences(v kimage.View, p *oracle.Point, c *profile.Config) (diff []string) {
	is := func(name string, same bool) {
		if !same {
			diff = append(diff, name)
		}
	}
	pt, err := probepoint.Resolve(v, probepoint.Request{Addr: p.Addr}, c)
	var how probepoint.Placement
	if err == nil {
		how, err = probepoint.Place(v, &pt, p.SlotAddr, false, c)
	}
	is("errno", -int(errno.Of(err)) == p.Err)
	if err != nil || p.Err != 0 {
		return diff
	}
	is("ftrace", pt.Ftrace == p.Ftrace)
	is("entryflag", pt.Entry && c.Resolve.EntryFlag == p.EntryFlag || !pt.Entry && !p.EntryFlag)
	if p.Ftrace || pt.Ftrace {
		return diff
	}
	s := &how.Slot
	is("boost", s.Boosted == p.Boost)
	is("emulation", s.Emulation.String() == p.Emul)
	is("opcode", s.Opcode == p.Opcode)
	is("size", s.InsnLen == p.InsnSize)
	is("tp_len", s.Len == p.TPLen)
	is("slot", len(p.Slot) >= min(s.Len, 16) && bytes.Equal(s.Bytes[:min(s.Len, 16)], p.Slot[:min(s.Len, 16)]))
	return diff
}

// TestOracleInsideInstructions: an address inside an instruction that another point
// shows to be whole is refused.
func TestOracleInsideInstructions(t *testing.T) {
	points := oracle.Points(t, "oracle")
	img := openOracle(t, "oracle")
	c := named(t, "6.1")
	n := 0
	for i := 0; i < len(points); i += 50 {
		p := &points[i]
		if p.Err != 0 || p.InsnSize < 2 {
			continue
		}
		at := p.Addr + x86.Addr(p.InsnSize-1)
		pt, err := probepoint.Resolve(img, probepoint.Request{Addr: at}, c)
		require.NoError(t, err)
		require.Error(t, probepoint.Check(img, &pt, c), "%s+%d", p.Sym, p.Off)
		n++
	}
	t.Logf("%d addresses inside instructions refused", n)
}
