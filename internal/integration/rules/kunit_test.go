package rules

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// The cases of the kernel's unit test of kprobes (lib/test_kprobes.c; docs/spec
// 10.3), on functions of the guest with the names and bodies of that test.

// randomValue replaces the test's random argument: any value above 3 does.
const randomValue = 0x2f0c1d3

// eachKernel runs a case for every release.
func eachKernel(t *testing.T, fn func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes)) {
	for _, kernel := range profile.Names() {
		t.Run(kernel, func(t *testing.T) {
			l := guest(t, kernel, nil, nil)
			fn(t, l, l.Kprobes)
		})
	}
}

// pair is a probe whose handlers compute what the upstream test's handlers
// compute: the post handler uses the pre handler's result, and both check that
// they run inside a hit.
type pair struct {
	*kprobes.Kprobe
	pre, post uint64
}

func newPair(t *testing.T, l *kprobelab.Lab, target string) *pair {
	p := &pair{Kprobe: &kprobes.Kprobe{Addr: at(t, l, target)}}
	handled := func() {
		current, _ := l.Kprobes.Current()
		require.NotNil(t, current, "preemption is off in a handler")
	}
	p.PreHandler = func(_ *kprobes.Kprobe, r *x86.PtRegs) int {
		handled()
		p.pre = randomValue / 10
		return 0
	}
	p.PostHandler = func(_ *kprobes.Kprobe, r *x86.PtRegs, _ uint64) {
		handled()
		require.EqualValues(t, randomValue/10, p.pre)
		p.post = p.pre + randomValue
	}
	return p
}

func TestKUnit_test_kprobe(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		p := newPair(t, l, "kprobe_target")
		require.NoError(t, k.RegisterKprobe(p.Kprobe))
		require.EqualValues(t, randomValue/10, call(t, l, "kprobe_target", randomValue))
		k.UnregisterKprobe(p.Kprobe)
		require.NotZero(t, p.pre)
		require.NotZero(t, p.post)
	})
}

func TestKUnit_test_kprobes(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		a, b := newPair(t, l, "kprobe_target"), newPair(t, l, "kprobe_target2")
		list := []*kprobes.Kprobe{a.Kprobe, b.Kprobe}
		require.NoError(t, k.RegisterKprobes(list))
		call(t, l, "kprobe_target", randomValue)
		require.NotZero(t, a.pre)
		require.NotZero(t, a.post)
		require.Zero(t, b.pre)
		require.EqualValues(t, randomValue/10+1, call(t, l, "kprobe_target2", randomValue))
		require.NotZero(t, b.pre)
		require.NotZero(t, b.post)
		k.UnregisterKprobes(list)
	})
}

// The handlers call the function that they are on: both calls are missed. In
// 2.6.18 the call in the post handler disarms the probe instead (docs/spec 2.5).
func TestKUnit_test_kprobe_missed(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		p := newPair(t, l, "kprobe_recursion_target")
		recurse := func() {
			ax, err := l.Machine.Call("kprobe_recursion_target", randomValue)
			require.NoError(t, err)
			require.EqualValues(t, randomValue/10, ax)
		}
		pre, post := p.PreHandler, p.PostHandler
		p.PreHandler = func(p *kprobes.Kprobe, r *x86.PtRegs) int { recurse(); return pre(p, r) }
		p.PostHandler = func(p *kprobes.Kprobe, r *x86.PtRegs, f uint64) { recurse(); post(p, r, f) }
		if k.Config().Step.NestedPostDisarms {
			p.PostHandler = post
			recurse2618(t, l, k, p)
			return
		}
		require.NoError(t, k.RegisterKprobe(p.Kprobe))
		call(t, l, "kprobe_recursion_target", randomValue)
		require.EqualValues(t, 2, p.Nmissed)
		require.NotZero(t, p.pre)
		require.NotZero(t, p.post)
		k.UnregisterKprobe(p.Kprobe)
	})
}

func recurse2618(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes, p *pair) {
	require.NoError(t, k.RegisterKprobe(p.Kprobe))
	call(t, l, "kprobe_recursion_target", randomValue)
	require.EqualValues(t, 1, p.Nmissed)
	require.NotZero(t, p.post)
	k.UnregisterKprobe(p.Kprobe)
}

// returns is the return probe of the kernel's test: its entry handler must have run, and the value
// must be the function's.
func returns(t *testing.T, l *kprobelab.Lab, target string, want uint64) (*kprobes.Kretprobe, *int) {
	hits, entered := new(int), !l.Kprobes.Config().Kret.EntryHandler
	return &kprobes.Kretprobe{
		KP:           kprobes.Kprobe{Addr: at(t, l, target)},
		EntryHandler: func(*kprobes.Instance, *x86.PtRegs) int { entered = true; return 0 },
		Handler: func(_ *kprobes.Instance, r *x86.PtRegs) int {
			current, _ := l.Kprobes.Current()
			require.True(t, entered)
			require.NotNil(t, current, "preemption is off in a handler")
			require.Equal(t, want, r.AX)
			*hits++
			return 0
		},
	}, hits
}

func TestKUnit_test_kretprobe(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		rp, hits := returns(t, l, "kprobe_target", randomValue/10)
		require.NoError(t, k.RegisterKretprobe(rp))
		require.EqualValues(t, randomValue/10, call(t, l, "kprobe_target", randomValue))
		k.UnregisterKretprobe(rp)
		require.Equal(t, 1, *hits)
	})
}

func TestKUnit_test_kretprobes(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		a, hitsA := returns(t, l, "kprobe_target", randomValue/10)
		b, hitsB := returns(t, l, "kprobe_target2", randomValue/10+1)
		require.NoError(t, k.RegisterKretprobes([]*kprobes.Kretprobe{a, b}))
		call(t, l, "kprobe_target", randomValue)
		require.Equal(t, []int{1, 0}, []int{*hitsA, *hitsB})
		call(t, l, "kprobe_target2", randomValue)
		require.Equal(t, []int{1, 1}, []int{*hitsA, *hitsB})
		k.UnregisterKretprobes([]*kprobes.Kretprobe{a, b})
	})
}

// stackTrace is an unwinder's walk over words of the stack from an address up: at the trampoline it
// looks up the true address.
func stackTrace(t *testing.T, l *kprobelab.Lab, from x86.Addr) (list []x86.Addr) {
	var cursor kprobes.Cursor
	for n := range 16 {
		var b [8]byte
		slot := from.Add(int64(8 * n))
		if l.Machine.ReadMem(slot, b[:]) != nil {
			return list
		}
		word := x86.Addr(binary.LittleEndian.Uint64(b[:]))
		if word == l.Kprobes.Trampoline() {
			word = l.Kprobes.FindReturnAddress(l.Machine.Task(), slot, &cursor)
		}
		if _, text := l.Image.SymbolAt(word); text || word == returnToHost(l) {
			list = append(list, word)
		}
	}
	return list
}

// returnToHost returns the return address of a function that the host calls.
func returnToHost(l *kprobelab.Lab) x86.Addr {
	for _, s := range l.Machine.Symbols() {
		if s.Name == "return_to_host" {
			return s.Addr
		}
	}
	return 0
}

func TestKUnit_test_stacktrace_on_kretprobe(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		var trace []x86.Addr
		rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: at(t, l, "kprobe_stacktrace_internal_target")}}
		var real x86.Addr
		rp.Handler = func(i *kprobes.Instance, r *x86.PtRegs) int {
			real = i.RetAddr
			trace = append([]x86.Addr{k.FindReturnAddress(i.Task, x86.Addr(r.SP)-8, nil)}, stackTrace(t, l, x86.Addr(r.SP))...)
			if !k.Config().Kret.HandlerIPIsTrampoline {
				require.EqualValues(t, real, r.IP, "a trace from regs starts with the real address")
			}
			return 0
		}
		require.NoError(t, k.RegisterKretprobe(rp))
		require.EqualValues(t, randomValue+2, call(t, l, "kprobe_stacktrace_target", randomValue))
		k.UnregisterKretprobe(rp)
		s, ok := l.Image.SymbolAt(real)
		require.True(t, ok)
		require.Equal(t, "kprobe_stacktrace_target", s.Name)
		require.Equal(t, []x86.Addr{real, returnToHost(l)}, trace)
	})
}

func TestKUnit_test_stacktrace_on_nested_kretprobe(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		var outer, inner x86.Addr
		var trace []x86.Addr
		a := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: at(t, l, "kprobe_stacktrace_target")}}
		a.Handler = func(i *kprobes.Instance, r *x86.PtRegs) int { outer = i.RetAddr; return 0 }
		b := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: at(t, l, "kprobe_stacktrace_internal_target")}}
		b.Handler = func(i *kprobes.Instance, r *x86.PtRegs) int {
			inner = i.RetAddr
			trace = append([]x86.Addr{k.FindReturnAddress(i.Task, x86.Addr(r.SP)-8, nil)}, stackTrace(t, l, x86.Addr(r.SP))...)
			return 0
		}
		require.NoError(t, k.RegisterKretprobes([]*kprobes.Kretprobe{a, b}))
		require.EqualValues(t, randomValue+2, call(t, l, "kprobe_stacktrace_target", randomValue))
		k.UnregisterKretprobes([]*kprobes.Kretprobe{a, b})
		require.Equal(t, returnToHost(l), outer)
		require.Equal(t, []x86.Addr{inner, outer}, trace, "adjacent and in order")
	})
}

// docs/spec 10.4: the tracer's boot self-test, without the tracer.
func TestBootSelfTest(t *testing.T) {
	eachKernel(t, func(t *testing.T, l *kprobelab.Lab, k *kprobes.Kprobes) {
		p := newPair(t, l, "kprobe_trace_selftest_target")
		rp, hits := returns(t, l, "kprobe_trace_selftest_target", 21)
		require.NoError(t, k.RegisterKprobe(p.Kprobe))
		require.NoError(t, k.RegisterKretprobe(rp))
		require.EqualValues(t, 21, call(t, l, "kprobe_trace_selftest_target", 1, 2, 3, 4, 5, 6))
		require.Equal(t, 1, *hits)
		require.NoError(t, k.DisableKprobe(p.Kprobe))
		require.NoError(t, k.DisableKretprobe(rp))
		require.EqualValues(t, 21, call(t, l, "kprobe_trace_selftest_target", 1, 2, 3, 4, 5, 6))
		require.Equal(t, 1, *hits)
		k.UnregisterKprobe(p.Kprobe)
		k.UnregisterKretprobe(rp)
	})
}
