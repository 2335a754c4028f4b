package guestfast_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// asks is a handler in guest code that calls Go: push %rdi; push %rsi; mov
// %rsi,%rdi; mov $out,%rax; call *%rax; pop; pop; then it counts.
func (l *guestLab) asks(count []byte, fn func()) x86.Addr {
	out, err := l.Machine.Callout("handler_asks", func(x86.Addr, *x86.PtRegs) { fn() })
	require.NoError(l.t, err)
	b := append([]byte{0x57, 0x56, 0x48, 0x89, 0xf7, 0x48, 0xc7, 0xc0}, word(out)...)
	return l.code(append(append(b, 0xff, 0xd0, 0x5e, 0x5f), count...)...)
}

// ways are places by the way that a hit comes from there.
var ways = []struct {
	name, function string
	optimize       bool
}{{"int3", "opt_yes", false}, {"detour", "opt_yes", true}, {"tracer", "leaf", false}}

// TestEnterSaysWhoseHandlerRuns: Go that is called from a handler which guest
// code runs finds the probe as the current one, and may take it away: the hit
// ends as it would have, and later calls are not hits.
func TestEnterSaysWhoseHandlerRuns(t *testing.T) {
	for _, way := range ways {
		for _, returns := range []bool{false, true} {
			t.Run(fmt.Sprint(way.name, returns), func(t *testing.T) {
				l := newGuestLab(t, "6.1", &kprobelab.Options{Optimize: way.optimize})
				want, _ := l.guestCall(way.function, 7, 5)
				p := &kprobes.Kprobe{SymbolName: way.function}
				rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: way.function}, MaxActive: 2}
				probe, take := p, func() { l.Kprobes.UnregisterKprobe(p) }
				if returns {
					probe, take = &rp.KP, func() { l.Kprobes.UnregisterKretprobe(rp) }
				}
				other := &kprobes.Kprobe{SymbolName: "recurse", PreCode: l.code(countPre...)}
				runs, last := 0, 3
				record := x86.Addr(0)
				ask := func() {
					runs++
					cur, status := l.Kprobes.Current()
					if !returns {
						require.Same(t, l.Kprobes.Find(p.Addr), cur)
					} else {
						require.Same(t, probe, cur)
					}
					require.Equal(t, kprobes.HitActive, status)
					record = probe.Record
					if runs == last {
						take()
						require.NoError(t, l.Kprobes.RegisterKprobe(other))
						require.NotEqual(t, record, other.Record, "a handler runs with the record")
					}
				}
				if returns {
					rp.HandlerCode = l.asks(countReturn, ask)
					require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
				} else {
					p.PreCode = l.asks(countPre, ask)
					require.NoError(t, l.Kprobes.RegisterKprobe(p))
				}
				require.NoError(t, l.Settle())
				for n := range last + 2 {
					got, _ := l.guestCall(way.function, 7, 5)
					require.Equal(t, want, got)
					cur, _ := l.Kprobes.Current()
					require.Nil(t, cur)
					require.Equal(t, min(n+1, last), runs)
					require.Zero(t, l.Kprobes.Pending(0))
				}
				require.Equal(t, last, l.count(record))
				l.guestCall("recurse", 2)
				require.Equal(t, 3, l.count(other.Record))
				l.Kprobes.UnregisterKprobe(other)
				require.NoError(t, l.Settle())
				require.Zero(t, l.Kprobes.Armed())
			})
		}
	}
}

// TestChangeBringsHitsBackToGo: whoever observes sees every step, and nobody
// misses an instance that guest code had.
func TestChangeBringsHitsBackToGo(t *testing.T) {
	for _, way := range ways {
		l := newGuestLab(t, "6.1", &kprobelab.Options{Optimize: way.optimize})
		rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: way.function}, HandlerCode: l.code(countReturn...), MaxActive: 1}
		require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
		require.NoError(t, l.Settle())
		steps := 0
		for n := range 6 {
			switch n {
			case 3:
				l.Kprobes.Observe(func(kprobes.Event) { steps++ })
			case 5:
				l.Kprobes.Observe(nil)
			}
			before := steps
			l.guestCall(way.function, 7, 5)
			require.Equal(t, n == 3 || n == 4, steps > before, "%s: call %d", way.name, n)
			require.Equal(t, n+1, l.count(rp.KP.Record), "%s: call %d", way.name, n)
		}
		require.Zero(t, rp.Nmissed)
		l.Kprobes.UnregisterKretprobe(rp)
	}
}

// TestPendingComesHome: a call that guest code tracks is among the task's pending
// ones in Go, and returns.
func TestPendingComesHome(t *testing.T) {
	l := newGuestLab(t, "6.1", nil)
	rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "outer"}, HandlerCode: l.code(countReturn...), MaxActive: 2}
	require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
	want, _ := l.guestCall("outer", 3)
	_, crossed := l.guestCall("outer", 3)
	require.Zero(t, crossed)
	var pending []int
	leaf := &kprobes.Kprobe{SymbolName: "leaf", PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
		pending = append(pending, l.Kprobes.Pending(0))
		return 0
	}}
	require.NoError(t, l.Kprobes.RegisterKprobe(leaf))
	for n := range 3 {
		got, _ := l.guestCall("outer", 3)
		require.Equal(t, want, got)
		require.Equal(t, 3+n, l.count(rp.KP.Record))
	}
	require.Equal(t, []int{1, 1, 1, 1, 1, 1}, pending, "outer calls leaf twice")
	require.Zero(t, rp.Nmissed)
}

// TestInstancesOfManyTasks: a pool that tasks on two CPUs share is lent, taken
// back and lent again while a probe in Go disables and enables others; no call is
// lost and no instance is.
func TestInstancesOfManyTasks(t *testing.T) {
	for seed := range int64(6) {
		l := newGuestLab(t, "6.1", &kprobelab.Options{CPUs: 2, Seed: seed, Optimize: seed%2 == 0})
		rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "slow_call"}, HandlerCode: l.code(countReturn...), MaxActive: 1 + int(seed)%3}
		other := &kprobes.Kprobe{SymbolName: "opt_yes_rip", PreCode: l.code(countPre...)}
		toggle := &kprobes.Kprobe{SymbolName: "leaf", PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
			if other.Disabled() {
				require.NoError(t, l.Kprobes.EnableKprobe(other))
			} else {
				require.NoError(t, l.Kprobes.DisableKprobe(other))
			}
			return 0
		}}
		require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
		require.NoError(t, l.Kprobes.RegisterKprobes([]*kprobes.Kprobe{other, toggle}))
		require.NoError(t, l.Settle())
		l.tasks(4, "slow_call(1, 700); leaf(1); slow_call(2, 90); opt_yes_rip(1); leaf(2); slow_call(3, 2000)")
		require.Equal(t, 12, l.count(rp.KP.Record)+int(rp.Nmissed), "seed %d", seed)
		missed := rp.Nmissed
		for range rp.MaxActive + 1 {
			l.guestCall("slow_call", 1, 10)
		}
		require.Equal(t, missed, rp.Nmissed, "every instance is free again")
	}
}

// TestMemoryPutBack: a caller may put memory back to what it was before or after
// the first hits, with what guest code was lent and old routes in it.
func TestMemoryPutBack(t *testing.T) {
	for _, way := range ways {
		for _, before := range []int{0, 3} {
			l := newGuestLab(t, "6.1", &kprobelab.Options{Optimize: way.optimize})
			want, _ := l.guestCall(way.function, 7, 5)
			p := &kprobes.Kprobe{SymbolName: way.function, PreCode: l.code(countPre...)}
			rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: way.function}, HandlerCode: l.code(countReturn...), MaxActive: 3}
			require.NoError(t, l.Kprobes.RegisterKprobe(p))
			require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
			require.NoError(t, l.Settle())
			calls := func(from, n int) {
				for i := range n {
					got, _ := l.guestCall(way.function, 7, 5)
					require.Equal(t, want, got)
					require.Equal(t, from+i+1, l.count(p.Record), way.name)
					require.Equal(t, from+i+1, l.count(rp.KP.Record), way.name)
					require.Zero(t, l.Kprobes.Pending(0))
				}
			}
			calls(0, before)
			s, err := l.Machine.Snapshot()
			require.NoError(t, err)
			for round := range 4 {
				calls(before, 1+round)
				if round%2 == 1 {
					l.Kprobes.Observe(nil) // nothing is learned any more, nor lent
				}
				require.NoError(t, l.Machine.Restore(s))
			}
			require.Zero(t, rp.Nmissed)
			l.Kprobes.UnregisterKprobe(p)
			l.Kprobes.UnregisterKretprobe(rp)
			require.NoError(t, l.Settle())
			_, crossed := l.guestCall(way.function, 7, 5)
			require.Zero(t, crossed)
		}
	}
}
