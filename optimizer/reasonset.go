package optimizer

import (
	"iter"
	"math/bits"

	"kprobelab/kprobes/rule"
)

// reasonSet is a set of rules of optimization, a bit each, from the first on.
type reasonSet uint32

func (s *reasonSet) add(id rule.ID) { *s |= 1 << (id - rule.NoOptprobes) }

// all are the rules of the set, in the kernel's order.
func (s reasonSet) all() iter.Seq[rule.ID] {
	return func(yield func(rule.ID) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(rule.NoOptprobes + rule.ID(bits.TrailingZeros32(uint32(s)))) {
				return
			}
		}
	}
}
