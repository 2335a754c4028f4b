package optimizer

import (
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Decision is a Verdict's outcome without its reasons.
type Decision struct {
	// OK: the probe can be optimized.
	OK bool
	// Size is the length of the DCR in bytes (optinsn.size) where OK.
	Size int
	// Reason is the rule at which the kernel stops, and Addr the instruction,
	// site or address that it is about; None where OK.
	Reason ReasonID
	Addr   x86.Addr
}

// Errno is as Verdict.Errno.
func (d Decision) Errno() errno.Errno { return d.Reason.Errno() }

// Scanner decides about many addresses of one image, fast for those that come
// in order: it walks each function once. It gives what Check gives, without
// the reasons behind the first. It is for one goroutine.
type Scanner struct {
	w   walker
	buf x86.Addr

	// What the walk over the last function found. have tells whether it was.
	have bool
	sym  kimage.Symbol
	// stop is the first rule that forbids the whole function, and stopAt the
	// instruction; the kernel's walk ends there.
	stop   ReasonID
	stopAt x86.Addr
	// jumps are those before it that stay in the function.
	jumps jumps

	copied [MaxRegion]byte
}

// NewScanner makes a Scanner for a kernel's code and profile; neither may
// change while it is used. Detour buffers are taken to be at the profile's
// ModuleBase, as by Check.
func NewScanner(v kimage.View, c *profile.Config) *Scanner {
	return NewScannerAt(v, x86.Addr(c.ModuleBase), c)
}

// NewScannerAt is NewScanner with the detour buffers at a given address.
func NewScannerAt(v kimage.View, buf x86.Addr, c *profile.Config) *Scanner {
	return &Scanner{
		w:   walker{view: v, c: c, thunks: v.IndirectThunks()},
		buf: buf,
	}
}

// Decide is whether a probe at an address can be optimized, and the rule at
// which the kernel stops if not.
func (s *Scanner) Decide(at x86.Addr) Decision {
	d := s.eligible(at)
	if d.Reason == None {
		d = s.prepare(at)
	}
	d.OK = d.Reason == None
	return d
}

// eligible is can_optimize and what comes before it.
func (s *Scanner) eligible(at x86.Addr) Decision {
	v, c := s.w.view, s.w.c
	switch {
	case !exists(c):
		return Decision{Reason: NoOptprobes, Addr: at}
	case ftraceBased(v, at, c):
		return Decision{Reason: FtraceBased, Addr: at}
	case !s.enter(at):
		return Decision{Reason: NoSymbol, Addr: at}
	case v.InEntryText(at):
		return Decision{Reason: EntryText, Addr: at}
	case tooShort(s.sym, at):
		return Decision{Reason: TooShort, Addr: at}
	}
	s.walk()
	if j, ok := s.jumps.into(JTPR(at)); ok {
		return Decision{Reason: JTPRTarget, Addr: j.from}
	}
	return Decision{Reason: s.stop, Addr: s.stopAt}
}

// enter makes the symbol around the address the current one.
func (s *Scanner) enter(at x86.Addr) bool {
	if s.sym.Size != 0 && uint64(at.Sub(s.sym.Addr)) < s.sym.Size {
		return true
	}
	s.have = false
	var ok bool
	s.sym, ok = s.w.view.SymbolAt(at)
	return ok
}

// walk goes through the current function, if that was not done already, until
// an instruction forbids all of it.
func (s *Scanner) walk() {
	if s.have {
		return
	}
	s.have, s.stop, s.stopAt, s.jumps = true, None, 0, s.jumps[:0]
	end := s.sym.Addr.Add(int64(s.sym.Size))
	for at := s.sym.Addr; at < end && s.stop == None; at = at.Add(int64(s.w.k.Length)) {
		if found := s.w.visit(at); found != 0 {
			s.stop, s.stopAt = found.first(), at
		} else if s.w.k.IsRelativeJump() {
			s.addJump(at, s.w.k.Target(at), end)
		}
	}
	s.jumps.sort()
}

// addJump keeps a jump that can be into a JTPR, which reaches to the function's
// end at most.
func (s *Scanner) addJump(from, to, end x86.Addr) {
	if to > s.sym.Addr && to <= end {
		s.jumps = append(s.jumps, jump{from, to})
	}
}

// prepare is what making the detour buffer asks.
func (s *Scanner) prepare(at x86.Addr) Decision {
	c := s.w.c
	if tooFar(at, s.buf) {
		return Decision{Reason: Distance, Addr: at}
	}
	p := copier{view: s.w.view, c: c, at: at, final: s.buf.Add(int64(TemplateSize(c)))}
	for !p.done() {
		src := at.Add(int64(p.size))
		if id := p.next(s.copied[:]); id != None {
			return Decision{Reason: id, Addr: src}
		}
	}
	id, site := reserved(s.w.view, x86.Range{Start: at, End: at.Add(int64(p.size))}, c)
	if id != None {
		return Decision{Reason: id, Addr: site}
	}
	return Decision{Size: p.size}
}
