package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// The benchmarks measure the subsystem alone: a trap is a function call here.
// What a hit costs on a machine is measured where the machine is.

// TestHitDoesNotAllocate holds for every way in which an instruction is
// executed, with post handlers, aggregates, nested hits and return probes.
func TestHitDoesNotAllocate(t *testing.T) {
	for _, kernel := range []string{"4.4", "5.8", "5.10", "6.1"} {
		w := newWorldOf(t, withoutNMI(t, kernel), 1)
		w.register(t, &kprobes.Kprobe{Addr: w.steady, PreHandler: pre0, PostHandler: post0})
		w.register(t, &kprobes.Kprobe{Addr: w.steady, PreHandler: pre0, PostHandler: post0})
		w.register(t, &kprobes.Kprobe{Addr: w.calls, PreHandler: pre0})
		w.register(t, &kprobes.Kprobe{Addr: w.traced, PreHandler: pre0, PostHandler: post0})
		w.registerRet(t, &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, Handler: ret0, EntryHandler: ret0})
		for name, hit := range w.hits() {
			require.Zero(t, testing.AllocsPerRun(100, hit), "%s %s", kernel, name)
		}
		require.NoError(t, w.k.Err())
	}
}

// hits are a hit of each function's entry, up to the resume, without a guest.
func (w *world) hits() map[string]func() {
	regs := new(x86.PtRegs)
	sp := uint64(stackBase + 0x1000)
	frame := x86.Addr(sp) - 160
	entry := func(fn x86.Addr) {
		*regs = x86.PtRegs{IP: uint64(fn + 1), CS: x86.KernelCS, SP: sp, Flags: x86.FlagIF}
		w.k.Traps().Int3(regs)
	}
	return map[string]func(){
		"stepped": func() {
			entry(w.steady)
			regs.IP += 4 // the copy of 4 bytes was executed
			if regs.Flags&x86.FlagTF != 0 {
				w.k.Traps().Debug(regs)
			} else {
				regs.IP++
				w.k.Traps().Int3(regs)
			}
		},
		"emulated": func() {
			entry(w.calls)
			if regs.Flags&x86.FlagTF != 0 {
				w.k.Traps().Debug(regs)
			}
		},
		"ftrace": func() {
			*regs = x86.PtRegs{IP: uint64(w.traced + 5), CS: x86.KernelCS, SP: sp, Flags: x86.FlagIF}
			kprobes.Ftrace(w.k, regs)
		},
		"return": func() {
			w.setWord(x86.Addr(sp), uint64(magic))
			entry(w.leaf)
			kprobes.Return(w.k, frame-8, w.frameAt(frame-8, sp))
			w.k.Traps().TaskExit(0)
		},
	}
}

// frameAt is a register frame as a trampoline leaves it.
func (w *world) frameAt(at x86.Addr, sp uint64) *x86.PtRegs {
	regs := ptRegsAt(w.mem(at, x86.PtRegsSize))
	regs.SP = sp + 8
	if w.k.Config().Kret.Rethook {
		regs.SP = sp - 8
	}
	return regs
}

func BenchmarkHit(b *testing.B) {
	w := bareWorld(mustNamed(b, "6.1"))
	for _, p := range []*kprobes.Kprobe{
		{Addr: w.steady, PreHandler: pre0, PostHandler: post0},
		{Addr: w.calls, PreHandler: pre0},
		{Addr: w.traced, PreHandler: pre0, PostHandler: post0},
	} {
		require.NoError(b, w.k.RegisterKprobe(p))
	}
	require.NoError(b, w.k.RegisterKretprobe(&kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, Handler: ret0}))
	for name, hit := range w.hits() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hit()
			}
		})
	}
}

// many is a kernel of n one-instruction functions.
func many(b *testing.B, n int) (*world, []*kprobes.Kprobe) {
	w := bareWorld(mustNamed(b, "6.1"))
	const base x86.Addr = 0xffffffff82000000
	r := &region{start: base, b: make([]byte, 16*n), text: true}
	w.regions = append(w.regions, r)
	ps := make([]*kprobes.Kprobe, n)
	for i := range ps {
		at := base + x86.Addr(16*i)
		copy(r.b[16*i:], movAX+ret)
		ps[i] = &kprobes.Kprobe{Addr: at, PreHandler: pre0}
	}
	w.k = kprobes.New(w.fakeMachine, flatView{w.fakeMachine, base, n}, mustNamed(b, "6.1"))
	return w, ps
}

// flatView finds the functions of many without a search.
type flatView struct {
	*fakeMachine
	base x86.Addr
	n    int
}

func (v flatView) SymbolAt(a x86.Addr) (kimage.Symbol, bool) {
	i := a.Sub(v.base) / 16
	if i < 0 || i >= int64(v.n) {
		return v.fakeMachine.SymbolAt(a)
	}
	return kimage.Symbol{Name: "f", Addr: v.base.Add(16 * i), Size: 16, Type: 't'}, true
}

func (v flatView) InText(a x86.Addr) bool { _, ok := v.SymbolAt(a); return ok }

// BenchmarkRegister100k registers and unregisters 100,000 probes; the reported time is for one of
// them.
func BenchmarkRegister100k(b *testing.B) {
	const n = 100_000
	w, ps := many(b, n)
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range ps {
			p.Flags = 0
			if err := w.k.RegisterKprobe(p); err != nil {
				b.Fatal(err)
			}
		}
		w.k.UnregisterKprobes(ps)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/probe")
	require.Zero(b, w.k.Registered())
}

// BenchmarkHitAmong shows that a hit does not cost more among many probes.
func BenchmarkHitAmong(b *testing.B) {
	for _, n := range []int{1, 100, 100_000} {
		b.Run(map[int]string{1: "1", 100: "100", 100_000: "100k"}[n], func(b *testing.B) {
			w, ps := many(b, n)
			for _, p := range ps {
				require.NoError(b, w.k.RegisterKprobe(p))
			}
			regs := new(x86.PtRegs)
			s, _ := ps[0].Slot()
			b.ReportAllocs()
			for b.Loop() {
				*regs = x86.PtRegs{IP: uint64(ps[0].Addr + 1), CS: x86.KernelCS}
				w.k.Traps().Int3(regs)
				regs.IP = uint64(s.Addr) + uint64(s.InsnLen) + 1
				w.k.Traps().Int3(regs)
			}
		})
	}
}

func mustNamed(t testing.TB, name string) *profile.Config {
	c, ok := profile.Named(name)
	require.True(t, ok)
	return c
}
