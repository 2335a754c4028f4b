package optimizer

import (
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Scanner decides about many addresses of one image. It walks and decodes each function once if the
// addresses come in order. It is for one goroutine.
type Scanner struct {
	view   kimage.View
	c      *profile.Config
	thunks x86.Range
	// buf is the assumed address of detour buffers, and template the size of the detour template,
	// after which the copies run.
	buf      x86.Addr
	template int

	walker *kimage.Walker
	// fn is the function of the last question.
	fn function
	// found is the memory of one question.
	found []int32
}

// NewScanner makes a Scanner for a kernel's code and profile; neither may
// change while it is used. Detour buffers are taken to be at the profile's
// ModuleBase, near which the kernel puts them.
func NewScanner(v kimage.View, c *profile.Config) *Scanner {
	return NewScannerAt(v, x86.Addr(c.ModuleBase), c)
}

// NewScannerAt is NewScanner with the detour buffers at a given address.
func NewScannerAt(v kimage.View, buf x86.Addr, c *profile.Config) *Scanner {
	return &Scanner{
		view: v, c: c, thunks: v.IndirectThunks(),
		buf: buf, template: TemplateSize(c),
		walker: kimage.NewWalker(v, &c.Decoder),
	}
}

// Walked passes a walk over a function that the caller has made with a kimage.Walker, so that the
// Scanner needs no walk of its own. The steps must not change until Decide is called for another
// function.
func (s *Scanner) Walked(sym kimage.Symbol, steps []kimage.Step) { s.fn.set(sym, steps) }

// Decide returns whether a probe at an address can be optimized, and the rule at which the kernel
// stops if not. It does not check whether a probe may be there at all; package probepoint does.
func (s *Scanner) Decide(at x86.Addr) Decision {
	q := question{Scanner: s, at: at}
	q.ask()
	return q.d
}

// Check is Decide with all reasons.
func (s *Scanner) Check(at x86.Addr) Verdict {
	v := Verdict{Addr: at, JTPR: JTPR(at)}
	q := question{Scanner: s, at: at, v: &v}
	q.ask()
	if v.Symbol.Size != 0 {
		q.overrule()
	}
	v.OK = q.d.OK
	return v
}
