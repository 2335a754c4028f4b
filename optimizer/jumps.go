package optimizer

import (
	"cmp"
	"slices"

	"kprobelab/x86"
)

// indirect is the rule about indirect jumps: FF /4, /5 and EA, and with
// retpolines compiled in, a relative jump into their thunks, the end of which
// counts as inside (insn_is_indirect_jump). Calls do not matter: they return.
//
// With return thunks active every return is such a jump.
func (w *walker) indirect() (s reasonSet) {
	if w.c.Optimize.IndirectJumps && w.k.IsIndirectJump() {
		s.add(IndirectJump)
	}
	if w.c.Optimize.ThunkRange && w.thunks.End != 0 && w.k.IsRelativeJump() {
		if t := w.k.Target(w.at); w.thunks.Start <= t && t <= w.thunks.End {
			s.add(ThunkJump)
		}
	}
	return s
}

// JTPR is the jump target prohibition region of a probe at that address, A+1
// to A+5, as the kernel's code has it; the documentation's ends before A+5.
func JTPR(at x86.Addr) x86.Range { return x86.Range{Start: at + 1, End: at + 1 + jmp32Size} }

// jump is a relative jump of a function. Calls are none, and jumps by VEX
// opcodes that look like one are (decoder.Kernel.IsRelativeJump).
type jump struct{ from, to x86.Addr }

// jumps are the jumps of a function that stay in it, sorted by target and then
// by place.
type jumps []jump

func (j jumps) sort() {
	slices.SortFunc(j, func(a, b jump) int {
		return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from))
	})
}

// into returns the jump into the region that the kernel's walk meets first.
func (j jumps) into(r x86.Range) (first jump, ok bool) {
	i, _ := slices.BinarySearchFunc(j, r.Start, func(a jump, t x86.Addr) int { return cmp.Compare(a.to, t) })
	for ; i < len(j) && j[i].to < r.End; i++ {
		if !ok || j[i].from < first.from {
			first, ok = j[i], true
		}
	}
	return first, ok
}
