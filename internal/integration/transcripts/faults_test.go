package transcripts

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// bad is an address where nothing is mapped.
const bad x86.Addr = 0xffffffffff8ff000

// faults makes the probed instruction fault, and handlers too.
func (r *replay) faults() {
	good := r.longOf77()
	r.print("unprobed: good=%d bad=%d", r.load(good), r.load(bad))
	for _, c := range []struct {
		what string
		off  x86.Addr
		arg  x86.Addr
		post bool
	}{
		{"flt+3 good arg", 3, good, false},
		{"flt+3 bad arg (instruction faults in slot)", 3, bad, false},
		{"flt+3 bad arg, post handler", 3, bad, true},
		{"flt+0 good arg", 0, good, false},
		{"flt+0 bad arg", 0, bad, false},
	} {
		p := r.faulting("demo_tgt_flt", nil)
		p.Addr += c.off
		if c.post {
			p.PostHandler = r.countPost
		}
		r.faultCase(c.what, p, func() int64 { return r.load(c.arg) })
	}
	r.faultsInHandlers()
	r.faultsOfMembers()
	r.faultInReturnHandler()
}

func (r *replay) faultsInHandlers() {
	for _, c := range []struct{ what, name string }{
		{"nb (int3 single-step): pre does nofault read", "demo_tgt_nb"},
		{"tgt (optimized): pre does nofault read", "demo_tgt"},
		{"ft (ftrace): pre does nofault read", "demo_ft"},
	} {
		r.faultCase(c.what, r.faulting(c.name, r.nofault("pre")), r.calls5(c.name))
	}
	for _, c := range []struct{ what, name string }{
		{"tgt post: post does nofault read", "demo_tgt"},
		{"nb post: post does nofault read", "demo_tgt_nb"},
	} {
		p := r.faulting(c.name, nil)
		read := r.nofault("post")
		p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { r.posts++; read() }
		r.faultCase(c.what, p, r.calls5(c.name))
	}
	if !r.k.Config().FaultHandler {
		return
	}
	for _, c := range []struct{ what, name string }{
		{"nb: pre does unprotected read, fault_handler skips it and returns 1", "demo_tgt_nb"},
		{"tgt (optimized): pre unprotected read, fault_handler returns 1", "demo_tgt"},
		{"ft (ftrace): pre unprotected read, fault_handler returns 1", "demo_ft"},
	} {
		p := r.faulting(c.name, func() {
			v, err := r.l.Machine.Call("demo_bad_insn", uint64(bad))
			require.NoError(r.t, err)
			r.print("pre: unprotected read returned %d", v)
		})
		p.FaultHandler = r.resolve
		r.faultCase(c.what, p, r.calls5(c.name))
	}
}

// faulting is a probe whose pre handler counts, and does something more.
func (r *replay) faulting(name string, more func()) *kprobes.Kprobe {
	return &kprobes.Kprobe{
		Addr: r.at(name),
		PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int {
			r.hits++
			if more != nil {
				more()
			}
			return 0
		},
		FaultHandler: r.notResolved,
	}
}

func (r *replay) countPost(*kprobes.Kprobe, *x86.PtRegs, uint64) { r.posts++ }

func (r *replay) notResolved(p *kprobes.Kprobe, g *x86.PtRegs, trap int) int {
	r.faultsSeen++
	r.print("in fault_handler: trapnr=%d p->addr=%s preempt_count=0x%x", trap, r.where(p.Addr), r.k.PreemptCount())
	return 0
}

// resolve makes up the result of the faulting load and goes on after it.
func (r *replay) resolve(p *kprobes.Kprobe, g *x86.PtRegs, trap int) int {
	r.notResolved(p, g, trap)
	g.IP += 3
	g.AX = 4242
	return 1
}

// nofault reads from a bad address as a tracer does.
func (r *replay) nofault(who string) func() {
	return func() {
		v, err := r.l.Machine.Call("copy_from_kernel_nofault", make([]byte, 8), uint64(bad), 8)
		require.NoError(r.t, err)
		r.print("%s: copy_from_kernel_nofault(bad) -> %d", who, int64(v))
	}
}

func (r *replay) faultCase(what string, p *kprobes.Kprobe, call func() int64) {
	r.hits, r.posts, r.faultsSeen = 0, 0, 0
	err := r.k.RegisterKprobe(p)
	r.wait()
	entry := r.k.Find(p.Addr)
	r.print("%s: register -> %d [%s]", what, code(err), r.mode(p.Addr))
	v := call()
	current, _ := r.k.Current()
	require.Nil(r.t, current)
	r.print("result=%d pre hits=%d post hits=%d fault hits=%d k.nmissed=%d hash.nmissed=%d preempt_count=0x%x", v, r.hits, r.posts, r.faultsSeen, p.Nmissed, entry.Nmissed, r.k.PreemptCount())
	r.k.UnregisterKprobe(p)
	r.wait()
	r.print("after unregister k.nmissed=%d", p.Nmissed)
}

func (r *replay) calls5(name string) func() int64 {
	return func() int64 { return int64(r.call(name, 5)) }
}

// faultsOfMembers has two probes at the address, of which one's handler faults.
func (r *replay) faultsOfMembers() {
	for _, c := range []struct{ a, b string }{
		{"fault handler, faulting pre", "no fault handler"},
		{"fault handler, plain pre", "faulting pre, no fault handler"},
	} {
		r.hits, r.faultsSeen = 0, 0
		var more [2]func()
		if c.a == "fault handler, faulting pre" {
			more[0] = r.nofault("pre")
		} else {
			more[1] = r.nofault("pre")
		}
		a, b := r.faulting("demo_tgt_nb", more[0]), r.faulting("demo_tgt_nb", more[1])
		b.FaultHandler = nil
		r.print("aggr: reg a (%s) -> %d", c.a, code(r.k.RegisterKprobe(a)))
		r.print("aggr: reg b (%s) -> %d", c.b, code(r.k.RegisterKprobe(b)))
		v := r.call("demo_tgt_nb", 5)
		r.print("result=%d hits=%d fault hits=%d a.nmissed=%d b.nmissed=%d", v, r.hits, r.faultsSeen, a.Nmissed, b.Nmissed)
		r.k.UnregisterKprobes([]*kprobes.Kprobe{a, b})
	}
}

func (r *replay) faultInReturnHandler() {
	r.returns, r.faultsSeen = 0, 0
	read := r.nofault("ret handler")
	rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: r.at("demo_tgt"), FaultHandler: r.notResolved}}
	rp.Handler = func(*kprobes.Instance, *x86.PtRegs) int { r.returns++; read(); return 0 }
	err := r.k.RegisterKretprobe(rp)
	r.wait()
	r.print("kretprobe tgt with fault_handler: reg -> %d [%s]", code(err), r.mode(rp.KP.Addr))
	v := r.call("demo_tgt", 5)
	r.print("result=%d ret hits=%d fault hits=%d rp.nmissed=%d kp.nmissed=%d", v, r.returns, r.faultsSeen, rp.Nmissed, rp.KP.Nmissed)
	r.k.UnregisterKretprobe(rp)
}

// longOf77 is the address of a long in the guest.
func (r *replay) longOf77() x86.Addr {
	at, err := r.l.Machine.Alloc(8)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { r.l.Machine.Free(at) })
	require.NoError(r.t, r.l.Machine.WriteMem(at, binary.LittleEndian.AppendUint64(nil, 77)))
	return at
}

func (r *replay) load(at x86.Addr) int64 {
	v, err := r.l.Machine.CallAddr(r.at("demo_tgt_flt"), uint64(at))
	require.NoError(r.t, err)
	return int64(v)
}
