package kprobes_test

import (
	"bytes"
	"encoding/binary"
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
// See docs/spec 4.1.
func TestStatesOfAnOptimizedProbe(t *testing.T) {
	optimizing(t, func(t *testing.T, kernel string, w *optWorld) {
		p := w.probe(t, 3, false)
		require.Equal(t, "optimizing", w.k.Queue(w.place(3)))
		require.True(t, w.k.Find(w.place(3)).Optimized())
		require.True(t, p.Optimized(), "its aggregate has the flag")
		require.Zero(t, p.Flags&kprobes.FlagOptimized)
		require.Equal(t, []byte{0xcc, 0x83, 0xc0, 0x01, 0x48}, w.bytesAt(3))
		w.result(t, 1)
		require.NoError(t, w.k.Settle())
		require.Empty(t, w.k.Queue(w.place(3)))
		d, ok := w.k.Detour(w.place(3))
		require.True(t, ok)
		require.Equal(t, d.Jump[:], w.bytesAt(3))
		require.Contains(t, w.k.List(), "[OPTIMIZED]")
		require.True(t, p.Optimized())
		w.result(t, 2)
		w.k.UnregisterKprobe(&p.Kprobe)
		require.Equal(t, "unoptimizing", w.k.Queue(w.place(3)))
		require.Equal(t, d.Jump[:], w.bytesAt(3), "the jump stays until the worker comes")
		require.Equal(t, kernel != "4.4", w.k.Find(w.place(3)).Optimized())
		require.False(t, p.Optimized(), "it is no probe any more")
		w.result(t, 3)
		require.NoError(t, w.k.Settle())
		require.Nil(t, w.k.Find(w.place(3)))
		require.Equal(t, w.clean, w.text())
		w.result(t, 4)
		require.Equal(t, 2, p.hits)
	})
}

// Each member of an aggregate reports the aggregate's state.
func TestMembersAreOptimized(t *testing.T) {
	optimizing(t, func(t *testing.T, kernel string, w *optWorld) {
		first, second := w.probe(t, 3, false), w.probe(t, 3, false)
		require.NoError(t, w.k.Settle())
		require.True(t, first.Optimized() && second.Optimized())
		third := w.probe(t, 3, true)
		require.NoError(t, w.k.Settle())
		require.False(t, first.Optimized() || second.Optimized() || third.Optimized(), "a post handler needs the int3")
		w.k.UnregisterKprobe(&third.Kprobe)
		w.k.UnregisterKprobe(&second.Kprobe)
		require.NoError(t, w.k.Settle())
		require.True(t, first.Optimized())
		require.False(t, second.Optimized() || third.Optimized())
		require.NotContains(t, w.k.List(), "DISABLED")
	})
}

// settle lets the worker run, and returns the places of over that are jumps then.
func (w *optWorld) settle(t testing.TB) (jumps []int64) {
	t.Helper()
	require.NoError(t, w.k.Settle())
	for _, off := range overStarts {
		if d, ok := w.k.Detour(w.place(off)); ok && string(w.bytesAt(off)) == string(d.Jump[:]) {
			jumps = append(jumps, off)
		}
	}
	return jumps
}

// A probe that cannot be optimized has no buffer and stays an int3, and its caller gets no error.
// See docs/spec 4.2.
func TestBufferNotPrepared(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		p := w.probe(t, 28, false) // four bytes are left of the function
		_, ok := w.k.Detour(p.Addr)
		require.False(t, ok)
		require.Same(t, &p.Kprobe, w.k.Find(p.Addr), "no aggregator")
		require.Empty(t, w.settle(t))
	})
}

// A disabled probe has its buffer, but is not queued.
// See docs/spec 4.2.
func TestBufferPreparedWhenDisabled(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		p := w.newProbe(3, false)
		p.Flags = kprobes.FlagDisabled
		require.NoError(t, w.k.RegisterKprobe(&p.Kprobe))
		_, ok := w.k.Detour(p.Addr)
		require.True(t, ok)
		require.Empty(t, w.k.Queue(p.Addr))
		require.NoError(t, w.k.EnableKprobe(&p.Kprobe))
		require.Equal(t, []int64{3}, w.settle(t))
		w.k.UnregisterKprobe(&p.Kprobe)
	})
}

// Handlers on the optimized path: all run whatever they return, newest first;
// ip, sp, cs, ss and orig_ax are lost, the rest takes effect.
// See docs/spec 4.5.
func TestOptimizedCallback(t *testing.T) {
	optimizing(t, func(t *testing.T, kernel string, w *optWorld) {
		var order []string
		var saw x86.PtRegs
		a := w.newProbe(7, false)
		a.PreHandler = func(p *kprobes.Kprobe, regs *x86.PtRegs) int {
			order = append(order, "old")
			cur, status := w.k.Current()
			require.Same(t, w.k.Find(p.Addr), cur)
			require.Equal(t, kprobes.HitActive, status)
			saw = *regs
			regs.AX += 100
			regs.IP, regs.CS, regs.OrigAX = 0, 0, 0
			return 1
		}
		b := w.newProbe(7, false)
		b.PreHandler = func(*kprobes.Kprobe, *x86.PtRegs) int { order = append(order, "new"); return 1 }
		require.NoError(t, w.k.RegisterKprobe(&a.Kprobe))
		require.NoError(t, w.k.RegisterKprobe(&b.Kprobe))
		require.Equal(t, []int64{7}, w.settle(t))
		w.begin(0, 1)
		sp := w.threads[0].regs.SP
		require.NoError(t, w.finish(0))
		require.EqualValues(t, 1+overResult+100, w.threads[0].regs.AX)
		require.Equal(t, []string{"new", "old"}, order)
		require.EqualValues(t, w.place(7)+1, saw.IP)
		require.EqualValues(t, x86.KernelCS, saw.CS)
		require.Equal(t, sp, saw.SP)
		require.Equal(t, ^uint64(0), saw.OrigAX)
		require.EqualValues(t, 2, saw.AX)
		require.NotZero(t, saw.Flags&x86.FlagIF, "interrupts stay as they are")
		if kernel == "6.1" || kernel == "6.12" {
			require.EqualValues(t, x86.KernelDS, saw.SS)
		}
		cur, _ := w.k.Current()
		require.Nil(t, cur)
		w.k.UnregisterKprobe(&b.Kprobe)
		w.k.UnregisterKprobe(&a.Kprobe)
	})
}

// Reached while another probe is handled: Nmissed grows on every member, no
// handler runs.
// See docs/spec 4.5.
func TestOptimizedHitMissedWhenBusy(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		inner, disabled := w.probe(t, 15, false), w.newProbe(15, false)
		disabled.Flags = kprobes.FlagDisabled
		require.NoError(t, w.k.RegisterKprobe(&disabled.Kprobe))
		outer := w.newProbe(0, false)
		outer.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			if outer.hits++; outer.hits == 1 {
				require.EqualValues(t, 9+overResult, w.nested(regs, w.over, 9))
			}
			return 0
		}
		require.NoError(t, w.k.RegisterKprobe(&outer.Kprobe))
		require.Equal(t, []int64{0, 15}, w.settle(t))
		w.result(t, 1)
		require.Equal(t, 1, inner.hits)
		require.EqualValues(t, 1, inner.Nmissed)
		require.EqualValues(t, 1, disabled.Nmissed)
		require.EqualValues(t, 1, outer.Nmissed, "the nested call passed it too")
		w.k.UnregisterKprobe(&outer.Kprobe)
		w.k.UnregisterKprobe(&disabled.Kprobe)
	})
}

// While it waits, a pre handler that returns non-zero does stop everything.
// See docs/spec 4.8.
func TestHandlerSkipsWhileQueued(t *testing.T) {
	optimizing(t, func(t *testing.T, _ string, w *optWorld) {
		p := w.newProbe(7, false)
		p.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			regs.IP = uint64(w.place(11))
			w.k.ResetCurrentKprobe() // as handlers had to, to 4.18
			return 1
		}
		require.NoError(t, w.k.RegisterKprobe(&p.Kprobe))
		w.begin(0, 1)
		require.NoError(t, w.finish(0))
		require.EqualValues(t, overResult, w.threads[0].regs.AX, "one instruction was skipped")
		require.NoError(t, w.k.Settle())
		w.result(t, 1)
		w.k.UnregisterKprobe(&p.Kprobe)
	})
}

// A CPU that hits the int3 of a change under way goes to the detour buffer, and kprobes handle no
// hit. See docs/spec 4.8.
func TestHitOfThePokersInt3(t *testing.T) {
	optimizing(t, func(t *testing.T, kernel string, w *optWorld) {
		p := w.probe(t, 0, false)
		met := 0
		w.k.ObserveOptimizer(func(e kprobes.OptEvent) {
			if e.Kind != kprobes.OptPokeTail {
				return
			}
			trapped := false
			w.k.Observe(func(e kprobes.Event) { trapped = trapped || e.Kind == kprobes.EventTrap })
			announced := kprobes.Announced(w.k, w.place(0))
			hits := p.hits
			w.result(t, 5)
			require.Equal(t, hits+1, p.hits)
			require.Equal(t, !announced, trapped)
			w.k.Observe(nil)
			met++
		})
		require.NoError(t, w.k.Settle())
		require.False(t, kprobes.Announced(w.k, w.place(0)))
		require.NoError(t, w.k.SetOptimization(false))
		require.Equal(t, 2, met)
		w.k.ObserveOptimizer(nil)
		require.NoError(t, w.k.SetOptimization(true))
		w.k.UnregisterKprobe(&p.Kprobe)
	})
}

// The steps of every release, in both directions.
// See docs/spec 4.8.
func TestPokeSteps(t *testing.T) {
	three := []string{"poke-int3", "poke-sync", "poke-tail", "poke-sync", "poke-first", "poke-sync", "poke-done"}
	two := []string{"poke-int3", "poke-sync", "poke-tail", "poke-sync"}
	for _, c := range []struct {
		kernel   string
		stop     bool
		do, undo []string
	}{
		{"4.4", false, three, append(two[:4:4], "poke-done")},
		{"4.4", true, []string{"poke-stopped"}, []string{"poke-stopped"}},
		{"5.8", false, three, two},
		{"5.10", false, three, two},
		{"6.1", false, three, two},
		{"6.12", false, three, two},
	} {
		t.Run(c.kernel, func(t *testing.T) {
			w := newOptWorld(t, c.kernel)
			w.k.Config().Optimize.StopMachine = c.stop
			var steps []string
			w.k.ObserveOptimizer(func(e kprobes.OptEvent) {
				if e.Kind >= kprobes.OptPokeInt3 && e.Kind <= kprobes.OptPokeStopped {
					steps = append(steps, e.Kind.String())
				}
			})
			p := w.probe(t, 0, false)
			require.NoError(t, w.k.Settle())
			require.Equal(t, c.do, steps)
			w.result(t, 1)
			steps = nil
			w.k.UnregisterKprobe(&p.Kprobe)
			require.NoError(t, w.k.Settle())
			require.Equal(t, c.undo, steps)
		})
	}
}

// A hit through the jump allocates nothing, with and without an observer's nil
// check in the way.
func TestOptimizedHitDoesNotAllocate(t *testing.T) {
	w := newOptWorld(t, "6.1")
	p := w.probe(t, 0, false)
	require.Equal(t, []int64{0}, w.settle(t))
	d, _ := w.k.Detour(w.place(0))
	imm := bytes.Index(d.Code(), []byte{0x48, 0xbf}) + 2
	handle := binary.LittleEndian.Uint64(d.Code()[imm:])
	require.Equal(t, w.place(0), kprobes.HandleAddr(w.k, handle))
	regs := &x86.PtRegs{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		regs.OrigAX = handle
		kprobes.OptimizedCallback(w.k, regs)
	}))
	require.Equal(t, 101, p.hits)
	regs.OrigAX = 1 << 40
	kprobes.OptimizedCallback(w.k, regs) // no buffer has this handle
	require.Equal(t, 101, p.hits)
}

// Every kind has a name of its own.
func TestOptKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for kind := kprobes.OptQueued; kind <= kprobes.OptForbidden; kind++ {
		require.NotEmpty(t, kind.String())
		require.False(t, seen[kind.String()], kind.String())
		seen[kind.String()] = true
	}
}
