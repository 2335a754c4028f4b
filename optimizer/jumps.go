package optimizer

import (
	"cmp"
	"slices"

	"kprobelab/x86"
)

// JTPRSize is the length of a JTPR in bytes.
const JTPRSize = x86.Rel32Size

// JTPR is the jump target prohibition region of a probe at that address: A+1 to A+5, as in the
// kernel's code; in its documentation the region ends before A+5.
func JTPR(at x86.Addr) x86.Range { return x86.Range{Start: at + 1, End: at + 1 + JTPRSize} }

// jump is a relative jump of a function, by the index of its instruction.
// Calls are none, and jumps by VEX opcodes that look like one are
// (decoder.Kernel.IsRelativeJump).
type jump struct {
	from int32
	to   x86.Addr
}

// jumps are jumps of a function, sorted by target and then by place.
type jumps []jump

func (j jumps) sort() {
	slices.SortFunc(j, func(a, b jump) int {
		return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from))
	})
}

// appendInto appends the indexes of the jumps into the region.
func (j jumps) appendInto(list []int32, r x86.Range) []int32 {
	i, _ := slices.BinarySearchFunc(j, r.Start, func(a jump, t x86.Addr) int { return cmp.Compare(a.to, t) })
	for ; i < len(j) && j[i].to < r.End; i++ {
		list = append(list, j[i].from)
	}
	return list
}
