package kprobes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// calls counts a return probe's handlers.
type calls struct {
	entry, ret int
	values     []uint64
}

func (c *calls) probe(at x86.Addr, maxActive int) *kprobes.Kretprobe {
	return &kprobes.Kretprobe{
		KP: kprobes.Kprobe{Addr: at}, MaxActive: maxActive,
		EntryHandler: func(*kprobes.Instance, *x86.PtRegs) int { c.entry++; return 0 },
		Handler: func(_ *kprobes.Instance, regs *x86.PtRegs) int {
			c.ret++
			c.values = append(c.values, regs.AX)
			return 0
		},
	}
}

// TestKretprobe is KUnit's test_kretprobe for every kernel and every way in
// which the entry is executed.
// See docs/spec 5.5.
func TestKretprobe(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorldOf(t, withoutNMI(t, kernel), 1)
		for _, fn := range []x86.Addr{w.leaf, w.steady, w.calls, w.traced} {
			bare := w.result(t, fn, 5)
			c := calls{}
			rp := c.probe(fn, 0)
			require.NoError(t, w.k.RegisterKretprobe(rp))
			th := w.start(0, 0, fn, 5)
			before := th.regs
			th.run()
			require.NoError(t, th.err)
			require.Equal(t, bare, th.regs.AX)
			require.Equal(t, before.Flags, th.regs.Flags)
			require.Equal(t, before.SP+8, th.regs.SP)
			require.Equal(t, 1, c.ret)
			require.Equal(t, []uint64{bare}, c.values)
			if kernel != "2.6.18" {
				require.Equal(t, 1, c.entry)
			}
			require.Zero(t, w.k.Pending(0))
			require.NoError(t, w.k.Err())
			w.k.UnregisterKretprobe(rp)
		}
	})
}

// TestKretprobeRegisters is the transcript handler_regs: the registers that a return handler gets,
// and the changes that take effect. See docs/spec 5.4.
func TestKretprobeRegisters(t *testing.T) {
	for _, kernel := range []string{"4.4", "5.10", "6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			w := newWorld(t, kernel, 1)
			th := w.start(0, 0, w.leaf, 5)
			before := th.regs
			before.SP += 8 // as the caller has it after the return
			w.registerRet(t, &kprobes.Kretprobe{
				KP: kprobes.Kprobe{Addr: w.leaf},
				Handler: func(i *kprobes.Instance, regs *x86.PtRegs) int {
					require.Equal(t, magic, i.RetAddr)
					require.EqualValues(t, 6, regs.AX)
					require.EqualValues(t, x86.KernelCS, regs.CS)
					require.EqualValues(t, ^uint64(0), regs.OrigAX)
					require.Equal(t, before.SP, regs.SP)
					if kernel == "4.4" || kernel == "5.10" {
						require.EqualValues(t, w.k.Trampoline(), regs.IP)
					} else {
						require.EqualValues(t, magic, regs.IP)
						require.EqualValues(t, x86.KernelDS, regs.SS)
					}
					regs.AX, regs.R15 = 100, 15
					regs.Flags |= x86.FlagCF
					regs.IP, regs.SP = 1, 2 // lost
					return 7
				},
			})
			th.run()
			require.NoError(t, th.err)
			require.EqualValues(t, 100, th.regs.AX)
			require.EqualValues(t, 15, th.regs.R15)
			require.Equal(t, before.SP, th.regs.SP)
			require.Equal(t, before.Flags|x86.FlagCF, th.regs.Flags)
		})
	}
}

// TestTrampolineBytes: the trampoline is laid out as docs/spec 5.4 says.
func TestTrampolineBytes(t *testing.T) {
	push := "57 56 52 51 50 41 50 41 51 41 52 41 53 53 55 41 54 41 55 41 56 41 57 "
	pop := "41 5f 41 5e 41 5d 41 5c 5d 5b 41 5b 41 5a 41 59 41 58 58 59 5a 5e 5f "
	tests := map[string]string{
		"5.10": "54 9c 48 83 ec 18 " + push + "48 89 e7 e8 db ef ff ff " + pop + "48 83 c4 18 9d c3",
		"6.1":  "68 00 10 00 c0 6a 18 54 9c 48 83 ec 18 " + push + "48 89 e7 e8 d4 ef ff ff " + pop + "48 83 c4 18 48 83 c4 10 9d c3",
	}
	for kernel, want := range tests {
		w := newWorld(t, kernel, 1)
		w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}})
		require.Equal(t, execBase+0x1000, w.k.Trampoline())
		require.Equal(t, want, fmt.Sprintf("% x", w.mem(w.k.Trampoline(), (len(want)+1)/3)))
	}
}

// TestRecursionNeedsAnInstanceALevel is the transcript recursion_nmissed: a function that
// calls itself ten deep, with pools of several sizes, twice.
// See docs/spec 5.8.
func TestRecursionNeedsAnInstanceALevel(t *testing.T) {
	tests := []struct{ asked, got10, hits10, got61, hits61 int }{
		{0, 2, 2, 10, 10}, {1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {5, 5, 5, 5, 5}, {100, 100, 10, 100, 10},
	}
	for kernel, pick := range map[string]func(i int) (int, int){
		"5.10": func(i int) (int, int) { return tests[i].got10, tests[i].hits10 },
		"6.1":  func(i int) (int, int) { return tests[i].got61, tests[i].hits61 },
		"6.12": func(i int) (int, int) { return tests[i].got61, tests[i].hits61 },
	} {
		for i, tc := range tests {
			t.Run(fmt.Sprint(kernel, "_", tc.asked), func(t *testing.T) {
				maxActive, hits := pick(i)
				w := newWorld(t, kernel, 2)
				c := calls{}
				rp := w.registerRet(t, c.probe(w.rec, tc.asked))
				require.Equal(t, maxActive, rp.MaxActive)
				for call := 1; call <= 2; call++ {
					c = calls{}
					require.EqualValues(t, 9, w.result(t, w.rec, 9))
					require.Equal(t, hits, c.entry)
					require.Equal(t, hits, c.ret)
					require.EqualValues(t, call*(10-hits), rp.Nmissed)
					require.Zero(t, rp.KP.Nmissed)
				}
				require.NoError(t, w.k.DisableKretprobe(rp))
				require.NoError(t, w.k.EnableKretprobe(rp))
				require.EqualValues(t, 2*(10-hits), rp.Nmissed)
			})
		}
	}
}

// TestEntryHandlerRefuses: a non-zero entry handler means that the call is not
// tracked, and not missed (transcript handler_regs, last line).
// See docs/spec 5.3.
func TestEntryHandlerRefuses(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	c := calls{}
	rp := c.probe(w.leaf, 1)
	rp.EntryHandler = func(*kprobes.Instance, *x86.PtRegs) int { c.entry++; return c.entry & 1 }
	w.registerRet(t, rp)
	for range 10 {
		w.result(t, w.leaf, 1)
	}
	require.Equal(t, []int{10, 5}, []int{c.entry, c.ret})
	require.Zero(t, rp.Nmissed)
}

// TestInstanceDataIsNotCleared: DataSize bytes an instance, zeroed once.
// See docs/spec 5.1.
func TestInstanceDataIsNotCleared(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var seen []byte
	w.registerRet(t, &kprobes.Kretprobe{
		KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: 1, DataSize: 3,
		EntryHandler: func(i *kprobes.Instance, _ *x86.PtRegs) int {
			require.Len(t, i.Data, 3)
			seen = append(seen, i.Data[0])
			i.Data[0] = 9
			return 0
		},
		Handler: func(i *kprobes.Instance, _ *x86.PtRegs) int {
			require.EqualValues(t, 9, i.Data[0])
			require.NotNil(t, i.Kretprobe())
			return 0
		},
	})
	w.result(t, w.leaf, 1)
	w.result(t, w.leaf, 1)
	require.Equal(t, []byte{0, 9}, seen)
}

func rel32(next, to x86.Addr) []byte {
	d := uint32(to.Sub(next))
	return []byte{byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
}

// TestProbeHitInReturnHandler: probes that a return handler hits are missed.
// See docs/spec 5.5.
func TestProbeHitInReturnHandler(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var inner recorder
	p := w.register(t, inner.probe(w.steady, true))
	n := calls{}
	nested := w.registerRet(t, n.probe(w.traced, 0))
	w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, Handler: func(_ *kprobes.Instance, regs *x86.PtRegs) int {
		require.EqualValues(t, 3, w.nested(regs, w.steady, 2))
		require.EqualValues(t, 3, w.nested(regs, w.traced, 2))
		return 0
	}})
	w.result(t, w.leaf, 1)
	require.Zero(t, inner.pre)
	require.EqualValues(t, 1, p.Nmissed)
	require.EqualValues(t, 1, nested.KP.Nmissed)
	require.Zero(t, nested.Nmissed)
	require.Zero(t, n.ret)
}

// TestInstancesArePerTask: two tasks in one function at a time, each with its
// own return.
// See docs/spec 5.3.
func TestInstancesArePerTask(t *testing.T) {
	w := newWorld(t, "6.1", 2)
	c := calls{}
	rp := w.registerRet(t, c.probe(w.rec, 12))
	a, b := w.start(0, 0, w.rec, 5), w.start(1, 7, w.rec, 5)
	for !a.done || !b.done {
		for _, th := range []*thread{a, b} {
			if !th.done {
				th.step()
			}
		}
	}
	require.NoError(t, a.err)
	require.NoError(t, b.err)
	require.EqualValues(t, 5, a.regs.AX)
	require.EqualValues(t, 5, b.regs.AX)
	require.Equal(t, 12, c.ret)
	require.Zero(t, rp.Nmissed)
	require.Zero(t, w.k.Pending(0)+w.k.Pending(7))
}

// TestTaskExitRecyclesInstances is docs/spec 5.7: the instances of a task that ends are recycled,
// without handlers.
func TestTaskExitRecyclesInstances(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	c := calls{}
	w.registerRet(t, c.probe(w.rec, 3))
	th := w.start(0, 2, w.rec, 9)
	for w.k.Pending(2) < 3 {
		th.step()
	}
	w.k.Traps().TaskExit(2)
	w.k.Traps().TaskExit(99)
	require.Zero(t, w.k.Pending(2))
	require.EqualValues(t, 1, w.result(t, w.rec, 1))
	require.Equal(t, 2, c.ret, "the pool is full again")
}

// TestUnregisterWithPendingReturns is docs/spec 5.7: the calls in flight return to
// their callers, and no handler runs.
func TestUnregisterWithPendingReturns(t *testing.T) {
	for _, kernel := range []string{"5.10", "6.1"} {
		w := newWorld(t, kernel, 1)
		c := calls{}
		rp := c.probe(w.rec, 10)
		require.NoError(t, w.k.RegisterKretprobe(rp))
		th := w.start(0, 0, w.rec, 9)
		for w.k.Pending(0) < 5 {
			th.step()
		}
		w.k.UnregisterKretprobe(rp)
		again := c.probe(w.leaf, 1)
		require.NoError(t, w.k.RegisterKretprobe(again))
		th.run()
		require.NoError(t, th.err)
		require.EqualValues(t, 9, th.regs.AX)
		require.Zero(t, c.ret)
		require.Zero(t, w.k.Pending(0))
		w.k.UnregisterKretprobe(again)
		rp.KP.Flags = 0 // unregistering has left it disabled
		require.NoError(t, w.k.RegisterKretprobe(rp), "the object can be used again")
		require.EqualValues(t, 9, w.result(t, w.rec, 9))
		require.Equal(t, 10, c.ret)
		w.k.UnregisterKretprobe(rp)
	}
}

// TestFindReturnAddress is docs/spec 5.6 and KUnit's stack trace cases: inside a
// handler every hidden return address can be found, in order.
func TestFindReturnAddress(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	c := calls{}
	rp := c.probe(w.rec, 10)
	w.registerRet(t, rp)
	var found []x86.Addr
	rp.Handler = func(_ *kprobes.Instance, regs *x86.PtRegs) int {
		if len(found) > 0 {
			return 0
		}
		var cursor kprobes.Cursor
		for sp := x86.Addr(regs.SP) - 8; sp < stackBase+stackSize; sp += 8 {
			if x86.Addr(w.word(sp)) == w.k.Trampoline() {
				found = append(found, w.k.FindReturnAddress(0, sp, &cursor))
			}
		}
		return 0
	}
	require.EqualValues(t, 3, w.result(t, w.rec, 3))
	afterCall := w.rec + 14
	require.Equal(t, []x86.Addr{afterCall, afterCall, afterCall, magic}, found)
	require.Zero(t, w.k.FindReturnAddress(0, 1, nil))
	require.Zero(t, w.k.FindReturnAddress(-1, 1, nil))
}

// TestKretprobePanics: a return handler that panics leaves the return intact.
func TestKretprobePanics(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	w.registerRet(t, &kprobes.Kretprobe{
		KP:           kprobes.Kprobe{SymbolName: "leaf"},
		EntryHandler: func(*kprobes.Instance, *x86.PtRegs) int { panic("in") },
		Handler:      func(*kprobes.Instance, *x86.PtRegs) int { panic("out") },
	})
	require.EqualValues(t, 6, w.result(t, w.leaf, 5))
	require.EqualError(t, w.k.ClearErr(), "probe leaf: entry_handler panicked: in")
	current, _ := w.k.Current()
	require.Nil(t, current)
	require.Zero(t, w.k.Pending(0))
}
