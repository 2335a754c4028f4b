package kprobes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

func pre0(*kprobes.Kprobe, *x86.PtRegs) int      { return 0 }
func post0(*kprobes.Kprobe, *x86.PtRegs, uint64) {}
func ret0(*kprobes.Instance, *x86.PtRegs) int    { return 0 }
func at(a x86.Addr) *kprobes.Kprobe              { return &kprobes.Kprobe{Addr: a, PreHandler: pre0} }
func named(s string, off uint32) *kprobes.Kprobe { return &kprobes.Kprobe{SymbolName: s, Offset: off} }

// TestRegistration is the first half of the transcript misuse of three real kernels: the results of
// register_kprobe, and the flags that it leaves. Kernel functions are replaced by functions of the
// fake with the same property. See docs/spec 1.3.
func TestRegistration(t *testing.T) {
	type answer struct {
		errno errno.Errno
		flags kprobes.Flags
	}
	const entry, ftrace, disabled = kprobes.FlagOnFuncEntry, kprobes.FlagFtrace, kprobes.FlagDisabled
	same := func(a answer) map[string]answer { return map[string]answer{"5.10": a, "6.1": a, "6.12": a} }
	// The entry flag came with 5.18.
	flagged := func(f kprobes.Flags) map[string]answer {
		return map[string]answer{"5.10": {flags: f &^ entry}, "6.1": {flags: f}, "6.12": {flags: f}}
	}
	tests := map[string]struct {
		probe func(*world) *kprobes.Kprobe
		want  map[string]answer
	}{
		"null addr, null symbol":     {func(*world) *kprobes.Kprobe { return &kprobes.Kprobe{} }, same(answer{errno.EINVAL, 0})},
		"addr and symbol":            {func(w *world) *kprobes.Kprobe { return &kprobes.Kprobe{Addr: w.leaf, SymbolName: "leaf"} }, same(answer{errno.EINVAL, 0})},
		"symbol unknown":             {func(*world) *kprobes.Kprobe { return named("no_such_symbol_xyz", 0) }, same(answer{errno.ENOENT, 0})},
		"symbol ok (fentry)":         {func(*world) *kprobes.Kprobe { return named("traced", 0) }, flagged(ftrace | entry)},
		"symbol + 5":                 {func(*world) *kprobes.Kprobe { return named("traced", 5) }, same(answer{0, 0})},
		"symbol + 2 (fentry nop)":    {func(*world) *kprobes.Kprobe { return named("traced", 2) }, same(answer{errno.EILSEQ, 0})},
		"symbol + 6 (mid-insn)":      {func(*world) *kprobes.Kprobe { return named("traced", 6) }, same(answer{errno.EILSEQ, 0})},
		"symbol + 0x7fffffff":        {func(*world) *kprobes.Kprobe { return named("leaf", 0x7fffffff) }, map[string]answer{"5.10": {errno.EINVAL, 0}, "6.1": {errno.ENOENT, 0}, "6.12": {errno.ENOENT, 0}}},
		"data symbol":                {func(*world) *kprobes.Kprobe { return named("jiffies", 0) }, same(answer{errno.EINVAL, 0})},
		"addr user 0x400000":         {func(*world) *kprobes.Kprobe { return at(0x400000) }, map[string]answer{"5.10": {errno.EINVAL, 0}, "6.1": {errno.ENOENT, 0}, "6.12": {errno.ENOENT, 0}}},
		"addr 1":                     {func(*world) *kprobes.Kprobe { return at(1) }, map[string]answer{"5.10": {errno.EINVAL, 0}, "6.1": {errno.ENOENT, 0}, "6.12": {errno.ENOENT, 0}}},
		"addr + offset 3":            {func(w *world) *kprobes.Kprobe { return &kprobes.Kprobe{Addr: w.leaf, Offset: 3} }, same(answer{0, 0})},
		"addr + offset mid-insn":     {func(w *world) *kprobes.Kprobe { return &kprobes.Kprobe{Addr: w.leaf, Offset: 1} }, same(answer{errno.EILSEQ, 0})},
		"mid-insn addr":              {func(w *world) *kprobes.Kprobe { return at(w.leaf + 1) }, same(answer{errno.EILSEQ, 0})},
		"addr of ret":                {func(w *world) *kprobes.Kprobe { return at(w.leaf + 7) }, same(answer{0, 0})},
		"addr of trailing int3":      {func(w *world) *kprobes.Kprobe { return at(w.leaf + 8) }, map[string]answer{"5.10": {errno.EINVAL, 0}, "6.1": {errno.EINVAL, 0}, "6.12": {errno.EILSEQ, 0}}},
		"blacklisted":                {func(*world) *kprobes.Kprobe { return named("forbidden", 0) }, same(answer{errno.EINVAL, ftrace})},
		"flags DISABLED preset":      {func(w *world) *kprobes.Kprobe { p := at(w.leaf); p.Flags = disabled; return p }, flagged(disabled | entry)},
		"flags garbage 0xff preset":  {func(w *world) *kprobes.Kprobe { p := at(w.leaf); p.Flags = 0xff; return p }, flagged(disabled | entry)},
		"no handlers":                {func(w *world) *kprobes.Kprobe { return &kprobes.Kprobe{Addr: w.leaf} }, flagged(entry)},
		"module:symbol form":         {func(*world) *kprobes.Kprobe { return named("demo:demo_fn", 0) }, flagged(entry)},
		"module symbol":              {func(*world) *kprobes.Kprobe { return named("demo_fn", 0) }, flagged(entry)},
		"wrong module:symbol":        {func(*world) *kprobes.Kprobe { return named("other:demo_fn", 0) }, same(answer{errno.ENOENT, 0})},
		"module:vmlinux symbol":      {func(*world) *kprobes.Kprobe { return named("demo:leaf", 0) }, same(answer{errno.ENOENT, 0})},
		"indirect call through *mem": {func(*world) *kprobes.Kprobe { return named("through", 0) }, same(answer{errno.EOPNOTSUPP, entry})},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for kernel, want := range tc.want {
				w := newWorld(t, kernel, 1)
				w.misuseSymbols()
				p := tc.probe(w)
				err := w.k.RegisterKprobe(p)
				require.Equal(t, want.errno, errno.Of(err), "%s: %v", kernel, err)
				if kernel == "5.10" {
					want.flags &^= entry
				}
				require.Equal(t, want.flags, p.Flags, kernel)
				w.k.UnregisterKprobe(p)
			}
		})
	}
}

// misuseSymbols adds the symbols other than functions that the transcript needs.
func (w *world) misuseSymbols() {
	at := w.add("demo_fn", movAX, ret)
	w.symbols[len(w.symbols)-1].Module = "demo"
	_ = at
	w.add("through", "\xff\x17", ret) // call *(%rdi)
	bad := w.add("forbidden", nop5, ret)
	w.sites = append(w.sites, kimage.Site{Addr: bad, Len: 5})
	w.black = append(w.black, x86.Range{Start: bad, End: bad + 16})
	w.symbols = append(w.symbols, kimage.Symbol{Name: "jiffies", Addr: stackBase, Size: 64, Type: 'D'})
	w.clean = w.text()
}

// TestBatchTakesBackAfterARefusal is docs/spec 1.7 and the transcript: after the first refusal the
// earlier probes are unregistered, and the refusal is returned.
func TestBatchTakesBackAfterARefusal(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	refused(t, w.k.RegisterKprobes(nil), errno.EINVAL, rule.Batch)
	refused(t, w.k.RegisterKretprobes(nil), errno.EINVAL, rule.Batch)
	w.k.UnregisterKprobes(nil)
	w.k.UnregisterKretprobes(nil)

	ps := []*kprobes.Kprobe{at(w.leaf), at(w.steady), at(w.rec + 1), at(w.calls)}
	refused(t, w.k.RegisterKprobes(ps), errno.EILSEQ, rule.NotBoundary)
	for i, p := range ps {
		require.Nil(t, w.k.Find(p.Addr))
		require.NotZero(t, p.Addr, i)
	}
	require.Equal(t, w.clean, w.text())
	w.k.UnregisterKprobes(ps)
	ps = []*kprobes.Kprobe{at(w.leaf), at(w.leaf), at(w.steady)}
	require.NoError(t, w.k.RegisterKprobes(ps))
	require.Equal(t, 3, w.k.Registered())
	require.Equal(t, 2, w.k.Armed())
	w.k.UnregisterKprobes(append(ps, nil))

	rps := []*kprobes.Kretprobe{{KP: kprobes.Kprobe{Addr: w.leaf}}, {KP: kprobes.Kprobe{Addr: w.leaf + 3}}}
	refused(t, w.k.RegisterKretprobes(rps), errno.EINVAL, rule.NotEntry)
	require.Equal(t, 0, w.k.Registered())
}

// TestNil: a nil probe is refused, never a crash.
func TestNil(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	require.ErrorIs(t, w.k.RegisterKprobe(nil), errno.EINVAL)
	require.ErrorIs(t, w.k.RegisterKretprobe(nil), errno.EINVAL)
	require.ErrorIs(t, w.k.EnableKprobe(nil), errno.EINVAL)
	require.ErrorIs(t, w.k.DisableKprobe(nil), errno.EINVAL)
	require.ErrorIs(t, w.k.EnableKretprobe(nil), errno.EINVAL)
	require.ErrorIs(t, w.k.DisableKretprobe(nil), errno.EINVAL)
	w.k.UnregisterKprobe(nil)
	w.k.UnregisterKretprobe(nil)
}

// TestRegisterWithoutMemory: without executable memory registration fails with ENOMEM, and
// leaves nothing.
// See docs/spec 1.3.
func TestRegisterWithoutMemory(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	w.execLeft = 0
	refused(t, w.k.RegisterKprobe(at(w.leaf)), errno.ENOMEM, rule.NoMemory)
	refused(t, w.k.RegisterKretprobe(&kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}}), errno.ENOMEM, rule.NoMemory)
}

// TestArmingFails: a breakpoint that cannot be written is an error, and the probe
// is not registered.
// See docs/spec 1.3.
func TestArmingFails(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	p := at(w.traced) // no slot to be written before
	w.pokeErr = errPoke
	require.ErrorIs(t, w.k.RegisterKprobe(p), errPoke)
	w.pokeErr = nil
	require.Nil(t, w.k.Find(w.traced))
	require.NoError(t, w.k.RegisterKprobe(p))
	w.pokeErr = errPoke
	require.ErrorIs(t, w.k.DisableKprobe(p), errPoke)
	require.Zero(t, p.Flags&kprobes.FlagDisabled)
	w.k.UnregisterKprobe(p)
	require.ErrorIs(t, w.k.ClearErr(), errPoke)
	require.Same(t, p, w.k.Find(w.traced), "it is still there")
	w.pokeErr = nil
	w.k.UnregisterKprobe(p)
}

// TestForgivenArm: from 6.14 on, a probe on a fentry site that cannot be armed is
// gone, and registration says 0.
func TestForgivenArm(t *testing.T) {
	for kernel, forgiven := range map[string]bool{"6.12": false, "7.0": true, "7.3": true} {
		w := newWorld(t, kernel, 1)
		p := at(w.traced)
		w.pokeErr = errPoke
		err := w.k.RegisterKprobe(p)
		w.pokeErr = nil
		require.Equal(t, forgiven, err == nil, kernel)
		require.Nil(t, w.k.Find(w.traced), "it is registered nowhere")
		require.Equal(t, nop5, string(w.mem(w.traced, 5)))
		refused(t, w.k.DisableKprobe(p), errno.EINVAL, rule.NotRegistered)
		w.k.UnregisterKprobe(p)
		require.Zero(t, p.Addr, "as of any object that is not registered")
	}
}

// TestEntryFlagOfRefusedProbe: from 6.14 on, the flag is set before the checks.
func TestEntryFlagOfRefusedProbe(t *testing.T) {
	for kernel, set := range map[string]bool{"6.1": false, "6.12": false, "6.18": true, "7.3": true} {
		w := newWorld(t, kernel, 1)
		w.misuseSymbols()
		p := &kprobes.Kprobe{SymbolName: "forbidden"}
		refused(t, w.k.RegisterKprobe(p), errno.EINVAL, rule.Blacklisted)
		require.Equal(t, set, p.Flags&kprobes.FlagOnFuncEntry != 0, kernel)
	}
}

// TestRegisterDisabled: a probe registered with FlagDisabled is not armed.
// See docs/spec 1.3.
func TestRegisterDisabled(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	var r recorder
	p := r.probe(w.leaf, false)
	p.Flags = kprobes.FlagDisabled
	w.register(t, p)
	require.Equal(t, w.clean, w.text())
	w.result(t, w.leaf, 1)
	require.Zero(t, r.pre)
	require.NoError(t, w.k.EnableKprobe(p))
	w.result(t, w.leaf, 1)
	require.Equal(t, 1, r.pre)
}

// TestEntryIsPastEndbr is docs/spec 1.2 with IBT: a probe at +0 is placed at +4.
func TestEntryIsPastEndbr(t *testing.T) {
	w := newWorld(t, "6.12", 1)
	fn := w.add("ibt", endbr, movAX, ret)
	w.clean = w.text()
	var r recorder
	p := w.register(t, r.probe(fn, true))
	require.Equal(t, fn+4, p.Addr)
	require.EqualValues(t, 7, w.result(t, fn, 7))
	require.Equal(t, 1, r.pre)
	require.EqualValues(t, fn+5, r.preRegs.IP)
}

// TestSlotReuse is docs/spec 3.1: a clean slot is reused at once, lowest first; one
// that was boosted stays dirty until there is more garbage than a page holds.
func TestSlotReuse(t *testing.T) {
	slotOf := func(p *kprobes.Kprobe) x86.Addr { s, _ := p.Slot(); return s.Addr }
	w := newWorld(t, "6.1", 1)
	a, b := w.register(t, at(w.leaf)), w.register(t, at(w.steady))
	first := slotOf(a)
	require.Equal(t, first+15, slotOf(b))
	w.k.UnregisterKprobe(a)
	c := w.register(t, at(w.calls))
	require.Equal(t, first, slotOf(c))

	w = newWorld(t, "5.10", 1) // boosts
	p := at(w.leaf)
	seen := map[x86.Addr]bool{}
	for range kprobes.SlotsPerPage {
		require.NoError(t, w.k.RegisterKprobe(p))
		seen[slotOf(p)] = true
		w.k.UnregisterKprobe(p)
	}
	require.Len(t, seen, kprobes.SlotsPerPage, "a dirty slot is not reused")
	_, _, garbage := kprobes.SlotPages(w.k)
	require.Equal(t, kprobes.SlotsPerPage, garbage)
	require.NoError(t, w.k.RegisterKprobe(p), "a page full of garbage is collected")
	_, _, garbage = kprobes.SlotPages(w.k)
	require.Zero(t, garbage)
	w.k.UnregisterKprobe(p)
}

// TestRecoveredBytes is docs/spec 1.5.1: the view gives the original bytes back, whatever is
// armed, and reads up to the end of mapped memory.
func TestRecoveredBytes(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	for off := range x86.Addr(0x80) {
		p := at(textBase + off)
		if w.k.RegisterKprobe(p) == nil {
			defer w.k.UnregisterKprobe(p)
		}
	}
	require.Greater(t, w.k.Armed(), 10)
	require.NotEqual(t, w.clean, w.text())
	b := make([]byte, 0x80)
	require.Equal(t, len(b), w.k.View().CodeAt(textBase, b))
	require.Equal(t, w.clean[:len(b)], string(b))
	require.Equal(t, 16, w.k.View().CodeAt(textBase+textSize-16, b))
	require.Equal(t, 0, w.k.View().CodeAt(0x1000, b))

}

// TestFtraceSiteOfAnotherNop: a site reads as the canonical nop, whatever the
// CPU's nop is, and gets its own bytes back.
func TestFtraceSiteOfAnotherNop(t *testing.T) {
	w := newWorld(t, "5.10", 1)
	copy(w.mem(w.traced, 5), "\x66\x66\x66\x66\x90")
	w.clean = w.text()
	w.register(t, at(w.traced))
	b := make([]byte, 5)
	require.Equal(t, 5, w.k.View().CodeAt(w.traced, b))
	require.Equal(t, nop5, string(b))
	require.Equal(t, 3, w.k.View().CodeAt(w.traced+2, b[:3]))
	require.Equal(t, nop5[2:], string(b[:3]))
	require.EqualValues(t, 6, w.result(t, w.traced, 5))
}

// TestDisplacementOutOfReachIsLogged: an operand that the copy could not reach is
// refused, and the log says with which displacement.
// See docs/spec 3.2.
func TestDisplacementOutOfReachIsLogged(t *testing.T) {
	for kernel, prefix := range map[string]string{"4.4": "", "6.1": "kprobes: "} {
		w := newWorld(t, kernel, 1)
		fn := w.add("far", "\x48\x8b\x05\x00\x00\x00\x80", ret) // mov -2^31(%rip),%rax
		w.clean = w.text()
		var log []string
		w.k.OnLog(func(line string) { log = append(log, line) })
		refused(t, w.k.RegisterKprobe(at(fn)), errno.EINVAL, rule.SlotDisplacement)
		d := fn.Sub(execBase) - 1<<31
		require.Equal(t, []string{fmt.Sprintf("%sKprobes error: new displacement does not fit into s32 (%x)", prefix, uint64(d))}, log)
	}
}

// TestArmingFailsForAMember: a probe that joins a disabled aggregate and
// cannot be armed is taken out again.
// See docs/spec 1.6.
func TestArmingFailsForAMember(t *testing.T) {
	w := newWorld(t, "6.1", 1)
	first := at(w.traced)
	first.Flags = kprobes.FlagDisabled
	w.register(t, first)
	second := at(w.traced)
	w.pokeErr = errPoke
	require.ErrorIs(t, w.k.RegisterKprobe(second), errPoke)
	require.ErrorIs(t, w.k.EnableKprobe(first), errPoke)
	w.pokeErr = nil
	require.True(t, first.Disabled())
	require.Equal(t, 1, w.k.Registered())
	refused(t, w.k.DisableKprobe(second), errno.EINVAL, rule.NotRegistered)
	second.Flags = 0
	w.register(t, second)
	require.Equal(t, 1, w.k.Armed())
}
