package kprobes_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
)

// TestKretprobeRegistration is the last part of the transcript misuse.
// See docs/spec 5.2.
func TestKretprobeRegistration(t *testing.T) {
	type want struct {
		errno     errno.Errno
		rule      rule.ID
		maxActive int
	}
	tests := map[string]struct {
		probe func(w *world) *kprobes.Kretprobe
		want  map[string]want
	}{
		"default maxactive": {func(w *world) *kprobes.Kretprobe { return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}} },
			map[string]want{"2.6.18": {maxActive: 255}, "4.4": {maxActive: 2}, "5.10": {maxActive: 2}, "6.1": {maxActive: 10}, "6.12": {maxActive: 10}}},
		"maxactive -5": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: -5}
		}, map[string]want{"5.10": {maxActive: 2}, "6.1": {maxActive: 10}}},
		"maxactive 4097": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: 4097}
		}, map[string]want{"5.10": {maxActive: 4097}, "6.1": {maxActive: 4097}}},
		"maxactive 2^31-1": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: math.MaxInt32}
		}, map[string]want{"6.1": {errno: errno.ENOMEM, rule: rule.NoMemory, maxActive: math.MaxInt32}}},
		"maxactive of the bound": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: bounded.ReturnInstances}
		}, map[string]want{"6.1": {maxActive: bounded.ReturnInstances}}},
		"maxactive past the bound": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: bounded.ReturnInstances + 1}
		}, map[string]want{"6.1": {errno: errno.ENOMEM, rule: rule.NoMemory, maxActive: bounded.ReturnInstances + 1}}},
		"data of the bound": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: bounded.ReturnData / 4096, DataSize: 4096}
		}, map[string]want{"6.1": {maxActive: bounded.ReturnData / 4096}}},
		"data past the bound": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: bounded.ReturnData/4096 + 1, DataSize: 4096}
		}, map[string]want{"6.1": {errno: errno.ENOMEM, rule: rule.NoMemory, maxActive: bounded.ReturnData/4096 + 1}}},
		"data of one instance past the bound": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: 1, DataSize: bounded.ReturnData + 1}
		}, map[string]want{"5.8": {errno: errno.ENOMEM, rule: rule.NoMemory, maxActive: 1}}},
		"not at entry": {func(w *world) *kprobes.Kretprobe { return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf + 3}} },
			map[string]want{"4.4": {maxActive: 2}, "5.8": {errno: errno.EINVAL, rule: rule.NotEntry}, "6.1": {errno: errno.EINVAL, rule: rule.NotEntry}}},
		"symbol + 4 with ENDBR": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "ibt", Offset: 4}}
		}, map[string]want{"6.1": {errno: errno.EINVAL, rule: rule.NotEntry}, "6.12": {maxActive: 10}}},
		"unknown symbol": {func(*world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "nope_nope"}}
		}, map[string]want{"5.8": {errno: errno.EINVAL, rule: rule.NotEntry}, "5.10": {errno: errno.ENOENT, rule: rule.UnknownSymbol}, "6.1": {errno: errno.ENOENT, rule: rule.UnknownSymbol}}},
		"null": {func(*world) *kprobes.Kretprobe { return &kprobes.Kretprobe{} },
			map[string]want{"5.10": {errno: errno.EINVAL, rule: rule.NoPlace}, "6.1": {errno: errno.EINVAL, rule: rule.NoPlace}}},
		"blacklisted": {func(*world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "forbidden"}}
		}, map[string]want{"5.10": {errno: errno.EINVAL, rule: rule.Blacklisted, maxActive: 2}, "6.1": {errno: errno.EINVAL, rule: rule.Blacklisted, maxActive: 10}}},
		"__switch_to": {func(*world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "__switch_to"}}
		}, map[string]want{"5.10": {errno: errno.EINVAL, rule: rule.KretBlacklist}, "6.1": {errno: errno.EINVAL, rule: rule.KretBlacklist}, "6.12": {errno: errno.EINVAL, rule: rule.KretBlacklist}}},
		"switch_to_after_endbr_is_no_switch_to": {func(w *world) *kprobes.Kretprobe {
			w.add("__switch_to", endbr, movAX, ret)
			w.clean = w.text()
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "__switch_to"}}
		}, map[string]want{"6.1": {errno: errno.EINVAL, rule: rule.KretBlacklist}, "6.12": {maxActive: 10}}},
		"data_size 4096": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, DataSize: 4096}
		}, map[string]want{"5.10": {maxActive: 2}, "6.1": {maxActive: 10}}},
		"data_size 4097": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, DataSize: 4097}
		}, map[string]want{"5.8": {maxActive: 2}, "5.10": {errno: errno.E2BIG, rule: rule.DataSize}, "6.1": {errno: errno.E2BIG, rule: rule.DataSize}}},
		"post handler preset": {func(w *world) *kprobes.Kretprobe {
			return &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf, PostHandler: post0}}
		}, map[string]want{"6.1": {maxActive: 10}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for kernel, want := range tc.want {
				w := newWorld(t, kernel, 2)
				w.misuseSymbols()
				w.add("ibt", endbr, movAX, ret)
				rp := tc.probe(w)
				if w.k.View().Lookup("__switch_to") == nil {
					w.add("__switch_to", movAX, ret)
					w.clean = w.text()
				}
				err := w.k.RegisterKretprobe(rp)
				require.Equal(t, want.maxActive, rp.MaxActive, kernel)
				if want.errno != 0 {
					refused(t, err, want.errno, want.rule)
				} else {
					require.NoError(t, err, kernel)
					require.Nil(t, rp.KP.PostHandler)
					refused(t, w.k.RegisterKretprobe(rp), errno.EINVAL, map[bool]rule.ID{
						true: rule.Reregistered, false: rule.TwoPlaces}[rp.KP.SymbolName == ""])
				}
				w.k.UnregisterKretprobe(rp)
			}
		})
	}
}

// TestDefaultMaxActiveOnPreempt: the old formula for the default is the new one on
// PREEMPT kernels.
// See docs/spec 5.2.
func TestDefaultMaxActiveOnPreempt(t *testing.T) {
	for kernel, want := range map[string]int{"5.8": 16, "2.6.18": 510} {
		c, _ := profile.Named(kernel)
		c.Preemption = true
		w := newWorldOf(t, c, 8)
		rp := w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}})
		require.Equal(t, want, rp.MaxActive)
		w.k.UnregisterKretprobe(rp)
	}
}

// withoutNMI has return probes work through an int3 in 5.8 too (rule 5.3).
func withoutNMI(t testing.TB, kernel string) *profile.Config {
	c, ok := profile.Named(kernel)
	require.True(t, ok)
	c.Kret.MissedInNMI = false
	return c
}

// TestKretprobeMissedInNMI: from 4.4 to 5.9 a call that is probed in an NMI is
// missed, and from 5.8 on an int3 counts as one. So in 5.8 a return probe
// misses all calls unless the function tracer calls it.
// See docs/spec 5.3.
func TestKretprobeMissedInNMI(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorld(t, kernel, 1)
		c, onSite := calls{}, calls{}
		rp := w.registerRet(t, c.probe(w.leaf, 1))
		ft := w.registerRet(t, onSite.probe(w.traced, 1))
		w.result(t, w.leaf, 1)
		w.result(t, w.traced, 1)
		missed := kernel == "5.8"
		require.Equal(t, missed, rp.Nmissed == 1)
		require.Equal(t, missed, c.ret == 0)
		require.Zero(t, rp.KP.Nmissed)
		require.Zero(t, ft.Nmissed)
		require.Equal(t, 1, onSite.ret)
	})
}
