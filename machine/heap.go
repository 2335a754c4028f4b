package machine

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"kprobelab/errno"
	"kprobelab/x86"
)

// heap allocates from a region (the direct map, or user memory). Chunks have a
// power of two of bytes; the one freed last is reused first, so that addresses
// repeat from run to run. A page is mapped when it is first handed out.
type heap struct {
	r    x86.Range
	next x86.Addr
	free map[int][]x86.Addr
	size map[x86.Addr]int
}

func newHeap() heap { return heap{free: map[int][]x86.Addr{}, size: map[x86.Addr]int{}} }

// clone is a copy that later allocations leave alone.
func (h *heap) clone() heap {
	c := heap{r: h.r, next: h.next, free: map[int][]x86.Addr{}, size: maps.Clone(h.size)}
	for n, list := range h.free {
		c.free[n] = slices.Clone(list)
	}
	return c
}

// pages hands out whole pages that are never freed.
func (m *Machine) heapPages(h *heap, n x86.Addr) (x86.Addr, error) {
	at := pageUp(h.next)
	if n > x86.Addr(h.r.End.Sub(at)) {
		return 0, fmt.Errorf("heap of %d bytes: %w: %w", h.r.Len(), ErrNoMemory, errno.ENOMEM)
	}
	h.next = at + n
	m.engine.Allow(x86.Range{Start: at, End: h.next}, AttrR|AttrW)
	return at, nil
}

func chunk(n int) int { return max(16, 1<<bits.Len(uint(max(n, 1)-1))) }

// Alloc takes n zeroed bytes of the guest's heap, aligned to at least 16, and to
// a page from 4096 bytes on. A full heap is ErrNoMemory (errno.ENOMEM).
func (m *Machine) Alloc(n int) (x86.Addr, error) { return m.alloc(&m.heap, n) }

// AllocUser is Alloc in user memory, which is below the kernel's half of the
// address space. All tasks share one, of UserSize bytes.
func (m *Machine) AllocUser(n int) (x86.Addr, error) { return m.alloc(&m.user, n) }

func (m *Machine) alloc(h *heap, n int) (x86.Addr, error) {
	if err := m.Closed(); err != nil {
		return 0, err
	}
	if n < 0 || int64(n) > MaxRegion {
		return 0, fmt.Errorf("alloc of %d bytes: %w", n, errno.EINVAL)
	}
	c := chunk(n)
	var at x86.Addr
	if f := h.free[c]; len(f) > 0 {
		at, h.free[c] = f[len(f)-1], f[:len(f)-1]
	} else {
		align := x86.Addr(min(c, PageSize))
		at = (h.next + align - 1) &^ (align - 1)
		if x86.Addr(c) > x86.Addr(h.r.End.Sub(at)) {
			return 0, fmt.Errorf("alloc of %d bytes: %w: %w", n, ErrNoMemory, errno.ENOMEM)
		}
		h.next = at.Add(int64(c))
		m.engine.Allow(x86.Range{Start: at, End: h.next}, AttrR|AttrW)
	}
	h.size[at] = c
	m.touch(at, c)
	m.each(at, c, func(b []byte) { clear(b) })
	return at, nil
}

// Free frees memory of Alloc or AllocUser. For any other address it does nothing.
func (m *Machine) Free(at x86.Addr) {
	for _, h := range []*heap{&m.heap, &m.user} {
		if c, ok := h.size[at]; ok {
			delete(h.size, at)
			h.free[c] = append(h.free[c], at)
			return
		}
	}
}

// Buf is guest memory that outlives a Call and can be an argument of it.
type Buf struct {
	// Addr is its address in the guest.
	Addr x86.Addr
	// Len is its length in bytes.
	Len int
	m   *Machine
}

// NewBuf takes n zeroed bytes; Free gives them back.
func (m *Machine) NewBuf(n int) (*Buf, error) {
	at, err := m.Alloc(n)
	if err != nil {
		return nil, err
	}
	return &Buf{Addr: at, Len: n, m: m}, nil
}

// Bytes returns a copy of the buffer's current content.
func (b *Buf) Bytes() []byte {
	out := make([]byte, b.Len)
	// Heap pages stay mapped, so this cannot fail before Close.
	_ = b.m.ReadMem(b.Addr, out)
	return out
}

// Write replaces the buffer's content from its start; p must fit.
func (b *Buf) Write(p []byte) (int, error) {
	if len(p) > b.Len {
		return 0, fmt.Errorf("%d bytes into a buffer of %d: %w", len(p), b.Len, errno.EINVAL)
	}
	return len(p), b.m.WriteMem(b.Addr, p)
}

// Free gives the buffer back to the guest's heap.
func (b *Buf) Free() { b.m.Free(b.Addr) }
