package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// TestGoneProbes is docs/spec 1.10: probes whose code has gone are listed as such, cannot
// be enabled, and go away without the text being written.
func TestGoneProbes(t *testing.T) {
	w := newWorld(t, "5.10", 1)
	a, b, c := at(w.leaf), at(w.steady), at(w.steady)
	other := at(w.traced)
	require.NoError(t, w.k.RegisterKprobes([]*kprobes.Kprobe{a, b, c, other}))
	w.k.KillKprobes(x86.Range{Start: w.leaf, End: w.steady + 16})
	pokes := w.pokes
	for _, p := range []*kprobes.Kprobe{a, b, c} {
		require.True(t, p.Gone())
		refused(t, w.k.EnableKprobe(p), errno.EINVAL, rule.Gone)
		require.NoError(t, w.k.DisableKprobe(p))
		_, ok := p.Slot()
		require.False(t, ok)
	}
	require.False(t, other.Gone())
	require.Contains(t, w.k.List(), "leaf+0x0    [GONE]\n")
	w.k.KillKprobes(x86.Range{Start: w.leaf, End: w.steady + 16})
	w.k.UnregisterKprobes([]*kprobes.Kprobe{a, b, c})
	require.Equal(t, pokes, w.pokes)
	require.Equal(t, 1, w.k.Registered())
	w.k.UnregisterKprobe(other)
	copy(w.mem(textBase, textSize), w.clean) // the code that was there is not restored
}

// TestGoneAddressIsUsedAgain is docs/spec 1.6: a probe on new code at an address
// whose old probes are gone.
func TestGoneAddressIsUsedAgain(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	old := at(w.steady)
	require.NoError(t, w.k.RegisterKprobe(old))
	w.k.KillKprobes(x86.Range{Start: w.steady, End: w.steady + 1})
	copy(w.mem(textBase, textSize), w.clean)
	var r recorder
	p := w.register(t, r.probe(w.steady, true))
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.Equal(t, []string{"pre", "post"}, r.order)
	require.True(t, old.Gone())
	w.k.UnregisterKprobe(old)
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.Equal(t, 2, r.post)
	require.False(t, p.Disabled())
}
