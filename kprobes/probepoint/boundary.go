package probepoint

import (
	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// checkBoundary proves that decoding from the symbol's start reaches the
// address exactly (can_probe, docs/spec 1.5), and where the release asks for it,
// that the instruction there is not one that only raises an exception.
func checkBoundary(v kimage.View, p *Point, c *profile.Config) error {
	if p.Symbol.Name != "" {
		for s := range kimage.NewWalker(v, &c.Decoder).Function(p.Symbol) {
			if s.Addr == p.Addr {
				return checkStep(s, p, c)
			}
			if s.Addr > p.Addr {
				break
			}
		}
	}
	return Refuse(rule.NotBoundary, p.Addr, p.String())
}

// Boundary makes the checks of can_probe alone, of an address wherever it is: may a
// probe stand at it as far as its function's instructions say? The error is a
// *Refusal.
func Boundary(v kimage.View, at x86.Addr, c *profile.Config) error {
	p := pointAt(v, at)
	return checkBoundary(v, &p, c)
}

// checkStep is checkBoundary where the walk has reached the address.
func checkStep(s *kimage.Step, p *Point, c *profile.Config) error {
	switch {
	case s.AfterInt3 && !c.Check.PaddingInt3:
		return Refuse(rule.NotBoundary, p.Addr, p.String())
	case !c.Check.ExceptionInsn:
		return nil
	case s.Err != nil:
		return Refuse(rule.NotBoundary, p.Addr, p.String())
	case s.Reading.Kind == decoder.KindInt3, s.Reading.Kind == decoder.KindTrap:
		return Refuse(rule.ExceptionInsn, p.Addr, p.String())
	}
	return nil
}
