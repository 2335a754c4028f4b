package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// TestNestedHitIsMissed is docs/spec 2.5 and the transcript recursion_nmissed: a probe that
// a handler hits runs no handler, is counted, and executes its instruction.
func TestNestedHitIsMissed(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		for _, nestedPost := range []bool{false, true} {
			w := newWorld(t, kernel, 1)
			var inner recorder
			b := w.register(t, inner.probe(w.leaf, nestedPost))
			hits := 0
			a := w.register(t, &kprobes.Kprobe{Addr: w.steady, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
				hits++
				require.EqualValues(t, 2, w.nested(regs, w.leaf, 1))
				return 0
			}})
			for i := range 10 {
				require.EqualValues(t, i+1, w.result(t, w.steady, uint64(i)))
			}
			require.Equal(t, 10, hits)
			require.Zero(t, a.Nmissed)
			require.Zero(t, inner.pre)
			require.EqualValues(t, 10, b.Nmissed)
			require.EqualValues(t, 6, w.result(t, w.leaf, 5))
			require.Equal(t, 1, inner.pre)
			require.EqualValues(t, 10, b.Nmissed)
			require.NoError(t, w.k.Err())
		}
	})
}

// TestHitOfItselfInItsHandler is the transcript's self-recursive handler: a probe whose
// handlers call the probed function. KUnit's test_kprobe_missed counts 2.
// See docs/spec 2.5.
func TestHitOfItselfInItsHandler(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	pre, post := 0, 0
	p := w.register(t, &kprobes.Kprobe{
		Addr: w.steady,
		PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			pre++
			require.EqualValues(t, 8, w.nested(regs, w.steady, 7))
			return 0
		},
		PostHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) {
			post++
			require.EqualValues(t, 8, w.nested(regs, w.steady, 7))
		},
	})
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.Equal(t, []int{1, 1}, []int{pre, post})
	require.EqualValues(t, 2, p.Nmissed)
}

// TestNestedInPostHandlerDisarmsIn2_6_18: 2.6.18 disarms a probe for good that is hit in a post
// handler, and forgets the outer one.
// See docs/spec 2.5.
func TestNestedInPostHandlerDisarmsIn2_6_18(t *testing.T) {
	w := newWorld(t, "2.6.18", 1)
	var inner recorder
	b := w.register(t, inner.probe(w.leaf, false))
	w.register(t, &kprobes.Kprobe{Addr: w.steady, PostHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) {
		require.EqualValues(t, 2, w.nested(regs, w.leaf, 1))
	}})
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.Zero(t, b.Nmissed)
	require.EqualValues(t, 0x48, w.byteAt(w.leaf), "its int3 is gone")
	w.result(t, w.leaf, 1)
	require.Zero(t, inner.pre)
}

// TestUnrecoverableThirdLevel is the table of docs/spec 2.5: a hit while a nested probe's
// instruction is being stepped is the kernel's BUG.
func TestUnrecoverableThirdLevel(t *testing.T) {
	for _, kernel := range []string{"6.1", "5.10", "5.8", "4.4"} {
		t.Run(kernel, func(t *testing.T) {
			w := newWorld(t, kernel, 1)
			var log []string
			w.k.OnLog(func(line string) { log = append(log, line) })
			for _, fn := range []x86.Addr{w.steady, w.calls} {
				w.register(t, &kprobes.Kprobe{Addr: fn, PreHandler: pre0})
			}
			third := w.register(t, &kprobes.Kprobe{Addr: w.loads, PreHandler: pre0, PostHandler: post0})
			th := w.start(0, 0, w.rec, 0)
			w.register(t, &kprobes.Kprobe{Addr: w.rec, PostHandler: post0, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
				nested := *regs
				nested.IP = uint64(w.steady + 1) // steady is hit, and stepped …
				require.True(t, w.k.Traps().Int3(&nested))
				_, status := w.k.Current()
				require.Equal(t, kprobes.Reenter, status)
				deeper := nested
				deeper.IP = uint64(w.loads + 1) // … when an NMI hits a third
				require.False(t, w.k.Traps().Int3(&deeper))
				return 0
			}})
			th.step()
			var bug *kprobes.Bug
			require.ErrorAs(t, w.k.Err(), &bug)
			require.Equal(t, "loads", bug.Probe)
			require.Equal(t, "steady", bug.Current)
			require.Equal(t, kprobes.Reenter, bug.Status)
			require.Contains(t, bug.Error(), "BUG: probe loads: unrecoverable")
			dump := []string{"Unrecoverable kprobe detected.", "Dumping kprobe:", "Name: (null)", "Offset: 0", "Address: loads+0x0/0x10"}
			if kernel == "6.1" {
				dump = []string{"Unrecoverable kprobe detected.", "Dump kprobe:", ".symbol_name = (null), .offset = 0, .addr = loads+0x0/0x10"}
			}
			require.Equal(t, dump, log)
			require.Zero(t, third.Nmissed)
			w.k.Traps().TaskExit(0)
		})
	}
}

// TestStateIsPerCPU: a hit on one CPU is no re-entry for another CPU. See docs/spec 2.1.
func TestStateIsPerCPU(t *testing.T) {
	w := newWorld(t, "6.1", 2)
	var r recorder
	p := w.register(t, r.probe(w.steady, true))
	a, b := w.start(0, 0, w.steady, 1), w.start(1, 1, w.steady, 2)
	for !a.done || !b.done {
		for _, th := range []*thread{a, b} {
			if !th.done {
				th.step()
			}
		}
	}
	require.NoError(t, a.err)
	require.NoError(t, b.err)
	require.Equal(t, []uint64{2, 3}, []uint64{a.regs.AX, b.regs.AX})
	require.Equal(t, 2, r.pre)
	require.Equal(t, 2, r.post)
	require.Zero(t, p.Nmissed)
}

// TestAbortedRun: a task whose run is given up in a hit does not leave its CPU
// busy.
func TestAbortedRun(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var r recorder
	p := w.register(t, r.probe(w.steady, true))
	w.start(0, 3, w.steady, 1).step()
	current, _ := kprobes.StatusOf(w.k, 0)
	require.Same(t, p, current)
	w.k.Traps().TaskExit(2)
	current, _ = kprobes.StatusOf(w.k, 0)
	require.Same(t, p, current, "another task's end")
	w.k.Traps().TaskExit(3)
	w.result(t, w.steady, 1)
	require.Equal(t, 2, r.pre)
	require.Zero(t, p.Nmissed)
}

// TestFaultInSlot is docs/spec 7.2: a fault of the copy is the original's; resolved
// by the exception table, the probe has run its pre handler only.
func TestFaultInSlot(t *testing.T) {
	for _, kernel := range []string{"6.1", "5.8"} {
		w := newWorld(t, kernel, 1)
		w.fixups[w.loads] = w.loads + 4 // mov %rdi,%rax; ret
		var r recorder
		w.register(t, r.probe(w.loads, true))
		require.EqualValues(t, 0x10, w.result(t, w.loads, 0x10))
		require.Equal(t, 1, r.pre)
		require.Zero(t, r.post)
		current, _ := w.k.Current()
		require.Nil(t, current)
		require.EqualValues(t, uint64(magic), w.result(t, w.loads, uint64(stackBase)+stackSize-64-8), "and works")
		require.Equal(t, 2, r.pre)
		require.Equal(t, 1, r.post)
	}
}

// TestFaultInHandler is docs/spec 7.3 for the releases that differ.
func TestFaultInHandler(t *testing.T) {
	tests := map[string]struct {
		kernel  string
		handler bool
		fixup   bool
		handled bool
		missed  uint64
		calls   int
	}{
		"6.1_nothing":           {kernel: "6.1", handler: true, fixup: true},
		"5.8_fault_handler":     {kernel: "5.8", handler: true, handled: true, missed: 1, calls: 1},
		"5.8_none":              {kernel: "5.8", fixup: true, missed: 1},
		"4.4_exception_table":   {kernel: "4.4", fixup: true, handled: true, missed: 1},
		"4.4_handler_is_before": {kernel: "4.4", handler: true, fixup: true, handled: true, missed: 1, calls: 1},
		"4.4_none":              {kernel: "4.4", missed: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.kernel, 1)
			if tc.fixup {
				w.fixups[w.loads] = w.loads + 4
			}
			calls := 0
			p := &kprobes.Kprobe{Addr: w.steady, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
				faulting := *regs
				faulting.IP = uint64(w.loads)
				require.Equal(t, tc.handled, w.k.Traps().Fault(&faulting, 14))
				return 0
			}}
			if tc.handler {
				p.FaultHandler = func(_ *kprobes.Kprobe, _ *x86.PtRegs, trap int) int {
					require.Equal(t, 14, trap)
					calls++
					return 1
				}
			}
			w.register(t, p)
			w.result(t, w.steady, 1)
			require.Equal(t, tc.missed, p.Nmissed)
			require.Equal(t, tc.calls, calls)
		})
	}
}

// TestFaultInAMembersHandler: in an aggregate only the faulting member's handler is
// called, and every member counts.
// See docs/spec 7.3.
func TestFaultInAMembersHandler(t *testing.T) {
	w := newWorld(t, "5.10", 1)
	calls := map[string]int{}
	probe := func(name string, faults bool) *kprobes.Kprobe {
		return w.register(t, &kprobes.Kprobe{
			Addr: w.steady,
			PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
				if faults {
					faulting := *regs
					require.True(t, w.k.Traps().Fault(&faulting, 14))
				}
				return 0
			},
			FaultHandler: func(*kprobes.Kprobe, *x86.PtRegs, int) int { calls[name]++; return 1 },
		})
	}
	a, b := probe("a", true), probe("b", false)
	w.result(t, w.steady, 1)
	require.Equal(t, map[string]int{"a": 1}, calls)
	require.Equal(t, []uint64{1, 1}, []uint64{a.Nmissed, b.Nmissed})
}

// TestFtraceReentry is docs/spec 2.9: a hit while another probe is handled is
// missed, and the site is passed.
func TestFtraceReentry(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var inner recorder
	b := w.register(t, inner.probe(w.traced, true))
	w.register(t, &kprobes.Kprobe{Addr: w.steady, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		require.EqualValues(t, 2, w.nested(regs, w.traced, 1))
		return 0
	}})
	w.result(t, w.steady, 1)
	require.Zero(t, inner.pre)
	require.EqualValues(t, 1, b.Nmissed)
}
