package x86

import "strconv"

// Addr is a guest virtual address. It is never a length and never a host
// pointer, which is why it is a type of its own.
type Addr uint64

// String prints the address as the kernel's %px does with a 0x prefix.
func (a Addr) String() string { return "0x" + strconv.FormatUint(uint64(a), 16) }

// Add returns the address n bytes further; n may be negative.
func (a Addr) Add(n int64) Addr { return Addr(uint64(a) + uint64(n)) }

// Sub returns the signed distance from b to a in bytes.
func (a Addr) Sub(b Addr) int64 { return int64(uint64(a) - uint64(b)) }

// In reports whether the address lies in the half-open range [start, end).
func (a Addr) In(start, end Addr) bool { return start <= a && a < end }

// UserEnd is the end of user addresses with page tables of four levels (TASK_SIZE_MAX).
const UserEnd Addr = 1<<47 - 0x1000

// Range is a half-open range of guest addresses, [Start, End).
type Range struct{ Start, End Addr }

// Contains reports whether a lies in the range.
func (r Range) Contains(a Addr) bool { return a.In(r.Start, r.End) }

// Len is the size of the range in bytes.
func (r Range) Len() uint64 { return uint64(r.End - r.Start) }

// Overlaps reports whether the two ranges share a byte.
func (r Range) Overlaps(o Range) bool { return r.Start < o.End && o.Start < r.End }
