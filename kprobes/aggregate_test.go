package kprobes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// trail records the names of handlers as they run.
type trail []string

func (tr *trail) probe(name string, at x86.Addr, withPost bool, ret int) *kprobes.Kprobe {
	p := &kprobes.Kprobe{Addr: at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
		*tr = append(*tr, "pre "+name)
		return ret
	}}
	if withPost {
		p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { *tr = append(*tr, "post "+name) }
	}
	return p
}

// TestAggregateOrder is docs/spec 1.6: newest first, for pre and post handlers.
func TestAggregateOrder(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorld(t, kernel, 1)
		var tr trail
		for i := range 3 {
			w.register(t, tr.probe(fmt.Sprint(i), w.steady, true, 0))
		}
		require.EqualValues(t, 6, w.result(t, w.steady, 5))
		require.Equal(t, trail{"pre 2", "pre 1", "pre 0", "post 2", "post 1", "post 0"}, tr)
	})
}

// TestNonZeroEndsTheWalk is docs/spec 1.6: the first pre handler that returns non-zero
// ends the walk, the step and the post handlers.
func TestNonZeroEndsTheWalk(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var tr trail
	w.register(t, tr.probe("old", w.steady, true, 0))
	stop := tr.probe("stop", w.steady, true, 0)
	stop.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		tr = append(tr, "pre stop")
		regs.IP = uint64(w.steady + 4)
		return 1
	}
	w.register(t, stop)
	w.register(t, tr.probe("new", w.steady, true, 0))
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.Equal(t, trail{"pre new", "pre stop"}, tr)
}

// TestDisabledMembersAreSkipped is docs/spec 1.6 and 1.8: disabled members are
// skipped; with the last one disabled the int3 goes, with one enabled it
// comes back.
func TestDisabledMembersAreSkipped(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var tr trail
	a := w.register(t, tr.probe("a", w.steady, true, 0))
	b := w.register(t, tr.probe("b", w.steady, true, 0))
	require.NoError(t, w.k.DisableKprobe(a))
	require.EqualValues(t, 0xcc, w.byteAt(w.steady))
	w.result(t, w.steady, 1)
	require.Equal(t, trail{"pre b", "post b"}, tr)

	require.NoError(t, w.k.DisableKprobe(b))
	require.Equal(t, w.clean, w.text())
	require.True(t, w.k.Find(w.steady).Disabled())
	tr = nil
	w.result(t, w.steady, 1)
	require.Empty(t, tr)

	require.NoError(t, w.k.EnableKprobe(a))
	require.EqualValues(t, 0xcc, w.byteAt(w.steady))
	w.result(t, w.steady, 1)
	require.Equal(t, trail{"pre a", "post a"}, tr)

	// A new member that is enabled arms a disabled aggregate.
	require.NoError(t, w.k.DisableKprobe(a))
	tr = nil
	w.register(t, tr.probe("c", w.steady, false, 0))
	require.EqualValues(t, 0xcc, w.byteAt(w.steady))
	w.result(t, w.steady, 1)
	require.Equal(t, trail{"pre c"}, tr)
}

// TestNmissedOfEveryMember is docs/spec 1.6 and the transcript recursion_nmissed: every
// member counts, disabled ones too; the aggregator itself does not.
func TestNmissedOfEveryMember(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var tr trail
	a := w.register(t, tr.probe("a", w.leaf, false, 0))
	b := w.register(t, tr.probe("b", w.leaf, false, 0))
	require.NoError(t, w.k.DisableKprobe(b))
	w.register(t, &kprobes.Kprobe{Addr: w.steady, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		require.EqualValues(t, 3, w.nested(regs, w.leaf, 2))
		return 0
	}})
	w.result(t, w.steady, 1)
	require.EqualValues(t, 1, a.Nmissed)
	require.EqualValues(t, 1, b.Nmissed)
	require.Zero(t, w.k.Find(w.leaf).Nmissed)
	require.Empty(t, tr)
}

// TestPostWalkerGoesWithTheLastPostHandler is docs/spec 1.8: the post walker goes with the last
// member that has a post handler.
// See docs/spec 1.6.
func TestPostWalkerGoesWithTheLastPostHandler(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var tr trail
	w.register(t, tr.probe("a", w.steady, false, 0))
	b := tr.probe("b", w.steady, true, 0)
	require.NoError(t, w.k.RegisterKprobe(b))
	w.result(t, w.steady, 1)
	require.Equal(t, trail{"pre b", "pre a", "post b"}, tr)
	w.k.UnregisterKprobe(b)
	tr = nil
	w.result(t, w.steady, 1)
	require.Equal(t, trail{"pre a"}, tr)
	require.NotSame(t, b, w.k.Find(w.steady), "the aggregator stays with its last member")
}

// TestMembersShareTheSlot: members have the same slot, and it is freed once.
// See docs/spec 1.6.
func TestMembersShareTheSlot(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	a, b := at(w.steady), at(w.steady)
	require.NoError(t, w.k.RegisterKprobes([]*kprobes.Kprobe{a, b}))
	sa, _ := a.Slot()
	sb, _ := b.Slot()
	require.Equal(t, sa, sb)
	require.Equal(t, a.Opcode(), b.Opcode())
	w.k.UnregisterKprobe(a)
	sb, ok := b.Slot()
	require.True(t, ok)
	require.Equal(t, sa.Addr, sb.Addr)
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	w.k.UnregisterKprobe(b)
}

// TestMembersChangeDuringWalk: a handler that adds or removes members does not
// disturb the walk that calls it.
// See docs/spec 1.6.
func TestMembersChangeDuringWalk(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var tr trail
	w.register(t, tr.probe("a", w.steady, true, 0))
	late := tr.probe("late", w.steady, true, 0)
	b := &kprobes.Kprobe{Addr: w.steady}
	b.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int {
		tr = append(tr, "pre b")
		w.k.UnregisterKprobe(b)
		require.NoError(t, w.k.RegisterKprobe(late))
		return 0
	}
	require.NoError(t, w.k.RegisterKprobe(b))
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.Equal(t, trail{"pre b", "pre a", "post late", "post a"}, tr)
	w.k.UnregisterKprobe(late)
}
