package probepoint

import (
	"errors"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Step is one instruction on the way from a symbol's start, as can_probe walks
// it. A caller that asks about every instruction of a function walks once and
// hands each Step to PlaceStep, in place of a walk for each of them.
type Step struct {
	// Offset of the instruction in the symbol, in bytes.
	Offset uint64
	// Insn is the kernel decoder's view of it, and Err the decoder's error;
	// no step follows one with an error.
	Insn decoder.Kernel
	Err  error
	// Reached is false behind an int3 in the kernels that do not take one for
	// padding: can_probe does not come here.
	Reached bool
}

// errStuck: a decoder without errors found nothing to consume.
var errStuck = errors.New("an instruction of no length")

// IsInt3 reports whether the instruction is a plain int3, with which the
// compiler and the kernel fill what is never executed.
func (s *Step) IsInt3() bool { return s.Err == nil && s.Insn.Length == 1 && s.Insn.Opcode[0] == 0xcc }

// Walk calls f for every instruction of the symbol, in order, until f returns
// false, the symbol ends or the decoder gives up. The Step is f's for the call
// only.
func Walk(v kimage.View, sym kimage.Symbol, c *profile.Config, f func(*Step) bool) {
	w := walker{view: v, c: c}
	s := Step{Reached: true}
	for s.Offset < sym.Size {
		s.decode(&w, sym.Addr.Add(int64(s.Offset)))
		if !f(&s) || s.Err != nil {
			return
		}
		if s.Insn.Opcode[0] == 0xcc && !c.Check.PaddingInt3 {
			s.Reached = false
		}
		s.Offset += uint64(s.Insn.Length)
	}
}

func (s *Step) decode(w *walker, at x86.Addr) {
	s.Insn, s.Err = decoder.DecodeKernel(w.at(at), &w.c.Decoder)
	if s.Err == nil && s.Insn.Length == 0 {
		s.Err = errStuck
	}
}

// check is the boundary rule (docs/spec 1.5) of an instruction that the step
// describes.
func (s *Step) check(p *Point, c *profile.Config) error {
	switch {
	case !s.Reached:
		return Refuse(errno.EILSEQ, RuleNotBoundary, p.Addr, p.String())
	case !c.Check.ExceptionInsn:
		return nil
	case s.Err != nil:
		return Refuse(errno.EILSEQ, RuleNotBoundary, p.Addr, p.String())
	case raisesException(&s.Insn):
		return Refuse(errno.EILSEQ, RuleExceptionInsn, p.Addr, p.String())
	}
	return nil
}

// PlaceStep is Place for a point at a step of the walk over its own symbol; it
// gives the same answer. A point that resolution has moved (behind an ENDBR)
// is no longer at its step: use Place.
func PlaceStep(v kimage.View, p *Point, s *Step, slotAddr x86.Addr, hasPost bool, c *profile.Config) (Placement, error) {
	if err := check(v, p, s, c); err != nil {
		return Placement{}, err
	}
	return place(v, p, slotAddr, hasPost, c)
}
