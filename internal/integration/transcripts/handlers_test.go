package transcripts

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

var targets = []string{"tgt", "tgt_nb", "tgt_jmp", "tgt_call", "tgt_jcc", "ft"}

// handlerRegs is done again without optimization, on the kernels where the
// module was run so.
func (r *replay) handlerRegs() {
	r.registersEverywhere()
	if r.k.Config().Name == "6.1" {
		return
	}
	require.NoError(r.t, r.k.WriteOptimization("0"))
	r.print("## again with kprobes-optimization=0")
	r.registersEverywhere()
}

func (r *replay) registersEverywhere() {
	for _, name := range targets {
		for post := range 2 {
			r.registersAt(name, post)
		}
	}
	r.preReturnsOne()
	for _, name := range targets {
		r.returnRegisters(name)
	}
	r.refusingEntries()
}

func (r *replay) registersAt(name string, post int) {
	p := &kprobes.Kprobe{Addr: r.at("demo_" + name)}
	p.PreHandler = func(p *kprobes.Kprobe, g *x86.PtRegs) int {
		r.print("in pre: p==hash kprobe:%d regs->ip-addr=%d flags=%s %s cs=%s ss=%s orig_ax=%s",
			r.isEntry(p), x86.Addr(g.IP).Sub(p.Addr), hex(g.Flags), r.context(), hex(g.CS), ss(g.SS), hex(g.OrigAX))
		return 0
	}
	if post == 1 {
		p.PostHandler = func(p *kprobes.Kprobe, g *x86.PtRegs, flags uint64) {
			r.print("in post: regs->ip-addr=%d flagsarg=%d regs.flags=%s %s orig_ax=%s",
				x86.Addr(g.IP).Sub(p.Addr), flags, hex(g.Flags), r.context(), hex(g.OrigAX))
		}
	}
	err := r.k.RegisterKprobe(p)
	r.wait()
	r.print("%s post=%d -> %d [%s]", name, post, code(err), r.mode(p.Addr))
	r.call("demo_"+name, 5)
	r.k.UnregisterKprobe(p)
	r.wait()
}

func (r *replay) preReturnsOne() {
	hits, posts := 0, 0
	p := &kprobes.Kprobe{Addr: r.at("demo_tgt")}
	p.PreHandler = func(p *kprobes.Kprobe, g *x86.PtRegs) int {
		hits++
		g.AX, g.IP = 777, uint64(p.Addr)+17
		return 1
	}
	p.PostHandler = func(*kprobes.Kprobe, *x86.PtRegs, uint64) { posts++ }
	mode, v := r.planted(p)
	r.print("pre returns 1 after setting ip/ax (with post) [%s]: result=%d hits=%d posts=%d", mode, v, hits, posts)
	hits = 0
	p = &kprobes.Kprobe{Addr: p.Addr, PreHandler: p.PreHandler}
	mode, v = r.planted(p)
	r.print("pre returns 1 after setting ip/ax, optimized [%s]: result=%d hits=%d", mode, v, hits)
}

// planted registers a probe on demo_tgt, and returns its mode and the result of a call.
func (r *replay) planted(p *kprobes.Kprobe) (mode string, v uint64) {
	require.NoError(r.t, r.k.RegisterKprobe(p))
	r.wait()
	mode = r.mode(p.Addr)
	v = r.call("demo_tgt", 5)
	r.k.UnregisterKprobe(p)
	r.wait()
	return mode, v
}

func (r *replay) returnRegisters(name string) {
	rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: r.at("demo_" + name)}}
	rp.EntryHandler = func(_ *kprobes.Instance, g *x86.PtRegs) int {
		var b [8]byte
		require.NoError(r.t, r.l.Machine.ReadMem(x86.Addr(g.SP), b[:]))
		r.print("in entry handler: ip=%s *sp=%s irqs_disabled=%d", r.where(x86.Addr(g.IP)), r.where(x86.Addr(binary.LittleEndian.Uint64(b[:]))), bit(r.k.IRQsDisabled()))
		return 0
	}
	rp.Handler = func(i *kprobes.Instance, g *x86.PtRegs) int {
		r.print("in ret handler: ip=%s retaddr=%s ax=%d cs=%s ss=%s flags=%s orig_ax=%s %s sp-to-ret=0",
			r.where(x86.Addr(g.IP)), r.where(i.RetAddr), g.AX, hex(g.CS), ss(g.SS), hex(g.Flags), hex(g.OrigAX), r.context())
		return 0
	}
	err := r.k.RegisterKretprobe(rp)
	r.wait()
	r.print("kretprobe %s -> %d [%s]", name, code(err), r.mode(rp.KP.Addr))
	r.print("returned %d", r.call("demo_"+name, 5))
	r.k.UnregisterKretprobe(rp)
	r.wait()
}

func (r *replay) refusingEntries() {
	rp := r.counted("demo_tgt", 0)
	rp.EntryHandler = func(*kprobes.Instance, *x86.PtRegs) int { r.entries++; return r.entries & 1 }
	require.NoError(r.t, r.k.RegisterKretprobe(rp))
	for i := range 10 {
		r.call("demo_tgt", i)
	}
	r.print("entry_handler nonzero on odd calls: entry=%d ret=%d nmissed=%d", r.entries, r.returns, rp.Nmissed)
	r.k.UnregisterKretprobe(rp)
}

// counted is a return probe that counts entries and returns.
func (r *replay) counted(name string, maxActive int) *kprobes.Kretprobe {
	r.entries, r.returns = 0, 0
	return &kprobes.Kretprobe{
		KP: kprobes.Kprobe{Addr: r.at(name)}, MaxActive: maxActive,
		EntryHandler: func(*kprobes.Instance, *x86.PtRegs) int { r.entries++; return 0 },
		Handler:      func(*kprobes.Instance, *x86.PtRegs) int { r.returns++; return 0 },
	}
}
