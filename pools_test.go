package kprobelab_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/engine"
	"kprobelab/kprobes"
	"kprobelab/kprobes/pool"
	"kprobelab/x86"
)

// recursions calls a function that calls itself, to depths, with a return probe, and returns the account of its pool and the machine's time.
func recursions(t *testing.T, engine string, active int, follow bool, depths ...uint64) (u pool.Usage, now uint64) {
	l, err := kprobelab.Open("", &kprobelab.Options{Engine: engine})
	require.NoError(t, err)
	defer l.Close()
	if follow {
		l.FollowPools()
	}
	rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "recurse"}, MaxActive: active}
	require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
	for _, n := range depths {
		_, err := l.Call("recurse", n)
		require.NoError(t, err)
	}
	l.Kprobes.UnregisterKretprobe(rp)
	u, ok := rp.Usage()
	require.Equal(t, follow, ok)
	return u, l.Machine.Now()
}

// TestPoolOfARecursion: the maxactive that a pool's account names loses no call, and one less loses some; the run is as without.
func TestPoolOfARecursion(t *testing.T) {
	for _, e := range engine.Names() {
		t.Run(e, func(t *testing.T) {
			for _, active := range []int{1, 4, 16} {
				u, now := recursions(t, e, active, true, 9, 20, 3)
				require.Equal(t, pool.Usage{Probe: "recurse", MaxActive: active, Peak: active, Wanted: 21, Missed: u.Missed, Holders: u.Holders}, u)
				require.Equal(t, uint64(max(0, 10-active)+21-active+max(0, 4-active)), u.Missed)
				require.Equal(t, []pool.Place{{PID: 0, Comm: "task", N: 21, Stack: []string{"recurse+0x0", "return_to_host+0x0"}}}, u.Holders)
				_, without := recursions(t, e, active, false, 9, 20, 3)
				require.Equal(t, without, now)
			}
			u, _ := recursions(t, e, 21, true, 9, 20, 3)
			require.Zero(t, u.Missed)
			u, _ = recursions(t, e, 20, true, 9, 20, 3)
			require.EqualValues(t, 1, u.Missed)
		})
	}
}

// TestCallsThatReturnToTheHost: the return of a call that the host has made is seen too, by each engine, once.
func TestCallsThatReturnToTheHost(t *testing.T) {
	for _, e := range engine.Names() {
		t.Run(e, func(t *testing.T) {
			l, err := kprobelab.Open("", &kprobelab.Options{Engine: e})
			require.NoError(t, err)
			defer l.Close()
			to := x86.Addr(0)
			p, err := l.Kretprobe("recurse", nil, func(i *kprobes.Instance, _ *x86.PtRegs) int { to = i.RetAddr; return 0 })
			require.NoError(t, err)
			_, err = l.Call("recurse", 0)
			require.NoError(t, err)
			require.NoError(t, p.Close())
			seen := 0
			end := l.Machine.OnExecuted(func(regs *x86.PtRegs) {
				require.EqualValues(t, to, regs.IP)
				seen++
			})
			require.True(t, l.Machine.ShowExecuted(to))
			for n := range 3 {
				_, err = l.Call("recurse", 2)
				require.NoError(t, err)
				require.Equal(t, n+1, seen)
			}
			end()
			_, err = l.Call("recurse", 2)
			require.NoError(t, err)
			require.Equal(t, 3, seen)
		})
	}
}
