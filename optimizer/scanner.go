package optimizer

import (
	"cmp"
	"slices"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/slot"
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
// in order: it walks and decodes each function once. It gives what Check gives,
// without the reasons behind the first. It is for one goroutine.
type Scanner struct {
	w   walker
	buf x86.Addr
	// template is the detour template's size, behind which copies run.
	template int

	// What the walk over the last function found. have tells whether it was.
	have bool
	sym  kimage.Symbol
	// stop is the first rule that forbids the whole function, and stopAt the
	// instruction; the kernel's walk ends there.
	stop   ReasonID
	stopAt x86.Addr
	// jumps are those before it that stay in the function.
	jumps jumps
	// insns are the instructions before it, last the one that was asked about.
	insns []copied
	last  int
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
		w:        walker{view: v, c: c, thunks: v.IndirectThunks()},
		buf:      buf,
		template: TemplateSize(c),
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
	s.have, s.stop, s.stopAt = true, None, 0
	s.jumps, s.insns, s.last = s.jumps[:0], s.insns[:0], 0
	end := s.sym.Addr.Add(int64(s.sym.Size))
	defer func() { s.jumps.sort() }()
	for at := s.sym.Addr; at < end; at = at.Add(int64(s.w.k.Length)) {
		if found := s.w.visit(at); found != 0 {
			s.stop, s.stopAt = found.first(), at
			return
		}
		if s.w.k.IsRelativeJump() {
			s.addJump(at, s.w.k.Target(at), end)
		}
		s.insns = append(s.insns, copiedOf(&s.w))
	}
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
	if tooFar(at, s.buf) {
		return Decision{Reason: Distance, Addr: at}
	}
	size := 0
	for i, ok := s.index(at); size < jmp32Size; i++ {
		if !ok || i == len(s.insns) {
			return s.prepareOffPath(at)
		}
		k := &s.insns[i]
		if id := k.refuses(s.buf.Add(int64(s.template + size))); id != None {
			return Decision{Reason: id, Addr: k.at}
		}
		size += int(k.length)
	}
	return s.unreserved(at, size)
}

// prepareOffPath is prepare for an address that the walk did not meet, inside
// an instruction, where no probe can be.
func (s *Scanner) prepareOffPath(at x86.Addr) Decision {
	var dst [MaxRegion]byte
	p := copier{view: s.w.view, c: s.w.c, at: at, final: s.buf.Add(int64(s.template))}
	for !p.done() {
		src := at.Add(int64(p.size))
		if id := p.next(dst[:]); id != None {
			return Decision{Reason: id, Addr: src}
		}
	}
	return s.unreserved(at, p.size)
}

// unreserved is the last question about a region that can be copied.
func (s *Scanner) unreserved(at x86.Addr, size int) Decision {
	id, site := reserved(s.w.view, x86.Range{Start: at, End: at.Add(int64(size))}, s.w.c)
	if id != None {
		return Decision{Reason: id, Addr: site}
	}
	return Decision{Size: size}
}

// index finds the instruction at an address, which is the last one or soon
// behind it where addresses come in order.
func (s *Scanner) index(at x86.Addr) (int, bool) {
	for i := s.last; i < len(s.insns) && i < s.last+8; i++ {
		if s.insns[i].at == at {
			s.last = i
			return i, true
		}
	}
	i, ok := slices.BinarySearchFunc(s.insns, at, func(k copied, at x86.Addr) int { return cmp.Compare(k.at, at) })
	s.last = i
	return i, ok
}

// copied is what decides whether an instruction can be in a detour buffer.
type copied struct {
	at     x86.Addr
	length uint8
	// rule is the rule by which it is not copied, relative that it has a
	// RIP-relative operand at disp, boostable that it may run elsewhere.
	rule      ReasonID
	relative  bool
	boostable bool
	disp      int32
}

// copiedOf is the instruction at which the walk is.
func copiedOf(w *walker) copied {
	return copied{
		at: w.at, length: uint8(w.k.Length),
		rule:      ruleReason(slot.CopyRule(&w.k, w.c)),
		relative:  w.k.RIPRelative() && w.k.DispLen == 4,
		boostable: slot.Boostable(w.view, &w.k, w.at, w.c),
		disp:      w.k.Disp,
	}
}

// refuses is the rule that keeps it from being copied to run at final, in the
// order in which copying asks.
func (k *copied) refuses(final x86.Addr) ReasonID {
	switch {
	case k.rule != None:
		return k.rule
	case k.relative && !slot.Reaches(k.at, final, k.disp):
		return CopyDisplacement
	case !k.boostable:
		return NotBoostable
	}
	return None
}
