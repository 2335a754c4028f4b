package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// optKernels are the releases that optimize.
var optKernels = []string{"4.4", "5.8", "5.10", "6.1", "6.12"}

func optimizing(t *testing.T, fn func(t *testing.T, kernel string, w *optWorld)) {
	for _, kernel := range optKernels {
		t.Run(kernel, func(t *testing.T) { fn(t, kernel, newOptWorld(t, kernel)) })
	}
}

// counted is a probe that counts its hits.
type counted struct {
	kprobes.Kprobe
	hits int
}

func (w *optWorld) probe(t testing.TB, off int64, post bool) *counted {
	p := w.newProbe(off, post)
	require.NoError(t, w.k.RegisterKprobe(&p.Kprobe))
	t.Cleanup(func() { w.k.UnregisterKprobe(&p.Kprobe) })
	return p
}

func (w *optWorld) newProbe(off int64, post bool) *counted {
	p := &counted{}
	p.Addr = w.place(off)
	p.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int { p.hits++; return 0 }
	if post {
		p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) {}
	}
	return p
}

// A probe's whole life: waiting, a jump, undone.
func TestRule4_1States(t *testing.T) {
	optimizing(t, func(t *testing.T, kernel string, w *optWorld) {
		p := w.probe(t, 3, false)
		require.Equal(t, "optimizing", w.k.Queue(w.place(3)))
		require.True(t, w.k.Find(w.place(3)).Optimized())
		require.Equal(t, []byte{0xcc, 0x83, 0xc0, 0x01, 0x48}, w.bytesAt(3))
		w.result(t, 1)
		require.NoError(t, w.k.Settle())
		require.Empty(t, w.k.Queue(w.place(3)))
		d, ok := w.k.Detour(w.place(3))
		require.True(t, ok)
		require.Equal(t, d.Jump[:], w.bytesAt(3))
		require.Contains(t, w.k.List(), "[OPTIMIZED]")
		w.result(t, 2)
		w.k.UnregisterKprobe(&p.Kprobe)
		require.Equal(t, "unoptimizing", w.k.Queue(w.place(3)))
		require.Equal(t, d.Jump[:], w.bytesAt(3), "the jump stays until the worker comes")
		require.Equal(t, kernel != "4.4", w.k.Find(w.place(3)).Optimized())
		w.result(t, 3)
		require.NoError(t, w.k.Settle())
		require.Nil(t, w.k.Find(w.place(3)))
		require.Equal(t, w.clean, w.text())
		w.result(t, 4)
		require.Equal(t, 2, p.hits)
	})
}
