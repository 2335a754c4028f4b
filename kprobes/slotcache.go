package kprobes

import (
	"math/bits"

	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// outOfLine is a probed instruction in its slot.
type outOfLine struct {
	slot.Slot
	page  *slotPage
	index int
}

// The slot cache's geometry (docs/spec 3.1). Detour buffers have a cache of the same
// kind, with larger slots.
const (
	slotSize     = 15 // MAX_INSN_SIZE
	slotPageSize = 4096
	slotsPerPage = slotPageSize / slotSize // the most that a page can have
	bitmapWords  = (slotsPerPage + 63) / 64
)

// slotPage is one executable page of slots. A slot is CLEAN if its bit is set in clean, DIRTY if it
// is set in dirty, and USED if it is set in neither.
type slotPage struct {
	addr  x86.Addr
	size  int // of a slot
	n     int // how many pages were made before it
	clean [bitmapWords]uint64
	dirty [bitmapWords]uint64
	used  int
	free  int // bits in clean
}

// slotCache hands out slots (kernel/kprobes.c __get_insn_slot).
type slotCache struct {
	m Machine
	// size is the size of a slot in bytes, name the pages' symbol in kallsyms.
	size int
	name string
	// pages are in order of age; the newest is searched first.
	pages []*slotPage
	// spare are pages that were released, to be used before new ones: the
	// machine's executable memory cannot be given back.
	spare   []*slotPage
	made    int
	garbage int
	// quiet reports that no CPU is inside a slot. The kernel waits an RCU grace
	// period for that.
	quiet func() bool
}

// get takes the lowest clean slot of the newest page that has one.
func (c *slotCache) get() (*slotPage, int, error) {
	if pg := c.withClean(); pg != nil {
		return pg, pg.take(), nil
	}
	if c.garbage > 0 && c.collect() {
		if pg := c.withClean(); pg != nil {
			return pg, pg.take(), nil
		}
	}
	pg, err := c.newPage()
	if err != nil {
		return nil, 0, err
	}
	return pg, pg.take(), nil
}

func (c *slotCache) withClean() *slotPage {
	for i := len(c.pages) - 1; i >= 0; i-- {
		if c.pages[i].free > 0 {
			return c.pages[i]
		}
	}
	return nil
}

func (c *slotCache) newPage() (*slotPage, error) {
	var pg *slotPage
	if n := len(c.spare); n > 0 {
		pg, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		addr, err := c.m.AllocExec(slotPageSize, c.name)
		if err != nil {
			return nil, err
		}
		pg = &slotPage{addr: addr, size: c.size, n: c.made}
		c.made++
	}
	pg.reset(c.perPage())
	c.pages = append(c.pages, pg)
	return pg, nil
}

func (p *slotPage) reset(n int) {
	p.clean, p.dirty = [bitmapWords]uint64{}, [bitmapWords]uint64{}
	for i := range n {
		p.clean[i/64] |= 1 << (i % 64)
	}
	p.used, p.free = 0, n
}

func (c *slotCache) perPage() int { return slotPageSize / c.size }

// take makes the lowest clean slot USED.
func (p *slotPage) take() int {
	for w := range p.clean {
		if p.clean[w] != 0 {
			b := bits.TrailingZeros64(p.clean[w])
			p.clean[w] &^= 1 << b
			p.used++
			p.free--
			return w*64 + b
		}
	}
	panic("BUG: a page with free slots has none")
}

func (p *slotPage) slotAddr(i int) x86.Addr { return p.addr.Add(int64(i * p.size)) }

// put gives a slot back. It becomes dirty where somebody may still run in it:
// its copy was boosted, or a CPU is inside a hit.
func (c *slotCache) put(pg *slotPage, i int, boosted bool) {
	if boosted || !c.quiet() {
		pg.dirty[i/64] |= 1 << (i % 64)
		c.garbage++
		if c.garbage > c.perPage() {
			c.collect()
		}
		return
	}
	pg.clean[i/64] |= 1 << (i % 64)
	pg.used--
	pg.free++
	c.release(pg)
}

// release drops a page without used slots, unless it is the only one.
func (c *slotCache) release(pg *slotPage) {
	if pg.used > 0 || len(c.pages) == 1 {
		return
	}
	for i, p := range c.pages {
		if p == pg {
			c.pages = append(c.pages[:i], c.pages[i+1:]...)
			c.spare = append(c.spare, pg)
			return
		}
	}
}

// collect makes all dirty slots clean, unless a CPU may be in one.
func (c *slotCache) collect() bool {
	if !c.quiet() {
		return false
	}
	c.garbage = 0
	for i := len(c.pages) - 1; i >= 0; i-- {
		pg := c.pages[i]
		for w := range pg.dirty {
			n := bits.OnesCount64(pg.dirty[w])
			pg.clean[w] |= pg.dirty[w]
			pg.dirty[w] = 0
			pg.used -= n
			pg.free += n
		}
		c.release(pg)
	}
	return true
}
