package ring

import (
	"slices"

	"kprobelab/internal/bounded"
)

// Size returns the size of a CPU's buffer in bytes: the requested size, rounded up to pages, two at
// least. buffer_size_kb shows it in KiB.
func (b *Buffer) Size(cpu int) int {
	c := b.cpus[cpu]
	c.mu.Lock()
	defer c.mu.Unlock()
	return pagesFor(c.size) * PageData
}

// SameSize is the size of all CPUs' buffers in bytes, or false where they
// differ: buffer_size_kb reads "X" then.
func (b *Buffer) SameSize() (int, bool) {
	size := b.Size(0)
	for i := range b.cpus {
		if b.Size(i) != size {
			return 0, false
		}
	}
	return size, true
}

// TotalKB is the sum of all CPUs' sizes in KiB, each rounded down, for
// buffer_total_size_kb.
func (b *Buffer) TotalKB() int {
	total := 0
	for i := range b.cpus {
		total += b.Size(i) >> 10
	}
	return total
}

// Memory returns the number of bytes of all pages of one CPU's buffer of size bytes, the reader's
// page included.
func Memory(size int) int { return (pagesFor(size) + 1) * PageSize }

// MaxSize is the largest size that Resize accepts for one CPU, in bytes. The kernel stops only at
// the end of its memory; this program is a guest on its host.
const MaxSize = bounded.RingSize

// Resize changes the size of a CPU's buffer, or with AllCPUs of every CPU's, in bytes. Records
// stay, but the oldest ones that no longer fit count as overrun. It returns false, and changes
// nothing, for a size outside 1 to MaxSize: the kernel's EINVAL for 0, its ENOMEM for too much.
func (b *Buffer) Resize(cpu, size int) bool {
	if size < 1 || size > MaxSize {
		return false
	}
	for i, c := range b.cpus {
		if cpu == AllCPUs || cpu == i {
			c.mu.Lock()
			c.resize(size)
			c.mu.Unlock()
		}
	}
	return true
}

// resize keeps the pages in their order. New ones come in after the writer's
// (rb_insert_pages). To make the buffer smaller, first empty pages go, then the
// oldest (rb_remove_pages).
func (c *cpu) resize(size int) {
	c.size = size
	n := pagesFor(size)
	for c.used > n {
		c.discardOldest()
	}
	order := make([]*page, 0, n)
	for i := range min(n, len(c.pages)) {
		order = append(order, c.at(i))
	}
	if len(order) < n {
		order = append(order, newPages(n-len(order))...)
	} else if n < len(c.pages) {
		order = c.moved(order)
	}
	c.pages, c.head = order, 0
}

// moved copies the pages into memory of their own, so that the larger piece of
// memory that they were part of becomes free.
func (c *cpu) moved(order []*page) []*page {
	c.generation++
	list := newPages(len(order) + 1)
	move := func(to, from *page) *page {
		copy(to.mem, from.mem)
		to.entries, to.first, to.read, to.taken = from.entries, from.first, from.read, from.taken
		return to
	}
	for i, p := range order[:min(c.used, len(order))] {
		move(list[i], p)
	}
	c.reader = move(list[len(order)], c.reader)
	return slices.Clip(list[:len(order)])
}
