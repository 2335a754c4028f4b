package registers

import (
	"slices"

	"kprobelab/x86"
)

// MaxLen is the most bytes that a register watches.
const MaxLen = 8

// Piece is data that one register can watch.
type Piece struct {
	Addr x86.Addr
	Len  uint64
}

// Cover is n bytes at an address in pieces, as few as possible: each has 1, 2, 4 or 8 bytes at a
// multiple of its length. Past the last address there are none.
func Cover(at x86.Addr, n uint64) (list []Piece) {
	for n > 0 {
		size := uint64(MaxLen)
		for size > n || uint64(at)%size != 0 {
			size /= 2
		}
		list = append(list, Piece{at, size})
		at, n = at.Add(int64(size)), n-size
		if at == 0 {
			break
		}
	}
	return list
}

// Refusals are all that the kernel has against a breakpoint of its own on a CPU; it answers with the
// first. None is an answer too: it would be accepted.
func (s *Set) Refusals(attr Attr, cpu int) []*Refusal {
	a := &asked{Event: &Event{attr, Any, cpu}, s: s}
	return slices.Collect(a.refusals(inOrder))
}
