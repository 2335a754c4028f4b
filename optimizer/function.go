package optimizer

import (
	"bytes"
	"cmp"
	"iter"
	"slices"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// insn is an instruction of a function, as far as the rules look at it.
type insn struct {
	at x86.Addr
	// target is the destination of a relative jump; jump is true for a jump.
	target x86.Addr
	// disp is the displacement of a RIP-relative operand.
	disp int32
	// forbids are the rules by which the instruction prevents optimization of every address of its
	// function.
	forbids reasonSet
	// length is in bytes, 0 without an instruction.
	length uint8
	// copyRule is the rule that prevents a copy of it; rule.None if it can be copied.
	copyRule    rule.ID
	jump        bool
	ripRelative bool
	boostable   bool
}

// insnOf looks at a step of the walk.
func (s *Scanner) insnOf(step *kimage.Step) insn {
	i := insn{at: step.Addr}
	if _, ok := s.view.ExceptionEntry(i.at); ok {
		i.forbids.add(rule.ExceptionEntry)
	}
	if step.Err != nil {
		forbids := rule.OptUndecodable
		i.copyRule = rule.CopyUndecodable
		if step.Err == kimage.ErrUnreadable {
			forbids, i.copyRule = rule.OptUnreadable, rule.CopyUnreadable
		}
		i.forbids.add(forbids)
		return i
	}
	k := &step.Insn
	i.length = uint8(step.Reading.Length)
	if s.c.Optimize.Int3Blocks && step.IsInt3() && !(s.c.Optimize.Int3Tail && s.padding(i.at)) {
		i.forbids.add(rule.Int3InFunction)
	}
	i.target, i.jump = step.Jump()
	s.indirect(&i, step)
	i.copyRule = slot.CopyRule(k, s.c).InDetour()
	i.ripRelative, i.disp = k.RIPRelative() && k.DispLen == 4, k.Disp
	i.boostable = slot.Boostable(s.view, k, i.at, s.c)
	return i
}

// padding reports whether only int3s follow up to the end of the function.
func (s *Scanner) padding(at x86.Addr) bool {
	sym, ok := s.view.SymbolAt(at)
	if !ok {
		return false
	}
	var b [16]byte
	for end := sym.Addr.Add(int64(sym.Size)); at < end; at += x86.Addr(len(b)) {
		n := s.view.CodeAt(at, b[:min(len(b), int(end.Sub(at)))])
		if n == 0 || bytes.Count(b[:n], []byte{x86.Int3}) != n {
			return false
		}
	}
	return true
}

// indirect is the rule about indirect jumps: FF /4, /5 and EA, and with
// retpolines compiled in, a relative jump into their thunks, the end of which
// counts as inside (insn_is_indirect_jump). Calls do not matter: they return.
//
// With return thunks active every return is such a jump.
func (s *Scanner) indirect(i *insn, step *kimage.Step) {
	if s.c.Optimize.IndirectJumps && step.Reading.Kind == decoder.KindIndirectJump {
		i.forbids.add(rule.IndirectJump)
	}
	t := s.thunks
	if s.c.Optimize.ThunkRange && t.End != 0 && i.jump && t.Start <= i.target && i.target <= t.End {
		i.forbids.add(rule.ThunkJump)
	}
}

// function is the result of one walk over a function, for all its addresses.
type function struct {
	sym kimage.Symbol
	// steps, when not nil, are the steps of a walk that the caller has already made.
	steps []kimage.Step
	// walked: the fields below are filled in. whole: the walk went to the end of
	// the function. Otherwise it ended at the first instruction that forbids, as
	// the kernel's walk does.
	walked, whole bool
	insns         []insn
	// forbidding are the indexes of the instructions that forbid.
	forbidding []int32
	// overruled are the instructions that the kernel's decoder reads
	// differently from the View's Reader.
	overruled []Overruled
	// jumps are the jumps into the function or to the bytes next to it.
	jumps jumps
	// last is the index of the instruction of the last question.
	last int
}

// enter makes the function around the address the current one.
func (f *function) enter(v kimage.View, at x86.Addr) bool {
	if f.sym.Size != 0 && uint64(at.Sub(f.sym.Addr)) < f.sym.Size {
		return true
	}
	sym, ok := v.SymbolAt(at)
	f.set(sym, nil)
	return ok
}

func (f *function) set(sym kimage.Symbol, steps []kimage.Step) {
	f.sym, f.steps, f.walked, f.insns = sym, steps, false, f.insns[:0]
}

// walk walks over the current function, unless that was done: to its end if whole is set, else
// until an instruction forbids all of it.
func (s *Scanner) walk(whole bool) {
	f := &s.fn
	if f.walked && (f.whole || !whole || len(f.forbidding) == 0) {
		return
	}
	f.walked, f.whole, f.last = true, whole, 0
	f.insns, f.forbidding, f.jumps, f.overruled = f.insns[:0], f.forbidding[:0], f.jumps[:0], f.overruled[:0]
	for step := range s.steps() {
		i := s.insnOf(step)
		n := int32(len(f.insns))
		f.insns = append(f.insns, i)
		if step.Overruled() {
			f.overruled = append(f.overruled, Overruled{Insn: Insn{Addr: i.at}, Read: step.Read, Kernel: step.Reading})
		}
		if i.forbids != 0 {
			f.forbidding = append(f.forbidding, n)
			if !whole {
				break
			}
		}
		if i.jump {
			f.addJump(jump{n, i.target})
		}
	}
	f.jumps.sort()
}

// steps are the function's instructions.
func (s *Scanner) steps() iter.Seq[*kimage.Step] {
	if s.fn.steps == nil {
		return s.walker.Function(s.fn.sym)
	}
	return kimage.Steps(s.fn.steps)
}

// addJump keeps a jump that may lead into a JTPR. That of the function's last
// byte ends 5 bytes past the function.
func (f *function) addJump(j jump) {
	if off := j.to.Sub(f.sym.Addr); 0 < off && off < int64(f.sym.Size)+JTPRSize {
		f.jumps = append(f.jumps, j)
	}
}

// index finds the instruction at an address, which is the last one or soon
// after it where addresses come in order.
func (f *function) index(at x86.Addr) (int, bool) {
	for i := f.last; i < len(f.insns) && i < f.last+8; i++ {
		if f.insns[i].at == at {
			f.last = i
			return i, true
		}
	}
	i, ok := slices.BinarySearchFunc(f.insns, at, func(k insn, at x86.Addr) int { return cmp.Compare(k.at, at) })
	f.last = i
	return i, ok
}
