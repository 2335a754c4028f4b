package optimizer

import (
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Verdict is whether a probe at an address can be optimized, and why not.
type Verdict struct {
	Addr x86.Addr
	// Symbol is the function around it, and Offset that of Addr in it; both
	// are zero where no symbol covers Addr.
	Symbol kimage.Symbol
	Offset uint64
	// OK: no rule refuses.
	OK bool
	// Reasons are all that refuse, in the order in which the kernel would meet
	// them. It knows only the first.
	Reasons []Reason
	// DCR is the detoured code region: whole instructions from Addr on that
	// cover the 5 bytes of the jump, as far as they can be decoded.
	DCR x86.Range
	// JTPR is the jump target prohibition region (JTPR).
	JTPR x86.Range
	// Copied are the instructions of the DCR.
	Copied []Insn
}

// Stops is the reason at which the kernel stops, nil where there is none.
func (v *Verdict) Stops() *Reason {
	if len(v.Reasons) == 0 {
		return nil
	}
	return &v.Reasons[0]
}

// Errno is what preparing the buffer returns in the kernel, which swallows it
// and leaves the probe with its int3 (docs/spec 4.2); 0 where it would succeed or is
// not tried.
func (v *Verdict) Errno() errno.Errno {
	if s := v.Stops(); s != nil {
		return s.ID.Errno()
	}
	return 0
}

// Check asks every rule about a probe at that address, with its detour buffer
// at the profile's ModuleBase, near which the kernel puts it. It does not ask
// whether a probe may be there at all; package probepoint does.
func Check(v kimage.View, at x86.Addr, c *profile.Config) Verdict {
	return CheckAt(v, at, x86.Addr(c.ModuleBase), c)
}

// CheckAt is Check with the detour buffer at a given address.
func CheckAt(v kimage.View, at, buf x86.Addr, c *profile.Config) Verdict {
	k := checker{v: v, c: c, at: at, buf: buf}
	k.verdict = Verdict{Addr: at, JTPR: JTPR(at)}
	k.attempt()
	if sym, ok := v.SymbolAt(at); ok {
		k.verdict.Symbol, k.verdict.Offset = sym, uint64(at.Sub(sym.Addr))
		k.place(sym)
		k.function(sym)
	} else {
		k.add(NoSymbol, at)
	}
	k.region()
	k.verdict.OK = len(k.verdict.Reasons) == 0
	return k.verdict
}

// checker gathers the reasons of one Verdict.
type checker struct {
	v       kimage.View
	c       *profile.Config
	at, buf x86.Addr
	verdict Verdict
}

func (k *checker) add(id ReasonID, at x86.Addr) *Reason {
	k.verdict.Reasons = append(k.verdict.Reasons, Reason{ID: id, Addr: at, in: k.verdict.Symbol})
	return &k.verdict.Reasons[len(k.verdict.Reasons)-1]
}

// attempt is whether the kernel tries to optimize at all.
func (k *checker) attempt() {
	if !exists(k.c) {
		k.add(NoOptprobes, k.at)
	}
	if ftraceBased(k.v, k.at, k.c) {
		k.add(FtraceBased, k.at)
	}
}

// place is what the address alone decides, within its symbol.
func (k *checker) place(sym kimage.Symbol) {
	if k.v.InEntryText(k.at) {
		k.add(EntryText, k.at)
	}
	if tooShort(sym, k.at) {
		k.add(TooShort, k.at)
	}
}

// function walks the whole function, as the kernel does until the first reason.
func (k *checker) function(sym kimage.Symbol) {
	w := walker{view: k.v, c: k.c, thunks: k.v.IndirectThunks()}
	end := sym.Addr.Add(int64(sym.Size))
	for at := sym.Addr; at < end; at = at.Add(int64(w.k.Length)) {
		found := w.visit(at)
		if w.k.Length != 0 && w.k.IsRelativeJump() && k.verdict.JTPR.Contains(w.k.Target(at)) {
			found.add(JTPRTarget)
		}
		k.addFound(&w, found)
		if w.k.Length == 0 {
			return
		}
	}
}

func (k *checker) addFound(w *walker, found reasonSet) {
	for id := None + 1; found != 0 && id < NumReasons; id++ {
		if found>>id&1 == 0 {
			continue
		}
		r := k.add(id, w.at)
		r.Insn = w.insn()
		if id == ThunkJump || id == JTPRTarget {
			r.Target = w.k.Target(w.at)
			r.BeyondDoc = id == JTPRTarget && r.Target == k.at+jmp32Size
		}
	}
}

// region asks what preparing the buffer asks: its distance, each instruction
// of the DCR, and whom the DCR disturbs.
func (k *checker) region() {
	if tooFar(k.at, k.buf) {
		k.add(Distance, k.at).Target = k.buf
	}
	var copied [MaxRegion]byte
	p := copier{view: k.v, c: k.c, at: k.at, final: k.buf.Add(int64(TemplateSize(k.c)))}
	for !p.done() {
		i := Insn{Addr: k.at.Add(int64(p.size))}
		id := p.next(copied[:])
		i.Len = p.k.Length
		k.v.CodeAt(i.Addr, i.Code[:max(i.Len, 1)])
		if id != None {
			k.add(id, i.Addr).Insn = i
		}
		if i.Len == 0 {
			break
		}
		k.verdict.Copied = append(k.verdict.Copied, i)
	}
	k.verdict.DCR = x86.Range{Start: k.at, End: k.at.Add(int64(p.size))}
	for i := range reservations {
		if s, ok := reservations[i].hit(k.v, k.verdict.DCR, k.c); ok {
			k.add(reservations[i].id, s.Addr)
		}
	}
}

// exists: this kernel optimizes probes.
func exists(c *profile.Config) bool {
	return c.Optimize.Exists && (!c.Preemption || c.Optimize.OnPreempt)
}

// ftraceBased: a probe there is called by the function tracer.
func ftraceBased(v kimage.View, at x86.Addr, c *profile.Config) bool {
	if !c.KprobesOnFtrace || !c.Check.FtraceSites {
		return false
	}
	s, ok := v.SiteAt(kimage.SiteFtrace, at)
	return ok && s.Addr == at
}

// tooShort: the jump would reach into the next symbol.
func tooShort(sym kimage.Symbol, at x86.Addr) bool {
	return sym.Size-uint64(at.Sub(sym.Addr)) < jmp32Size
}
