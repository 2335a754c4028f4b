package transparency

import (
	"fmt"

	"kprobelab/decoder"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// member is one of the probes at a place, with its counts.
type member struct {
	kprobes.Kprobe
	wantPost    bool
	pres, posts int
	// wrong is the first time a handler saw other registers than the
	// unprobed run had.
	wrong string
}

// way is one way to probe a place: the members in the order of registration.
type way struct {
	name    string
	members []handlers
}

type handlers struct{ pre, post, disabled bool }

var (
	wayPre  = way{"pre", []handlers{{pre: true}}}
	wayPost = way{"post", []handlers{{pre: true, post: true}}}
	wayBare = way{"no_handlers", []handlers{{}}}
	// wayJoin: the slot is built without a post handler, then one comes.
	wayJoin = way{"post_joins", []handlers{{pre: true}, {pre: true, post: true}}}
	// wayMany: the slot is built for a post handler; a disabled member counts nothing.
	wayMany = way{"three", []handlers{{pre: true, post: true}, {pre: true}, {pre: true, post: true, disabled: true}}}
)

// place is a probed instruction.
type place struct {
	b       *bench
	at      x86.Addr
	members []*member
	insn    []byte
	k       decoder.Kernel
	ftrace  bool
	// boosted, emulated: how hits run the instruction.
	boosted, emulated bool
	slot              x86.Addr
	// realBoundary is false where the kernel's decoder took the instructions before
	// for other lengths than the processor.
	realBoundary bool
	// now is the run that the handlers compare with; nil to only count.
	now *trace
	// hits is the place in now.at[at] that the next hit is expected at.
	hits []int32
}

// plant puts the probes of a way at an address; an error is the refusal.
func (b *bench) plant(at x86.Addr, w *way) (*place, error) {
	p := &place{b: b, at: at, realBoundary: true}
	for _, h := range w.members {
		m := p.newMember(h)
		if err := b.Kprobes.RegisterKprobe(&m.Kprobe); err != nil {
			p.remove()
			return nil, err
		}
		p.members = append(p.members, m)
	}
	first := &p.members[0].Kprobe
	c := b.Image.Profile()
	p.ftrace = first.OnFtrace()
	if s, ok := first.Slot(); ok {
		p.slot, p.emulated = s.Addr, s.Emulation.String() != ""
		p.boosted = !c.Preemption && s.Boosted && (c.Slot.BoostDecidedAtBuild || !p.hasPost())
		p.emulated = p.emulated && !p.boosted
		p.insn = make([]byte, s.InsnLen)
		b.Kprobes.View().CodeAt(at, p.insn)
		p.k, _ = decoder.DecodeKernel(p.insn, &c.Decoder)
	}
	return p, nil
}

// dead is the memory where a probed run may leave other bytes: an ftrace-based probe is a call, and
// so is the function tracer after it. They use the stack below the function's, and the unwritten
// part of the function's frame keeps their bytes.
func (p *place) dead(tr *trace) x86.Range {
	if p.ftrace {
		return tr.stack()
	}
	return x86.Range{}
}

func (p *place) config() *profile.Config { return p.b.Image.Profile() }

func (p *place) hasPost() bool {
	for _, m := range p.members {
		if m.wantPost {
			return true
		}
	}
	return false
}

func (p *place) newMember(h handlers) *member {
	m := &member{Kprobe: kprobes.Kprobe{Addr: p.at}, wantPost: h.post}
	if h.disabled {
		m.Flags = kprobes.FlagDisabled
	}
	if h.pre {
		m.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			m.pres++
			if p.now != nil {
				p.checkPre(m, regs)
			}
			return 0
		}
	}
	if h.post {
		m.PostHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) {
			m.posts++
			if p.now != nil {
				p.checkPost(m, regs)
			}
		}
	}
	return m
}

// remove takes the probes out again.
func (p *place) remove() {
	for _, m := range p.members {
		p.b.Kprobes.UnregisterKprobe(&m.Kprobe)
	}
}

// everyRound: stepped with the trap flag, the copy of a repeated string
// instruction comes back to the probe after every round.
func (p *place) everyRound() bool { return p.config().Step.TrapFlag && !p.boosted && !p.ftrace }

// expect starts the count for a run that has to be like tr.
func (p *place) expect(tr *trace) {
	p.now = tr
	p.hits = p.hits[:0]
	for _, i := range tr.at[p.at] {
		if p.everyRound() || !tr.steps[i].again {
			p.hits = append(p.hits, i)
		}
	}
	p.start()
}

func (p *place) start() {
	for _, m := range p.members {
		m.pres, m.posts, m.wrong = 0, 0, ""
	}
}

// checkPre compares a pre handler's registers with the registers before the instruction.
func (p *place) checkPre(m *member, regs *x86.PtRegs) {
	if m.pres > len(p.hits) {
		return // the count tells
	}
	want := p.now.steps[p.hits[m.pres-1]].regs
	want.IP++
	m.check("pre", regs, &want, p.ftrace)
}

// checkPost compares a post handler's registers with the registers at the next instruction. In
// 2.6.18 it runs before ip and the stack are corrected.
func (p *place) checkPost(m *member, regs *x86.PtRegs) {
	if p.config().Step.PostBeforeFixup || m.pres == 0 || m.pres > len(p.hits) {
		return
	}
	i := p.hits[m.pres-1] + 1
	for int(i) < len(p.now.steps) && p.now.steps[i].again && !p.everyRound() {
		i++
	}
	if int(i) < len(p.now.steps) {
		m.check("post", regs, &p.now.steps[i].regs, p.ftrace)
	}
}

func (m *member) check(handler string, regs, want *x86.PtRegs, ftrace bool) {
	w := *want
	if ftrace {
		w.OrigAX = 0
	}
	if m.wrong == "" && *regs != w {
		m.wrong = fmt.Sprintf("%s handler saw %+v, not %+v", handler, *regs, w)
	}
}

// lastRound is the step with which the hit at step i ends.
func (p *place) lastRound(i int32) *step {
	for !p.everyRound() && int(i)+1 < len(p.now.steps) && p.now.steps[i+1].again {
		i++
	}
	return &p.now.steps[i]
}

// counted names the handler with the wrong number of calls, "" if there is none.
func (p *place) counted() string {
	want, done := len(p.hits), 0
	for _, i := range p.hits {
		if s := p.lastRound(i); !s.faulted && s.vector == 0 {
			done++
		}
	}
	if p.boosted {
		done = 0
	}
	for i, m := range p.members {
		pres, posts := want, done
		if m.PreHandler == nil || m.Disabled() {
			pres = 0
		}
		if m.PostHandler == nil || m.Disabled() {
			posts = 0
		}
		switch {
		case m.pres != pres || m.posts != posts:
			return fmt.Sprintf("member %d: pre handler ran %d times and post handler %d, not %d and %d", i, m.pres, m.posts, pres, posts)
		case m.Nmissed != 0:
			return fmt.Sprintf("member %d: %d missed", i, m.Nmissed)
		case m.wrong != "":
			return fmt.Sprintf("member %d: %s", i, m.wrong)
		}
	}
	return ""
}

// boundaries are the starts of the function's instructions, as a kernel's
// decoder sees them.
func (b *bench) boundaries(start x86.Addr, size uint64, d *profile.Decoder) (at []x86.Addr) {
	for off := uint64(0); off < size; {
		var code [decoder.MaxInsnSize]byte
		n := b.Kprobes.View().CodeAt(start+x86.Addr(off), code[:])
		k, err := decoder.DecodeKernel(code[:n], d)
		if err != nil || k.Length == 0 {
			return at
		}
		at = append(at, start+x86.Addr(off))
		off += uint64(k.Length)
	}
	return at
}
