package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// TestInterruptsAndPreemptionInHandlers: the context of handlers, by the way in which the CPU
// reached them and by release; outside of handlers interrupts and preemption are on. See docs/spec
// 2.3.
func TestInterruptsAndPreemptionInHandlers(t *testing.T) {
	type context struct {
		off   bool
		count uint32
	}
	const nmi = 0x110000
	want := map[string]map[string]context{ // 2.6.18's return handlers run after a breakpoint too, that of the trampoline
		"2.6.18": {"int3": {true, 0}, "ftrace": {true, 0}, "return": {true, 0}},
		"4.4":    {"int3": {true, 0}, "ftrace": {true, 0}, "return": {true, 0}},
		"5.8":    {"int3": {true, nmi}, "ftrace": {false, 0}, "return": {true, 0}},
		"5.10":   {"int3": {true, nmi}, "ftrace": {false, 0}, "return": {true, 0}},
		"6.1":    {"int3": {true, nmi}, "ftrace": {false, 1}, "return": {false, 1}},
		"6.12":   {"int3": {true, nmi}, "ftrace": {false, 1}, "return": {false, 1}},
	}
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorldOf(t, withoutNMI(t, kernel), 1)
		got := map[string]context{}
		note := func(name string) { got[name] = context{w.k.IRQsDisabled(), w.k.PreemptCount()} }
		for name, fn := range map[string]x86.Addr{"int3": w.steady, "ftrace": w.traced} {
			w.register(t, &kprobes.Kprobe{Addr: fn,
				PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { note(name); return 0 },
				PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) {
					require.Equal(t, got[name], context{w.k.IRQsDisabled(), w.k.PreemptCount()})
				}})
			w.result(t, fn, 1)
		}
		w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf},
			Handler: func(*kprobes.Instance, *x86.PtRegs) int { note("return"); return 0 }})
		w.result(t, w.leaf, 1)
		require.Equal(t, want[kernel], got)
		require.False(t, w.k.IRQsDisabled())
		require.Zero(t, w.k.PreemptCount())
	})
}
