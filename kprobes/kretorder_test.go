package kprobes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestSeveralKretprobesOnOneFunction is docs/spec 5.5: on entry the newest is first and sees the
// real return address; on return the oldest is first, and with rethook all
// but the newest still see the trampoline.
func TestSeveralKretprobesOnOneFunction(t *testing.T) {
	for _, kernel := range []string{"5.10", "6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			w := newWorld(t, kernel, 1)
			var order []string
			for _, name := range []string{"old", "mid", "new"} {
				w.registerRet(t, &kprobes.Kretprobe{
					KP:           kprobes.Kprobe{Addr: w.leaf},
					EntryHandler: func(*kprobes.Instance, *x86.PtRegs) int { order = append(order, "enter "+name); return 0 },
					Handler: func(i *kprobes.Instance, _ *x86.PtRegs) int {
						where := "caller"
						if i.RetAddr == w.k.Trampoline() {
							where = "trampoline"
						}
						order = append(order, "leave "+name+" to "+where)
						return 0
					},
				})
			}
			require.EqualValues(t, 6, w.result(t, w.leaf, 5))
			older := "trampoline"
			if kernel == "5.10" {
				older = "caller"
			}
			require.Equal(t, []string{"enter new", "enter mid", "enter old",
				"leave old to " + older, "leave mid to " + older, "leave new to caller"}, order)
		})
	}
}

// TestTailCallSharesTheReturn is docs/spec 5.5: a probed function that jumps to another one shares
// its return slot, and all handlers run at the one return.
func TestTailCallSharesTheReturn(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	// tail: add $1,%rdi would need more of the fake; a plain jump does.
	tail := w.add("tail", nop, "\xe9") // jmp leaf
	copy(w.mem(tail+2, 4), rel32(tail+6, w.leaf))
	w.clean = w.text()
	a, b := calls{}, calls{}
	w.registerRet(t, a.probe(tail, 2))
	w.registerRet(t, b.probe(w.leaf, 2))
	require.EqualValues(t, 6, w.result(t, tail, 5))
	require.Equal(t, []int{1, 1}, []int{a.ret, b.ret})
	require.Zero(t, w.k.Pending(0))
}

// TestLostReturnAddress: a return through the trampoline that no call accounts for is
// the kernel's BUG; here it is an error, and the guest faults.
// See docs/spec 5.5.
func TestLostReturnAddress(t *testing.T) {
	for kernel, line := range map[string]string{
		"4.4":  "kretprobe BUG!: Processing kretprobe (null) @ (null)",
		"5.10": "",
		"5.15": "Oops! Kretprobe fails to find correct return address.",
		"5.17": "kprobes: kretprobe: Return address not found, not execute handler. Maybe there is a bug in the kernel.",
		"6.1":  "rethook: rethook: Return address not found! Maybe there is a bug in the kernel",
	} {
		w := newWorldOf(t, ofRelease(t, kernel), 1)
		var log []string
		w.k.OnLog(func(l string) { log = append(log, l) })
		c := calls{}
		w.registerRet(t, c.probe(w.leaf, 1))
		th := w.start(0, 0, w.k.Trampoline(), 0)
		th.run()
		require.Error(t, th.err)
		var bug *kprobes.Bug
		require.ErrorAs(t, w.k.Err(), &bug)
		require.Contains(t, bug.Error(), "return address not found")
		require.Equal(t, line, strings.Join(log, "\n"), kernel)
	}
}

// ofRelease is the profile of a release, which may have no named one.
func ofRelease(t *testing.T, release string) *profile.Config {
	t.Helper()
	v, ok := profile.ParseVersion(release)
	require.True(t, ok)
	return profile.ForRelease(v)
}

// TestMisorderedInstances: an instance that waits on another stack slot than the
// one returned through. From 5.16 on it ends the walk; from 5.11 on it is a BUG; before, it is
// skipped, stays pending, and the next match is blamed; to 5.1 its handler runs like any.
// See docs/spec 5.5.
func TestMisorderedInstances(t *testing.T) {
	for kernel, want := range map[string]struct {
		log            []string
		pending, inner int
	}{
		"4.4":  {nil, 0, 1},
		"5.8":  {[]string{"kretprobe is stacked incorrectly. Trying to fixup.", "leaf must be blacklisted because of incorrect kretprobe order"}, 1, 0},
		"5.11": {nil, 2, 0},
		"5.15": {nil, 2, 0},
		"5.16": {[]string{"WARNING: kretprobe: a pending return is on another stack frame"}, 0, 0},
		"6.1":  {[]string{"WARNING: rethook: a pending return is on another stack frame"}, 0, 0},
	} {
		t.Run(kernel, func(t *testing.T) {
			c := ofRelease(t, kernel)
			c.Kret.MissedInNMI = false
			w := newWorldOf(t, c, 1)
			var log []string
			w.k.OnLog(func(line string) { log = append(log, line) })
			outer, inner := calls{}, calls{}
			w.registerRet(t, outer.probe(w.leaf, 4))
			w.registerRet(t, inner.probe(w.traced, 4))
			th := w.start(0, 0, w.leaf, 5)
			th.step() // leaf's return address is taken
			for current(w) != nil {
				th.step() // out of the slot: until then another hit is missed
			}
			// traced is entered on a slot below, and its return address is the
			// trampoline: both wait for the same return.
			low := w.startAt(0, 0, w.traced, 5, x86.Addr(th.regs.SP-64))
			w.setWord(x86.Addr(low.regs.SP), uint64(w.k.Trampoline()))
			for x86.Addr(low.regs.IP) != w.traced+5 {
				low.step() // through the tracer's trampoline
			}
			th.run()
			if want.pending == 2 {
				require.ErrorContains(t, w.k.Err(), "a pending call waits on another stack slot")
			} else {
				require.NoError(t, th.err)
			}
			require.Equal(t, want.log, log)
			require.Equal(t, want.pending, w.k.Pending(0))
			require.Equal(t, want.inner, inner.ret)
		})
	}
}
