package transcripts

import (
	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

func (r *replay) recursion() {
	for _, maxActive := range []int{0, 1, 2, 5, 100} {
		r.recursive(maxActive)
	}
	r.nested("B=leaf post (int3), A=tgt opt", "demo_tgt", true)
	r.nested("B=leaf, A=tgt", "demo_tgt", false)
	r.nested("B=leaf, A=ftrace", "demo_ft", false)
	r.nested("B=leaf, A=nonboost int3", "demo_tgt_nb", false)
	r.selfRecursive()
}

func (r *replay) recursive(maxActive int) {
	rp := r.counted("demo_rec", maxActive)
	err := r.k.RegisterKretprobe(rp)
	v := r.call("demo_rec", 9)
	r.print("kretprobe on recursive fn depth 10: maxactive req=%d eff=%d reg=%d ret=%d entry hits=%d ret hits=%d rp.nmissed=%d kp.nmissed=%d",
		maxActive, rp.MaxActive, code(err), v, r.entries, r.returns, rp.Nmissed, rp.KP.Nmissed)
	r.entries, r.returns = 0, 0
	r.call("demo_rec", 9)
	r.print("second call: entry hits=%d ret hits=%d rp.nmissed=%d", r.entries, r.returns, rp.Nmissed)
	require.NoError(r.t, r.k.DisableKretprobe(rp))
	require.NoError(r.t, r.k.EnableKretprobe(rp))
	r.print("after disable/enable: rp.nmissed=%d", rp.Nmissed)
	r.k.UnregisterKretprobe(rp)
}

// nested has B in a function that A's handler calls.
func (r *replay) nested(what, where string, post bool) {
	b := &kprobes.Kprobe{Addr: r.at("demo_leaf"), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { r.posts++; return 0 }}
	if post {
		b.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { r.posts++ }
	}
	a := &kprobes.Kprobe{Addr: r.at(where), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
		r.hits++
		r.call("demo_leaf", 1)
		return 0
	}}
	errA, errB := r.k.RegisterKprobe(a), r.k.RegisterKprobe(b)
	r.wait()
	r.hits, r.posts = 0, 0
	for i := range 10 {
		r.call(where, i)
	}
	r.print("nested %s reg=%d,%d A:[%s]", what, code(errA), code(errB), r.mode(a.Addr))
	r.print("B:[%s]", r.mode(b.Addr))
	r.print("A called 10x: A hits=%d A.nmissed=%d ; B handler hits=%d B.nmissed=%d", r.hits, a.Nmissed, r.posts, b.Nmissed)
	r.posts = 0
	r.call("demo_leaf", 5)
	r.print("direct leaf call: B hits=%d B.nmissed=%d", r.posts, b.Nmissed)
	r.k.UnregisterKprobes([]*kprobes.Kprobe{a, b})
	r.wait()
}

// selfRecursive has a probe whose handler calls the probed function.
func (r *replay) selfRecursive() {
	self := func() *kprobes.Kprobe {
		r.hits, r.posts = 0, 0
		return &kprobes.Kprobe{Addr: r.at("demo_tgt"), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
			r.hits++
			r.call("demo_tgt", 1)
			return 0
		}}
	}
	p := self()
	require.NoError(r.t, r.k.RegisterKprobe(p))
	r.wait()
	r.call("demo_tgt", 3)
	r.print("self-recursive handler [%s] hits=%d nmissed=%d", r.mode(p.Addr), r.hits, p.Nmissed)
	r.print("hash-table kprobe nmissed=%d (aggr=%d)", r.k.Find(p.Addr).Nmissed, 1-r.isEntry(p))
	r.k.UnregisterKprobe(p)
	r.print("after unregister k.nmissed=%d", p.Nmissed)
	p = self()
	p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { r.posts++ }
	require.NoError(r.t, r.k.RegisterKprobe(p))
	r.wait()
	r.call("demo_tgt", 3)
	r.print("self-recursive handler with post [%s] hits=%d nmissed=%d posts=%d", r.mode(p.Addr), r.hits, p.Nmissed, r.posts)
	r.k.UnregisterKprobe(p)
}
