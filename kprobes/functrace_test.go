package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/x86"
)

// The tracer and a probe share the site: it is a call while either needs it, and the CPU's own nop
// in the end, whichever leaves first.
func TestTracedSiteIsACallWhileAnyoneNeedsIt(t *testing.T) {
	onFtrace(t, func(t *testing.T, w *world) {
		none := func(x86.Addr, *x86.PtRegs) {}
		called := func(want bool) {
			t.Helper()
			if want {
				require.EqualValues(t, 0xe8, w.byteAt(w.traced))
			} else {
				require.Equal(t, nop5, string(w.mem(w.traced, 5)))
			}
		}
		for _, probeFirst := range []bool{true, false} {
			p := at(w.traced)
			if probeFirst {
				w.register(t, p)
			}
			require.NoError(t, w.k.TraceFunctions([]x86.Addr{w.traced, w.traced}, none))
			called(true)
			if !probeFirst {
				w.register(t, p)
			}
			require.NoError(t, w.k.DisableKprobe(p))
			called(true)
			require.NoError(t, w.k.EnableKprobe(p))
			require.NoError(t, w.k.TraceFunctions(nil, nil))
			called(true)
			w.k.UnregisterKprobe(p)
			called(false)
		}
	})
}

func TestTraceOnlySites(t *testing.T) {
	onFtrace(t, func(t *testing.T, w *world) {
		err := w.k.TraceFunctions([]x86.Addr{w.traced + 1}, func(x86.Addr, *x86.PtRegs) {})
		require.ErrorIs(t, err, errno.EINVAL)
		require.Equal(t, nop5, string(w.mem(w.traced, 5)))
	})
}
