package kprobes_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// recorder counts calls and keeps the last registers.
type recorder struct {
	pre, post       int
	preRegs, atPost x86.PtRegs
	order           []string
}

func (r *recorder) probe(at x86.Addr, withPost bool) *kprobes.Kprobe {
	p := &kprobes.Kprobe{Addr: at, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		r.pre++
		r.preRegs = *regs
		r.order = append(r.order, "pre")
		return 0
	}}
	if withPost {
		p.PostHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs, flags uint64) {
			r.post++
			r.atPost = *regs
			r.order = append(r.order, "post")
		}
	}
	return p
}

// TestHandlerRegisters is docs/spec 2.3 and 2.6, and the transcript handler_regs: the registers
// that a handler gets, for each way in which the instruction is executed.
func TestHandlerRegisters(t *testing.T) {
	tests := map[string]struct {
		fn     func(*world) x86.Addr
		off    uint32
		nextIP func(*world) x86.Addr // ip in the post handler
	}{
		"plain":    {fn: func(w *world) x86.Addr { return w.leaf }, nextIP: func(w *world) x86.Addr { return w.leaf + 3 }},
		"stepped":  {fn: func(w *world) x86.Addr { return w.steady }, nextIP: func(w *world) x86.Addr { return w.steady + 4 }},
		"call":     {fn: func(w *world) x86.Addr { return w.calls }, nextIP: func(w *world) x86.Addr { return w.leaf }},
		"jcc":      {fn: func(w *world) x86.Addr { return w.rec }, off: 3, nextIP: func(w *world) x86.Addr { return w.rec + 19 }}, // taken
		"ftrace":   {fn: func(w *world) x86.Addr { return w.traced }, nextIP: func(w *world) x86.Addr { return w.traced + 5 }},
		"ret":      {fn: func(w *world) x86.Addr { return w.leaf }, off: 7, nextIP: func(*world) x86.Addr { return magic }},
		"not_func": {fn: func(w *world) x86.Addr { return w.leaf }, off: 3, nextIP: func(w *world) x86.Addr { return w.leaf + 7 }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			allKernels(t, func(t *testing.T, kernel string) {
				w := newWorld(t, kernel, 1)
				fn := tc.fn(w)
				bare := w.result(t, fn, 0)
				for _, withPost := range []bool{false, true} {
					var r recorder
					p := r.probe(fn+x86.Addr(tc.off), withPost)
					w.register(t, p)
					require.Equal(t, bare, w.result(t, fn, 0))
					require.Equal(t, 1, r.pre)
					require.EqualValues(t, p.Addr+1, r.preRegs.IP)
					require.NotZero(t, r.preRegs.Flags&x86.FlagIF)
					if withPost && kernel == "2.6.18" {
						require.Equal(t, 1, r.post) // before the fix-up: ip is in the slot
					} else if withPost {
						require.Equal(t, 1, r.post)
						require.Equal(t, tc.nextIP(w), x86.Addr(r.atPost.IP))
						require.Equal(t, r.preRegs.Flags, r.atPost.Flags)
					}
					w.k.UnregisterKprobe(p)
					require.NoError(t, w.k.Err())
				}
			})
		})
	}
}

// TestTransparent: with a probe on every instruction the functions compute the same results, and
// the flags are restored.
func TestTransparent(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorld(t, kernel, 1)
		for _, s := range w.symbols {
			for off := uint64(0); off < s.Size; off++ {
				for _, withPost := range []bool{false, true} {
					var r recorder
					p := r.probe(s.Addr+x86.Addr(off), withPost)
					if kernel == "2.6.18" && !wantBoundary(w, s.Addr, p.Addr) {
						continue // no boundary test: such a probe breaks the code
					}
					if w.k.RegisterKprobe(p) != nil {
						continue
					}
					for _, fn := range []x86.Addr{w.leaf, w.steady, w.calls, w.traced, w.rec} {
						bare := map[x86.Addr]uint64{w.leaf: 6, w.steady: 6, w.calls: 7, w.traced: 6, w.rec: 5}[fn]
						th := w.start(0, 0, fn, 5)
						flags := th.regs.Flags
						th.run()
						require.NoError(t, th.err, "%s+%d", s.Name, off)
						require.Equal(t, bare, th.regs.AX, "%s+%d", s.Name, off)
						if fn != w.rec { // it tests
							require.Equal(t, flags, th.regs.Flags)
						}
					}
					w.k.UnregisterKprobe(p)
				}
			}
		}
		require.NoError(t, w.k.Err())
	})
}

// wantBoundary reports whether a newer kernel accepts an address.
func wantBoundary(w *world, start, at x86.Addr) bool {
	lengths := map[string]int{"\x90": 1, "\xc3": 1, "\x0f\x1f": 5, "\x48\x89": 3, "\x48\x83": 4,
		"\x0f\x0d": 4, "\xe8": 5, "\x48\x85": 3, "\x74": 2, "\x48\x31": 3, "\x48\x8b": 3}
	for start < at {
		n := 0
		for l := 2; l > 0 && n == 0; l-- {
			n = lengths[string(w.mem(start, l))]
		}
		if n == 0 {
			return false
		}
		start += x86.Addr(n)
	}
	return start == at && w.byteAt(at) != 0xcc
}

// TestPreHandlerReturnsNonZero is docs/spec 2.3: execution goes on where the
// handler left ip, without the instruction and without post handlers.
func TestPreHandlerReturnsNonZero(t *testing.T) {
	for _, fnName := range []string{"leaf", "traced"} {
		t.Run(fnName, func(t *testing.T) {
			w := newWorld(t, "6.1", 1)
			posts := 0
			w.register(t, &kprobes.Kprobe{
				SymbolName: fnName,
				PreHandler: func(p *kprobes.Kprobe, regs *x86.PtRegs) int {
					regs.AX = 777
					regs.IP = uint64(w.leaf + 7) // its ret
					return 1
				},
				PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) { posts++ },
			})
			fn := w.Lookup(fnName)[0].Addr
			require.EqualValues(t, 777, w.result(t, fn, 1))
			require.Zero(t, posts)
			p, _ := w.k.Current()
			require.Nil(t, p)
		})
	}
}

// TestHandlerResetsBefore4_19: before 4.19 a handler that returns non-zero has to reset the current
// kprobe. A handler that does not reset it leaves the CPU busy, and later hits are missed. See
// docs/spec 2.3.
func TestHandlerResetsBefore4_19(t *testing.T) {
	for _, resets := range []bool{true, false} {
		w := newWorld(t, "4.4", 1)
		n := 0
		p := w.register(t, &kprobes.Kprobe{Addr: w.leaf, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			n++
			regs.IP = uint64(w.leaf + 7)
			if resets {
				w.k.ResetCurrentKprobe()
			}
			return 1
		}})
		w.result(t, w.leaf, 1)
		w.result(t, w.leaf, 1)
		if resets {
			require.Equal(t, 2, n)
			require.Zero(t, p.Nmissed)
		} else {
			require.Equal(t, 1, n)
			require.EqualValues(t, 1, p.Nmissed)
		}
		w.k.Traps().TaskExit(0)
	}
}

// TestHandlerChangesIP is docs/spec 2.3: with 0 returned, a changed ip is
// overwritten unless the instruction is emulated.
func TestHandlerChangesIP(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	p := &kprobes.Kprobe{Addr: w.leaf, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		regs.IP += 100
		return 0
	}}
	w.register(t, p)
	require.EqualValues(t, 6, w.result(t, w.leaf, 5))
	w.k.UnregisterKprobe(p)

	// The je of rec, emulated: two bytes further on it skips a nop's worth.
	q := &kprobes.Kprobe{Addr: w.rec + 3, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		if regs.Flags&x86.FlagZF == 0 {
			regs.IP += 4 // over sub $1,%rdi
			regs.DI = 0
		}
		return 0
	}}
	w.register(t, q)
	require.EqualValues(t, 1, w.result(t, w.rec, 5), "the call is reached with 0, so one level")
}

// TestBoostedDoesNotTrapTwice is docs/spec 2.4, rule 2.
func TestBoostedDoesNotTrapTwice(t *testing.T) {
	w := newWorld(t, "5.10", 1)
	var r recorder
	p := w.register(t, r.probe(w.leaf, false))
	s, ok := p.Slot()
	require.True(t, ok)
	require.True(t, s.Boosted)
	var kinds []kprobes.EventKind
	w.k.Observe(func(e kprobes.Event) { kinds = append(kinds, e.Kind) })
	require.EqualValues(t, 6, w.result(t, w.leaf, 5))
	require.Equal(t, []kprobes.EventKind{kprobes.EventTrap, kprobes.EventPre, kprobes.EventBoost}, kinds)
}

// TestBoostIsDecidedWhenTheSlotIsBuilt is the quirk of docs/spec 2.4: a post handler that joins
// a boosted slot never runs; in kernels that decide at the hit it does.
func TestBoostIsDecidedWhenTheSlotIsBuilt(t *testing.T) {
	for kernel, posts := range map[string]int{"5.10": 0, "5.8": 1} {
		t.Run(kernel, func(t *testing.T) {
			w := newWorld(t, kernel, 1)
			var first, second recorder
			w.register(t, first.probe(w.leaf, false))
			w.register(t, second.probe(w.leaf, true))
			w.result(t, w.leaf, 1)
			require.Equal(t, 1, first.pre)
			require.Equal(t, 1, second.pre)
			require.Equal(t, posts, second.post)
		})
	}
	w := newWorld(t, "5.10", 1)
	var first, second recorder
	w.register(t, second.probe(w.leaf, true))
	w.register(t, first.probe(w.leaf, false))
	w.result(t, w.leaf, 1)
	require.Equal(t, 1, second.post, "registered first, it prevents boosting")
}

// TestVanishedInt3 is the last rule of docs/spec 2.3: to 6.1 an int3 that is no
// longer there is re-executed.
func TestVanishedInt3(t *testing.T) {
	for kernel, handled := range map[string]bool{"6.1": true, "6.12": false} {
		w := newWorld(t, kernel, 1)
		regs := x86.PtRegs{IP: uint64(w.leaf + 1), CS: x86.KernelCS}
		require.Equal(t, handled, w.k.Traps().Int3(&regs), kernel)
		if handled {
			require.EqualValues(t, w.leaf, regs.IP)
		}
		regs.IP = uint64(w.leaf + 9) // padding: a real int3
		require.False(t, w.k.Traps().Int3(&regs))
	}
}

// TestUserModeIsNotOurs: kprobes do not act on user-mode breakpoints.
// See docs/spec 2.2.
func TestUserModeIsNotOurs(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var r recorder
	w.register(t, r.probe(w.leaf, false))
	regs := x86.PtRegs{IP: uint64(w.leaf + 1), CS: 0x33}
	require.False(t, w.k.Traps().Int3(&regs))
	require.Zero(t, r.pre)
}

// TestInterruptsOffWhileStepping is docs/spec 2.4, rule 5: IF is off in the slot
// and comes back.
func TestInterruptsOffWhileStepping(t *testing.T) {
	for _, kernel := range []string{"6.1", "5.8"} {
		w := newWorld(t, kernel, 1)
		var r recorder
		w.register(t, r.probe(w.steady, true))
		th := w.start(0, 0, w.steady, 1)
		th.step() // int3, and into the slot
		s, _ := w.k.Find(w.steady).Slot()
		require.EqualValues(t, s.Addr, th.regs.IP)
		require.Zero(t, th.regs.Flags&x86.FlagIF)
		require.Equal(t, kernel == "5.8", th.regs.Flags&x86.FlagTF != 0)
		_, status := kprobes.StatusOf(w.k, 0)
		require.Equal(t, kprobes.HitSS, status)
		th.run()
		require.NotZero(t, th.regs.Flags&x86.FlagIF)
		require.Zero(t, th.regs.Flags&x86.FlagTF)
	}
}

// TestFlagInstructions is docs/spec 2.7 and 2.8: cli, sti, pushf and popf have the same result as
// unprobed, whichever way they are executed.
func TestFlagInstructions(t *testing.T) {
	allKernels(t, func(t *testing.T, kernel string) {
		w := newWorld(t, kernel, 1)
		fns := map[string]x86.Addr{
			"cli":   w.add("cli", "\xfa", ret),
			"sti":   w.add("sti", "\xfb", ret),
			"pushf": w.add("pushf", "\x9c", "\x58", ret), // pushf; pop %rax
			"popf":  w.add("popf", "\x57", "\x9d", ret),  // push %rdi; popf
		}
		w.clean = w.text()
		for name, fn := range fns {
			for _, withPost := range []bool{false, true} {
				at := fn
				if name == "popf" {
					at++
				}
				arg := uint64(x86.FlagFixed | x86.FlagCF)
				bare := w.start(0, 0, fn, arg)
				bare.run()
				var r recorder
				p := r.probe(at, withPost)
				require.NoError(t, w.k.RegisterKprobe(p))
				th := w.start(0, 0, fn, arg)
				th.run()
				w.k.UnregisterKprobe(p)
				require.NoError(t, th.err)
				require.Equal(t, 1, r.pre)
				require.Equal(t, bare.regs.Flags, th.regs.Flags, name)
				require.Equal(t, bare.regs.AX, th.regs.AX, name)
			}
		}
	})
}

// TestHandlerPanics: a Go handler that panics is reported with its probe's
// name, and the machine goes on as if it had returned 0.
func TestHandlerPanics(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	cause := errors.New("a bug of the user's")
	p := w.register(t, &kprobes.Kprobe{SymbolName: "steady", Offset: 4,
		PreHandler:  func(*kprobes.Kprobe, *x86.PtRegs) int { panic(cause) },
		PostHandler: func(*kprobes.Kprobe, *x86.PtRegs, uint64) { panic("post") },
	})
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	var hp *kprobes.HandlerPanic
	require.ErrorAs(t, w.k.Err(), &hp)
	require.Equal(t, "steady+0x4", hp.Probe)
	require.Equal(t, "pre_handler", hp.Handler)
	require.ErrorIs(t, w.k.Err(), cause)
	require.EqualError(t, w.k.ClearErr(), "probe steady+0x4: pre_handler panicked: a bug of the user's")
	require.NoError(t, w.k.Err())

	w.k.UnregisterKprobe(p)
	w.k.ClearErr()
	var r recorder
	w.register(t, r.probe(w.steady, true))
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.Equal(t, []string{"pre", "post"}, r.order)
	require.NoError(t, w.k.Err())
}

// TestObserve: the steps of a hit are numbered and complete.
func TestObserve(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var r recorder
	w.register(t, r.probe(w.steady, true))
	type step struct {
		Step int
		Kind string
		Addr x86.Addr
	}
	var steps []step
	w.k.Observe(func(e kprobes.Event) {
		require.NotNil(t, e.Regs)
		steps = append(steps, step{e.Step, e.Kind.String(), e.Addr})
	})
	w.result(t, w.steady, 1)
	s, _ := w.k.Find(w.steady).Slot()
	require.Equal(t, []step{
		{1, "trap", w.steady}, {2, "pre", w.steady}, {3, "step", s.Addr},
		{4, "stepped", s.Addr + 4}, {5, "post", w.steady}, {6, "resume", w.steady + 4},
	}, steps)
	w.k.Observe(nil)
	steps = nil
	w.result(t, w.steady, 1)
	require.Empty(t, steps)
}

// TestEmulationFault: a push to unmapped memory inside an emulated call is an
// oops in the kernel; here the hit is not handled and the error says so.
// See docs/spec 2.7.
func TestEmulationFault(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var r recorder
	w.register(t, r.probe(w.calls, false))
	regs := x86.PtRegs{IP: uint64(w.calls + 1), CS: x86.KernelCS, SP: 8}
	require.False(t, w.k.Traps().Int3(&regs))
	require.EqualValues(t, w.calls, regs.IP)
	var ef *kprobes.EmulationFault
	require.ErrorAs(t, w.k.Err(), &ef)
	p, _ := w.k.Current()
	require.Nil(t, p)
}

// TestQuirkSwitches tests one of the profile's emulation switches, in place of all. See docs/spec
// 2.7.
func TestQuirkSwitches(t *testing.T) {
	for _, quirk := range []bool{true, false} {
		c, _ := profile.Named("6.1")
		c.Step.RetIgnoresImm = quirk
		w := newWorldOf(t, c, 1)
		fn := w.add("ret_imm", "\xc2\x08\x00")
		w.clean = w.text()
		var r recorder
		w.register(t, r.probe(fn, true))
		th := w.start(0, 0, fn, 0)
		sp := th.regs.SP + 8
		th.run()
		if quirk {
			require.Equal(t, sp, th.regs.SP)
		} else {
			require.Equal(t, sp+8, th.regs.SP)
		}
	}
}
