package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// TestLifeCycle is the second half of the transcript misuse: one object, used wrongly and rightly.
// See docs/spec 1.8.
func TestLifeCycle(t *testing.T) {
	for _, kernel := range []string{"5.10", "6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			w := newWorld(t, kernel, 1)
			entry := kprobes.FlagOnFuncEntry
			if kernel == "5.10" {
				entry = 0
			}
			var log []string
			w.k.OnLog(func(line string) { log = append(log, line) })

			hits := 0
			k1 := &kprobes.Kprobe{Addr: w.leaf, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }}
			require.NoError(t, w.k.RegisterKprobe(k1))
			refused(t, w.k.RegisterKprobe(k1), errno.EINVAL, rule.Reregistered)
			require.Len(t, log, map[string]int{"5.10": 0, "6.1": 1, "6.12": 1}[kernel])

			k2 := at(w.leaf)
			require.NoError(t, w.k.RegisterKprobe(k2))
			refused(t, w.k.RegisterKprobe(k2), errno.EINVAL, rule.Reregistered)
			w.k.UnregisterKprobe(k2)
			require.Equal(t, w.leaf, k2.Addr)
			require.Equal(t, kprobes.FlagDisabled|entry, k2.Flags)
			w.k.UnregisterKprobe(k2)
			require.Zero(t, k2.Addr, "unregistering twice clears the address")
			refused(t, w.k.DisableKprobe(k2), errno.EINVAL, rule.NotRegistered)
			refused(t, w.k.EnableKprobe(k2), errno.EINVAL, rule.NotRegistered)

			require.NoError(t, w.k.DisableKprobe(k1))
			require.Equal(t, kprobes.FlagDisabled|entry, k1.Flags)
			require.EqualValues(t, 0x48, w.byteAt(w.leaf))
			w.result(t, w.leaf, 1)
			require.Zero(t, hits)
			require.NoError(t, w.k.DisableKprobe(k1), "disabling twice")
			require.NoError(t, w.k.EnableKprobe(k1))
			require.Equal(t, entry, k1.Flags)
			require.EqualValues(t, 0xcc, w.byteAt(w.leaf))
			w.result(t, w.leaf, 1)
			require.Equal(t, 1, hits)

			w.k.UnregisterKprobe(k1)
			require.Equal(t, w.leaf, k1.Addr)
			require.Equal(t, kprobes.FlagDisabled|entry, k1.Flags)
			require.NoError(t, w.k.RegisterKprobe(k1), "by address it can be registered again")
			w.k.UnregisterKprobe(k1)

			never := at(w.leaf)
			w.k.UnregisterKprobe(never)
			require.Zero(t, never.Addr)
			never.Addr = w.leaf
			refused(t, w.k.DisableKprobe(never), errno.EINVAL, rule.NotRegistered)
			refused(t, w.k.EnableKprobe(never), errno.EINVAL, rule.NotRegistered)

			byName := named("steady", 0)
			require.NoError(t, w.k.RegisterKprobe(byName))
			w.k.UnregisterKprobe(byName)
			require.Equal(t, w.steady, byName.Addr)
			refused(t, w.k.RegisterKprobe(byName), errno.EINVAL, rule.TwoPlaces)
		})
	}
}

// TestGlobalDisarm is docs/spec 1.11 and the quirk of 1.8.
func TestGlobalDisarm(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var log []string
	w.k.OnLog(func(line string) { log = append(log, line) })
	a, b, c := at(w.leaf), at(w.steady), at(w.steady)
	require.NoError(t, w.k.RegisterKprobes([]*kprobes.Kprobe{a, b, c}))
	require.NoError(t, w.k.SetEnabled(true), "no change")
	require.NoError(t, w.k.SetEnabled(false))
	require.False(t, w.k.Enabled())
	require.Equal(t, w.clean, w.text())
	require.Equal(t, 0, w.k.Armed())

	late := at(w.calls)
	require.NoError(t, w.k.RegisterKprobe(late), "registering while disarmed does not arm")
	require.Equal(t, w.clean, w.text())

	require.NoError(t, w.k.DisableKprobe(a))
	require.NoError(t, w.k.EnableKprobe(a))
	require.True(t, a.Disabled(), "a bare probe stays disabled")
	require.NoError(t, w.k.DisableKprobe(b))
	require.NoError(t, w.k.EnableKprobe(b))
	require.False(t, b.Disabled(), "a member does not")

	require.NoError(t, w.k.SetEnabled(true))
	require.Equal(t, 2, w.k.Armed())
	require.EqualValues(t, 0xcc, w.byteAt(w.steady))
	require.EqualValues(t, 0xcc, w.byteAt(w.calls))
	require.EqualValues(t, 0x48, w.byteAt(w.leaf))
	require.Equal(t, []string{w.k.Config().Log.Prefix + "Kprobes globally disabled", w.k.Config().Log.Prefix + "Kprobes globally enabled"}, log)
	w.k.UnregisterKprobes([]*kprobes.Kprobe{a, b, c, late})
}

// TestUnregisterWhileStepping: the slot of a probe that a CPU is in must not
// be given to another one.
// See docs/spec 1.8.
func TestUnregisterWhileStepping(t *testing.T) {
	w := newWorld(t, "6.1", 2)
	var r recorder
	p := r.probe(w.steady, true)
	require.NoError(t, w.k.RegisterKprobe(p))
	s, _ := p.Slot()
	th := w.start(1, 1, w.steady, 5)
	th.step() // CPU 1 is in the slot
	w.k.UnregisterKprobe(p)
	require.Equal(t, w.clean, w.text())
	other := w.register(t, at(w.leaf))
	o, _ := other.Slot()
	require.NotEqual(t, s.Addr, o.Addr)
	th.run()
	require.NoError(t, th.err)
	require.EqualValues(t, 6, th.regs.AX)
	require.Equal(t, 1, r.post)
}

// TestUnregisterFromHandler: a handler may remove its own probe.
// See docs/spec 1.8.
func TestUnregisterFromHandler(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorld(t, kernel, 1)
		n := 0
		p := &kprobes.Kprobe{Addr: w.steady}
		p.PreHandler = func(p *kprobes.Kprobe, _ *x86.PtRegs) int {
			n++
			w.k.UnregisterKprobe(p)
			return 0
		}
		require.NoError(t, w.k.RegisterKprobe(p))
		require.EqualValues(t, 6, w.result(t, w.steady, 5))
		require.EqualValues(t, 6, w.result(t, w.steady, 5))
		require.Equal(t, 1, n)
	})
}

// TestDisarmingFails: a probe that cannot be disarmed stays enabled, alone
// and as the last member of an aggregate.
// See docs/spec 1.8.
func TestDisarmingFails(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	a, b := w.register(t, at(w.traced)), w.register(t, at(w.traced))
	w.pokeErr = errPoke
	require.NoError(t, w.k.DisableKprobe(a), "b keeps the address armed")
	require.ErrorIs(t, w.k.DisableKprobe(b), errPoke)
	w.pokeErr = nil
	require.True(t, a.Disabled())
	require.False(t, b.Disabled())
	require.NoError(t, w.k.DisableKprobe(b))
}

// TestDisabledInTheWindow: a breakpoint is hit before it is removed. Then the handlers of a single
// probe at its address run all the same; those of a disabled member of an aggregate do not. See
// docs/spec 2.3.
func TestDisabledInTheWindow(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var bare, first, second recorder
	p := w.register(t, bare.probe(w.steady, false))
	a, b := w.register(t, first.probe(w.calls, false)), w.register(t, second.probe(w.calls, false))
	require.NoError(t, w.k.DisableKprobe(p))
	require.NoError(t, w.k.DisableKprobe(b))
	require.NoError(t, w.k.DisableKprobe(a))
	for _, at := range []x86.Addr{w.steady, w.calls} {
		regs := x86.PtRegs{IP: uint64(at) + 1, SP: uint64(stackBase + 0x1000), CS: x86.KernelCS}
		require.True(t, w.k.Traps().Int3(&regs))
		w.k.ResetCurrentKprobe()
	}
	require.Equal(t, []int{1, 0, 0}, []int{bare.pre, first.pre, second.pre})
}

// TestUnregisterDisabled: of two members, a disabled one is unregistered without effect on the
// other, and the last takes the aggregate with it. See docs/spec 1.8.
func TestUnregisterDisabled(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorld(t, kernel, 1)
		a, b := at(w.leaf), at(w.leaf)
		require.NoError(t, w.k.RegisterKprobes([]*kprobes.Kprobe{a, b}))
		require.NoError(t, w.k.DisableKprobe(a))
		w.k.UnregisterKprobe(a)
		require.Equal(t, 1, w.k.Armed())
		require.NoError(t, w.k.DisableKprobe(b))
		require.Equal(t, w.clean, w.text())
		w.k.UnregisterKprobe(b)
		require.Nil(t, w.k.Find(w.leaf))
	})
}
