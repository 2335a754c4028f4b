package kprobes_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

func (w *optWorld) state(off int64) string {
	p := w.k.Find(w.place(off))
	switch {
	case p == nil:
		return "none"
	case w.k.Queue(p.Addr) != "":
		return w.k.Queue(p.Addr)
	case p.Optimized():
		return "optimized"
	}
	return "plain"
}

// A probe armed inside another's region always wins, and the outer one does not
// become a jump again when it goes: it is asked while the inner one does not
// count as disabled yet, or, where the worker disarms that, not at all. So it
// was measured (docs/spec 14.4).
// See docs/spec 4.6.
func TestNeighboursOfAnOptimizedProbe(t *testing.T) {
	optimizing(t, func(t *testing.T, kernel string, w *optWorld) {
		outer := w.probe(t, 0, false)
		require.Equal(t, []int64{0}, w.settle(t))
		inner := w.probe(t, 3, true)
		require.Equal(t, "plain", w.state(0))
		require.Equal(t, []byte{0xcc, 0x89, 0xf8, 0xcc, 0x83}, w.bytesAt(0))
		w.result(t, 1)
		w.k.UnregisterKprobe(&inner.Kprobe)
		require.Empty(t, w.settle(t))
		require.Equal(t, "plain", w.state(0))

		inner = w.probe(t, 3, false)
		require.Equal(t, []int64{3}, w.settle(t))
		w.result(t, 2)
		w.k.UnregisterKprobe(&inner.Kprobe)
		require.Empty(t, w.settle(t))
		require.Equal(t, "plain", w.state(0))

		past := w.probe(t, 7, false)
		require.NoError(t, w.k.DisableKprobe(&outer.Kprobe))
		require.NoError(t, w.k.EnableKprobe(&outer.Kprobe))
		require.Equal(t, []int64{0, 7}, w.settle(t), "one right past the copied instructions is no neighbour")
		w.k.UnregisterKprobe(&past.Kprobe)

		quiet := w.newProbe(3, false)
		quiet.Flags = kprobes.FlagDisabled
		require.NoError(t, w.k.RegisterKprobe(&quiet.Kprobe))
		require.Equal(t, "optimized", w.state(0), "a disabled one does not disturb")
		require.NoError(t, w.k.EnableKprobe(&quiet.Kprobe))
		require.Equal(t, "plain", w.state(0))
		w.k.UnregisterKprobe(&quiet.Kprobe)
		require.NoError(t, w.k.Settle())
	})
}

// TestRetriesHeldBack: from 7.0 on, the probe that another one's jump held back is
// queued when that one is freed; before, it stays an int3.
func TestRetriesHeldBack(t *testing.T) {
	for kernel, retries := range map[string]bool{"6.1": false, "6.12": false, "6.18": false, "7.0": true, "7.3": true} {
		w := newOptWorld(t, kernel)
		outer := w.probe(t, 0, false)
		inner := w.probe(t, 3, false)
		require.Equal(t, []int64{3}, w.settle(t), "the newer one takes the place")
		w.k.UnregisterKprobe(&inner.Kprobe)
		w.settle(t)
		require.Equal(t, map[bool]string{true: "optimized", false: "plain"}[retries], w.state(0), kernel)
		w.result(t, 1)
		w.k.UnregisterKprobe(&outer.Kprobe)
		w.settle(t)
	}
}

// A post handler, as a jprobe, needs the int3: it takes the jump back at once,
// and when the last one leaves, the probe is queued again.
// See docs/spec 4.6.
func TestPostHandlerPreventsOptimization(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		w.probe(t, 7, false)
		require.Equal(t, []int64{7}, w.settle(t))
		a, b := w.probe(t, 7, true), w.probe(t, 7, true)
		require.Equal(t, "plain", w.state(7))
		require.Equal(t, byte(0xcc), w.bytesAt(7)[0])
		w.result(t, 1)
		w.k.UnregisterKprobe(&a.Kprobe)
		require.Equal(t, "plain", w.state(7))
		w.k.UnregisterKprobe(&b.Kprobe)
		require.Equal(t, "optimizing", w.state(7))
		require.Equal(t, []int64{7}, w.settle(t))
		w.probe(t, 7, true)
		require.Equal(t, "plain", w.state(7))
	})
}

// The events of a probe in each of its states (docs/spec 4.9): each case has the state, the event,
// and the state after it; then the worker runs.
func TestEventsInEveryState(t *testing.T) {
	reach := map[string]func(*testing.T, *optWorld, *counted){
		"queued":    func(*testing.T, *optWorld, *counted) {},
		"optimized": func(t *testing.T, w *optWorld, _ *counted) { require.NoError(t, w.k.Settle()) },
		"undoing": func(t *testing.T, w *optWorld, p *counted) {
			require.NoError(t, w.k.Settle())
			require.NoError(t, w.k.DisableKprobe(&p.Kprobe))
		},
	}
	do := map[string]func(*testing.T, *optWorld, *counted){
		"disable":    func(t *testing.T, w *optWorld, p *counted) { require.NoError(t, w.k.DisableKprobe(&p.Kprobe)) },
		"enable":     func(t *testing.T, w *optWorld, p *counted) { require.NoError(t, w.k.EnableKprobe(&p.Kprobe)) },
		"unregister": func(_ *testing.T, w *optWorld, p *counted) { w.k.UnregisterKprobe(&p.Kprobe) },
		"join":       func(t *testing.T, w *optWorld, _ *counted) { w.probe(t, 3, false) },
		"neighbour":  func(t *testing.T, w *optWorld, _ *counted) { w.probe(t, 7, true) },
		"disarm":     func(t *testing.T, w *optWorld, _ *counted) { require.NoError(t, w.k.SetEnabled(false)) },
		"forbid":     func(t *testing.T, w *optWorld, _ *counted) { require.NoError(t, w.k.SetOptimization(false)) },
	}
	for _, c := range []struct{ in, event, then, first, settled string }{
		{"queued", "disable", "plain", "48", "plain"},
		{"queued", "unregister", "none", "48", "none"},
		{"queued", "join", "optimizing", "cc", "optimized"},
		{"queued", "neighbour", "plain", "cc", "plain"},
		{"queued", "disarm", "plain", "48", "plain"},
		{"queued", "forbid", "plain", "cc", "plain"},
		{"optimized", "disable", "unoptimizing", "e9", "plain"},
		{"optimized", "unregister", "unoptimizing", "e9", "none"},
		{"optimized", "join", "optimized", "e9", "optimized"},
		{"optimized", "neighbour", "plain", "cc", "plain"},
		{"optimized", "disarm", "plain", "48", "plain"},
		{"optimized", "forbid", "plain", "cc", "plain"},
		{"undoing", "disable", "unoptimizing", "e9", "plain"},
		{"undoing", "unregister", "unoptimizing", "e9", "none"},
		{"undoing", "join", "optimized", "cc", "optimized"}, // note 1
		{"undoing", "enable", "optimized", "cc", "optimized"},
		{"undoing", "neighbour", "freeing", "cc", "plain"},
		{"undoing", "disarm", "plain", "48", "plain"},
		{"undoing", "forbid", "plain", "48", "plain"},
	} {
		t.Run(c.in+"/"+c.event, func(t *testing.T) {
			w := newOptWorld(t, "6.1")
			p := w.probe(t, 3, false)
			reach[c.in](t, w, p)
			do[c.event](t, w, p)
			require.Equal(t, c.then, w.state(3))
			require.Equal(t, c.first, hexByte(w.bytesAt(3)[0]))
			w.result(t, 1)
			require.NoError(t, w.k.Settle())
			require.Equal(t, c.settled, w.state(3))
			w.result(t, 2)
			view := make([]byte, len(overCode))
			w.k.View().CodeAt(w.over, view)
			require.Equal(t, overCode, string(view), "analysis sees the original")
			require.NoError(t, w.k.SetEnabled(true))
			require.NoError(t, w.k.SetOptimization(true))
		})
	}
}

func hexByte(b byte) string {
	return string("0123456789abcdef"[b>>4]) + string("0123456789abcdef"[b&15])
}

// An unused aggregator that waits to be undone is taken back, and stays a jump.
// See docs/spec 1.6.
func TestUnusedAggregateIsRevived(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		p := w.probe(t, 3, false)
		require.Equal(t, []int64{3}, w.settle(t))
		w.k.UnregisterKprobe(&p.Kprobe)
		require.Equal(t, "unoptimizing", w.state(3))
		q := w.probe(t, 3, false)
		require.Equal(t, "optimized", w.state(3))
		w.result(t, 1)
		require.Equal(t, []int64{3}, w.settle(t))
		require.Equal(t, 1, q.hits)
		require.Zero(t, p.hits)
	})
}

// A disabled probe that is registered there revives the aggregator too. When that probe is removed,
// the jump stays until the next probe is registered there. See docs/spec 1.6.
func TestDisabledProbeRevivesForGood(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		p := w.probe(t, 3, false)
		require.NoError(t, w.k.Settle())
		w.k.UnregisterKprobe(&p.Kprobe)
		q := w.newProbe(3, false)
		q.Flags = kprobes.FlagDisabled
		require.NoError(t, w.k.RegisterKprobe(&q.Kprobe))
		w.k.UnregisterKprobe(&q.Kprobe)
		require.Equal(t, []int64{3}, w.settle(t))
		require.Zero(t, w.k.Registered())
		w.result(t, 1)
		w.k.UnregisterKprobe(&w.probe(t, 3, false).Kprobe)
		require.Empty(t, w.settle(t))
		require.Equal(t, "none", w.state(3))
	})
}

// The worker's order: undo, disarm, remove, wait, optimize, free.
// See docs/spec 4.7.
func TestWorkerOrder(t *testing.T) {
	w := newOptWorld(t, "6.1")
	p := w.probe(t, 15, false)
	require.NoError(t, w.k.Settle())
	var kinds []string
	w.k.ObserveOptimizer(func(e kprobes.OptEvent) {
		require.Equal(t, len(kinds)+1, e.Step)
		if e.Kind == kprobes.OptPokeFirst || e.Kind < kprobes.OptPokeInt3 || e.Kind > kprobes.OptPokeStopped {
			kinds = append(kinds, e.Kind.String())
		} else {
			kinds = append(kinds, "poke")
		}
	})
	w.k.UnregisterKprobe(&p.Kprobe)
	kinds = nil
	w.probe(t, 0, false)
	due, ok := w.k.WorkerDue()
	require.True(t, ok)
	require.EqualValues(t, 20_000_000, due, "5 jiffies of 4 ms")
	kinds = nil
	require.NoError(t, w.k.Settle())
	require.Equal(t, []string{
		"worker", "poke", "poke", "poke", "poke", "disarmed", "removed", "wait", "waited",
		"poke", "poke", "poke", "poke", "poke-first", "poke", "poke", "optimized", "freed", "worker-end",
	}, kinds)
	w.k.ObserveOptimizer(nil)
}

// The worker waits for every task that is inside a call when its wait begins.
// See docs/spec 4.7.
func TestWorkerWaitsForTasks(t *testing.T) {
	w := newOptWorld(t, "6.1")
	w.begin(1, 7)
	w.step(1)
	p := w.probe(t, 0, false)
	err := w.k.Settle()
	var waits *kprobes.Unsettled
	require.ErrorAs(t, err, &waits)
	require.Equal(t, []int{1}, waits.Tasks)
	require.ErrorIs(t, err, errno.EAGAIN)
	require.Equal(t, "optimizing", w.state(0))
	q := w.probe(t, 15, false) // wants kprobe_mutex: the worker starts over
	require.True(t, errors.As(w.k.Settle(), &waits))
	require.NoError(t, w.finish(1))
	require.Equal(t, []int64{0, 15}, w.settle(t))
	w.k.UnregisterKprobe(&p.Kprobe)
	w.k.UnregisterKprobe(&q.Kprobe)
}

// Code that goes away with its module is not written any more.
// See docs/spec 1.10.
func TestOptimizedProbeGone(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		p, q := w.probe(t, 3, false), w.probe(t, 15, false)
		require.Equal(t, []int64{3, 15}, w.settle(t))
		w.k.UnregisterKprobe(&q.Kprobe)
		w.k.KillKprobes(x86.Range{Start: w.over, End: w.place(32)})
		text := slices.Clone(w.mem(w.over, 32))
		require.True(t, p.Gone())
		require.False(t, w.k.Find(p.Addr).Optimized())
		require.Equal(t, "freeing", w.state(15))
		require.NoError(t, w.k.Settle())
		require.Equal(t, "none", w.state(15))
		w.k.UnregisterKprobe(&p.Kprobe)
		require.True(t, bytes.Equal(text, w.mem(w.over, 32)))
		copy(w.mem(w.over, 32), overCode) // it is gone
	})
}

// What 4.4 and 5.8 get wrong: a probe that is disabled, but still a jump, is no
// neighbour to them, so another is optimized over it, and its detour leads back
// into the middle of that jump. 6.1 knows better.
// See docs/spec 4.6.
func TestOldKernelsOverlookAJump(t *testing.T) {
	run := func(kernel string) []string {
		c, _ := profile.Named(kernel)
		w := newOptWorldOf(c, 1)
		p, q := w.newProbe(7, false), w.newProbe(3, false)
		require.NoError(t, w.k.RegisterKprobe(&p.Kprobe))
		require.NoError(t, w.k.Settle())
		require.NoError(t, w.k.DisableKprobe(&p.Kprobe)) // the jump stays for now
		c.Optimize.RecoversUnlistedOnly = false          // see TestRecoversUnlistedOnly
		require.NoError(t, w.k.RegisterKprobe(&q.Kprobe))
		w.begin(0, 1)
		if err := w.finish(0); err != nil {
			return []string{err.Error()}
		}
		return w.torn
	}
	require.NotEmpty(t, run("4.4"))
	require.NotEmpty(t, run("5.8"))
	require.Empty(t, run("5.10"))
	require.Empty(t, run("6.1"))
}

// While a jump waits to be undone, 4.4 and 5.8 take its displacement for code.
// See docs/spec 1.5.1.
func TestRecoversUnlistedOnly(t *testing.T) {
	optimizing(t, func(t *testing.T, kernel string, w *optWorld) {
		p := w.probe(t, 0, false)
		require.NoError(t, w.k.Settle())
		b := make([]byte, len(overCode))
		w.k.View().CodeAt(w.over, b)
		require.Equal(t, overCode, string(b))
		w.k.View().CodeAt(w.place(2), b[:3])
		require.Equal(t, overCode[2:5], string(b[:3]), "from the middle of the jump")
		w.k.UnregisterKprobe(&p.Kprobe)
		w.k.View().CodeAt(w.over, b)
		require.Equal(t, kernel != "4.4" && kernel != "5.8", string(b) == overCode)
	})
}

// The sysctl's file.
// See docs/spec 8.4.
func TestOptimizationSysctl(t *testing.T) {
	w := newOptWorld(t, "6.1")
	var log []string
	w.k.OnLog(func(line string) { log = append(log, line) })
	p := w.probe(t, 0, false)
	require.Equal(t, []int64{0}, w.settle(t))
	require.Equal(t, "1\n", w.k.ReadOptimization())
	require.NoError(t, w.k.WriteOptimization("1\n"))
	require.Empty(t, log, "no change")
	for _, bad := range []string{"", "2", "-1", "y", "1 0"} {
		require.ErrorIs(t, w.k.WriteOptimization(bad), errno.EINVAL, "%q", bad)
	}
	require.NoError(t, w.k.WriteOptimization(" 0\n"))
	require.Equal(t, "0\n", w.k.ReadOptimization())
	require.False(t, w.k.Optimization())
	require.Equal(t, byte(0xcc), w.bytesAt(0)[0])
	require.NotContains(t, w.k.List(), "[OPTIMIZED]")
	require.NoError(t, w.k.WriteOptimization("1"))
	require.Contains(t, w.k.List(), "[OPTIMIZED]")
	require.Equal(t, []int64{0}, w.settle(t))
	require.Equal(t, []string{
		"kprobes: kprobe jump-optimization is disabled. All kprobes are based on software breakpoint.",
		"kprobes: kprobe jump-optimization is enabled. All kprobes are optimized if possible.",
	}, log)
	w.k.UnregisterKprobe(&p.Kprobe)

	old := newOptWorld(t, "5.8")
	old.k.OnLog(func(line string) { log = append(log, line) })
	require.NoError(t, old.k.SetOptimization(false))
	require.Equal(t, "Kprobes globally unoptimized", log[len(log)-1])
	require.NoError(t, old.k.SetOptimization(true))
	require.Equal(t, "Kprobes globally optimized", log[len(log)-1])
}

// Kernels without the optimizer, and one whose initcall has not run.
// See docs/spec 4.6.
func TestNoOptimizer(t *testing.T) {
	for _, change := range []func(*profile.Config){
		func(c *profile.Config) { c.Optimize.Exists = false },
		func(c *profile.Config) { c.Preemption, c.Optimize.OnPreempt = true, false },
	} {
		c, _ := profile.Named("5.8")
		change(c)
		w := newOptWorldOf(c, 1)
		p := w.newProbe(0, false)
		require.NoError(t, w.k.RegisterKprobe(&p.Kprobe))
		require.Equal(t, "plain", w.state(0))
		require.Equal(t, "0\n", w.k.ReadOptimization())
		require.ErrorIs(t, w.k.SetOptimization(true), errno.ENOENT)
	}
	w := newWorld(t, "6.1", 1)
	require.ErrorIs(t, w.k.InitOptprobes(), errno.ENOSYS, "this machine cannot patch in steps")

	c, _ := profile.Named("6.1")
	late := &optWorld{fakeMachine: newFake(2), jumps: map[x86.Addr][][]byte{}}
	late.stale = []map[x86.Addr][]byte{{}, {}}
	late.threads, late.calls = make([]*thread, 2), make([]uint64, 2)
	late.over = late.add("over", overCode)
	late.built = late.text()
	late.k = kprobes.New(late, late.fakeMachine, c)
	early := late.newProbe(0, false)
	require.NoError(t, late.k.RegisterKprobe(&early.Kprobe))
	require.Equal(t, "plain", late.state(0))
	require.NoError(t, late.k.InitOptprobes())
	require.Equal(t, "optimizing", late.state(0), "the initcall queues the probes that exist")
}
