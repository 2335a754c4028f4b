package probepoint

import (
	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
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

// checkStep is checkBoundary where the walk has reached the address.
func checkStep(s *kimage.Step, p *Point, c *profile.Config) error {
	switch {
	case s.AfterInt3 && !c.Check.PaddingInt3:
		return Refuse(rule.NotBoundary, p.Addr, p.String())
	case !c.Check.ExceptionInsn:
		return nil
	case s.Err != nil:
		return Refuse(rule.NotBoundary, p.Addr, p.String())
	case raisesException(&s.Insn):
		return Refuse(rule.ExceptionInsn, p.Addr, p.String())
	}
	return nil
}

// raisesException is is_exception_insn of 6.12, without the traps of Clang's
// CFI, which no modelled kernel is built with.
func raisesException(k *decoder.Kernel) bool {
	switch k.Opcode[0] {
	case 0xcc, 0xcd, 0xce, 0xf1: // int3, int n, into, int1
		return true
	case 0x0f:
		op := k.Opcode[1]
		return op == 0xff || op == 0xb9 || op == 0x0b // ud0, ud1, ud2
	}
	return false
}
