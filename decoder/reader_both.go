package decoder

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"kprobelab/x86"
)

// Both is a Reader that calls two others, returns the first one's reading, and records the
// differences of the second. Make it with NewBoth.
type Both struct {
	first, second Reader
	compared      atomic.Int64
	mu            sync.Mutex
	differences   map[x86.Addr]Difference
}

// Difference is an instruction that two Readers read differently.
type Difference struct {
	At x86.Addr
	// Code are the bytes of the longer reading, or one byte.
	Code          []byte
	First, Second Reading
}

// NewBoth makes a Reader that compares two.
func NewBoth(first, second Reader) *Both {
	return &Both{first: first, second: second, differences: map[x86.Addr]Difference{}}
}

// String is the first Reader's name.
func (b *Both) String() string { return b.first.String() }

// Read returns the first Reader's reading.
func (b *Both) Read(code []byte, at x86.Addr) Reading {
	b.compared.Add(1)
	first, second := b.first.Read(code, at), b.second.Read(code, at)
	if first != second {
		b.mu.Lock()
		defer b.mu.Unlock()
		n := min(len(code), max(1, first.Length, second.Length))
		b.differences[at] = Difference{at, slices.Clone(code[:n]), first, second}
	}
	return first
}

// Readers returns the two readers.
func (b *Both) Readers() (first, second Reader) { return b.first, b.second }

// Compared returns the number of readings that were compared. An instruction that is read again
// counts again.
func (b *Both) Compared() int64 { return b.compared.Load() }

// Differences returns the readings in which the two differ, by ascending address.
func (b *Both) Differences() []Difference {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Difference, 0, len(b.differences))
	for _, d := range b.differences {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Difference) int { return cmp.Compare(a.At, b.At) })
	return list
}

// Alone marks a Reader that nothing corrects: its readings count where the
// kernel's decoder reads differently, too.
type Alone struct{ Reader }
