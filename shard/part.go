package shard

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
)

// Part is shard I of N, counted from 1. The zero Part is the whole list.
type Part struct{ I, N int }

// Parse reads "I/N".
func Parse(text string) (Part, error) {
	i, n, ok := strings.Cut(text, "/")
	p := Part{number(i), number(n)}
	if !ok || p.I < 1 || p.N < p.I || p.N > bounded.Shards {
		return Part{}, fmt.Errorf("%q is no shard: --shard takes I/N, such as 2/3 for the second of three, with N up to %d", text, bounded.Shards)
	}
	return p, nil
}

// number reads digits; it returns 0 for other text.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || text != strconv.FormatUint(n, 10) {
		return 0
	}
	return int(n)
}

// String writes the part as Parse reads it.
func (p Part) String() string { return fmt.Sprintf("%d/%d", p.I, p.N) }

// Whole reports whether the part is the whole list.
func (p Part) Whole() bool { return p.N == 0 }

// Of returns the items of a part, in their order: items I, I+N, I+2N, … of the list. The order of the list alone decides, so
// every machine divides alike, and neighbours, such as kernels of one series, are on different machines.
func Of[T any](p Part, list []T) []T {
	if p.Whole() {
		return list
	}
	var mine []T
	for i := p.I - 1; i < len(list); i += p.N {
		mine = append(mine, list[i])
	}
	return mine
}

// count returns the number of items of a part of a list.
func (p Part) count(items int) int {
	if p.Whole() {
		return items
	}
	return max(0, (items-p.I+p.N)/p.N)
}
