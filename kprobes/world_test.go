package kprobes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Instructions that the functions are made of.
const (
	nop      = "\x90"
	nop5     = "\x0f\x1f\x44\x00\x00"
	movAX    = "\x48\x89\xf8"     // mov %rdi,%rax
	addAX    = "\x48\x83\xc0\x01" // add $1,%rax
	ret      = "\xc3"
	int3Insn = "\xcc"
	prefetch = "\x0f\x0d\x0c\x24" // prefetchw (%rsp): never boosted
	load     = "\x48\x8b\x07"     // mov (%rdi),%rax
	endbr    = "\xf3\x0f\x1e\xfa"
)

// world is the fake machine, its kernel and the subsystem.
type world struct {
	*fakeMachine
	k *kprobes.Kprobes
	// The functions: leaf(x) = x+1; steady starts with an instruction that is
	// always stepped; calls(x) = leaf(x)+1; rec(n) = n; traced has a fentry
	// site; loads(p) = *p. modFn and modFt are leaf and traced in the module.
	leaf, steady, calls, rec, traced, loads, modFn, modFt x86.Addr
	clean                                                 string
}

func newWorld(t testing.TB, kernel string, cpus int) *world {
	c, ok := profile.Named(kernel)
	require.True(t, ok)
	return newWorldOf(t, c, cpus)
}

func newWorldOf(t testing.TB, c *profile.Config, cpus int) *world {
	w := bareWorldOf(c, cpus)
	t.Cleanup(func() {
		if !t.Failed() {
			require.Equal(t, 0, w.k.Registered(), "probes left")
			require.Equal(t, w.clean, w.text(), "text is not restored")
		}
	})
	return w
}

func bareWorld(c *profile.Config) *world { return bareWorldOf(c, 1) }

func bareWorldOf(c *profile.Config, cpus int) *world {
	w := &world{fakeMachine: newFake(cpus)}
	w.leaf = w.add("leaf", movAX, addAX, ret)
	w.steady = w.add("steady", prefetch, movAX, addAX, ret)
	w.calls = w.add("calls", "\xe8\xdb\xff\xff\xff", addAX, ret) // call leaf
	w.rec = w.add("rec",
		"\x48\x85\xff", // test %rdi,%rdi
		"\x74\x0e",     // je zero
		"\x48\x83\xef\x01",
		"\xe8\xf2\xff\xff\xff", // call rec
		addAX, ret,
		"\x48\x31\xc0", ret) // zero: xor %rax,%rax
	w.traced = w.add("traced", nop5, movAX, addAX, ret)
	w.sites = []kimage.Site{{Addr: w.traced, Len: 5}}
	w.loads = w.add("loads", load, ret, movAX, ret)
	start := w.textEnd
	w.modFn = w.add("mod_fn", movAX, addAX, ret)
	w.modFt = w.add("mod_ft", nop5, movAX, addAX, ret)
	w.module = x86.Range{Start: start, End: w.textEnd}
	w.sites = append(w.sites, kimage.Site{Addr: w.modFt, Len: 5})
	for i := range w.symbols {
		if w.module.Contains(w.symbols[i].Addr) {
			w.symbols[i].Module = "mod"
		}
	}
	w.built = w.text()
	w.k = kprobes.New(w.fakeMachine, w.fakeMachine, c)
	w.clean = w.text()
	return w
}

// register registers and unregisters at the test's end.
func (w *world) register(t testing.TB, p *kprobes.Kprobe) *kprobes.Kprobe {
	require.NoError(t, w.k.RegisterKprobe(p))
	t.Cleanup(func() { w.k.UnregisterKprobe(p) })
	return p
}

func (w *world) registerRet(t testing.TB, p *kprobes.Kretprobe) *kprobes.Kretprobe {
	require.NoError(t, w.k.RegisterKretprobe(p))
	t.Cleanup(func() { w.k.UnregisterKretprobe(p) })
	return p
}

// result calls a function and asserts that it ran to its end.
func (w *world) result(t testing.TB, fn x86.Addr, arg uint64) uint64 {
	ax, err := w.call(fn, arg)
	require.NoError(t, err)
	return ax
}

// current is the probe that the running CPU is handling.
func current(w *world) *kprobes.Kprobe {
	p, _ := w.k.Current()
	return p
}

func (w *world) byteAt(a x86.Addr) byte { return w.mem(a, 1)[0] }

func refused(t require.TestingT, err error, e errno.Errno, rule rule.ID) {
	if h, ok := t.(testing.TB); ok {
		h.Helper()
	}
	var r *probepoint.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, rule, r.Rule)
	require.Equal(t, e, errno.Of(err))
}

// allKernels runs a test for every profile.
func allKernels(t *testing.T, fn func(t *testing.T, kernel string)) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) { fn(t, name) })
	}
}

// TestWorld: the fake computes the results that its functions should have.
func TestWorld(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	require.EqualValues(t, 42, w.result(t, w.leaf, 41))
	require.EqualValues(t, 42, w.result(t, w.steady, 41))
	require.EqualValues(t, 43, w.result(t, w.calls, 41))
	require.EqualValues(t, 9, w.result(t, w.rec, 9))
	require.EqualValues(t, 42, w.result(t, w.traced, 41))
}

// TestGuestHandlersNeedAMachine that can call them.
func TestGuestHandlersNeedAMachine(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	err := w.k.RegisterKprobe(&kprobes.Kprobe{Addr: w.leaf, PreCode: w.leaf})
	require.ErrorIs(t, err, errno.ENOSYS)
	err = w.k.RegisterKretprobe(&kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, HandlerCode: w.leaf})
	require.ErrorIs(t, err, errno.ENOSYS)
	require.Zero(t, w.k.Registered())
}
