package probepoint

import (
	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// checkBoundary checks that decoding from the symbol's start reaches the address exactly
// (can_probe, docs/spec 1.5), and, in releases that test it, that the instruction there does not
// only raise an exception.
func checkBoundary(v kimage.View, p *Point, c *profile.Config) error {
	if p.Symbol.Name != "" {
		for s := range kimage.NewWalker(v, &c.Decoder).Function(p.Symbol) {
			if s.Addr == p.Addr {
				return checkStep(v, s, p, c)
			}
			if s.Addr > p.Addr {
				break
			}
		}
	}
	return Refuse(rule.NotBoundary, p.Addr, p.String())
}

// Boundary makes the checks of can_probe alone, for any address: do its function's instructions
// allow a probe there? The error is a *Refusal.
func Boundary(v kimage.View, at x86.Addr, c *profile.Config) error {
	p := pointAt(v, at)
	return checkBoundary(v, &p, c)
}

// checkStep is checkBoundary where the walk has reached the address.
func checkStep(v kimage.View, s *kimage.Step, p *Point, c *profile.Config) error {
	switch {
	case s.AfterInt3 && !c.Check.PaddingInt3:
		return Refuse(rule.NotBoundary, p.Addr, p.String())
	case s.Err != nil && (c.Check.ExceptionInsn || c.Check.CFITraps && c.Built.KCFI):
		return Refuse(rule.NotBoundary, p.Addr, p.String())
	case s.Err != nil:
		return nil
	case c.Check.ExceptionInsn && (s.Reading.Kind == decoder.KindInt3 || s.Reading.Kind == decoder.KindTrap):
		return Refuse(rule.ExceptionInsn, p.Addr, p.String())
	case c.Check.CFITraps && inCFICheck(v, s):
		return Refuse(rule.CFICheck, p.Addr, p.String())
	}
	return nil
}

// inCFICheck reports whether the instruction is one of the two before the ud2 in a check of an
// indirect call:
//
//	mov $-type,%r10d     6 bytes
//	add -4(%reg),%r10d   4 bytes
//	je                   2 bytes
//	ud2
func inCFICheck(v kimage.View, s *kimage.Step) bool {
	k := &s.Insn
	if k.OpcodeLen != 1 {
		return false
	}
	switch k.Opcode[0] {
	case 0xba:
		return v.CFITrap(s.Addr + 12)
	case 0x03:
		return v.CFITrap(s.Addr + 6)
	}
	return false
}
