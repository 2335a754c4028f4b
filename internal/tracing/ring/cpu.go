package ring

import "sync"

// cpu is one CPU's buffer: a circle of pages, and the reader's page beside it.
//
//	reader page -> pages[head] ... pages[head+used-1] -> empty pages -> (head)
//
// The writer's page (the tail) is the last used one, or the reader's page where
// used is 0: a reader that has caught up takes the page that is being written.
// Records on the reader's page are safe from being overwritten.
type cpu struct {
	mu sync.Mutex
	content
}

// content is the part of a CPU's buffer that Swap exchanges.
type content struct {
	pages  []*page
	head   int
	used   int
	reader *page
	// size is the requested size of the buffer, in bytes.
	size int

	// writeStamp is the time of the last record; readStamp the time of the last event taken off the
	// reader's page.
	writeStamp, readStamp uint64

	written, overrun, dropped, read uint64
	bytes, readBytes                int64
	// lost is the number of overwritten records that no reader has been told about; seenOverrun is
	// overrun at the last turn of a page.
	lost, seenOverrun uint64
	// generation changes whenever an iterator has to find its page anew.
	generation uint64
}

func newCPU(size int) *cpu {
	c := &cpu{content: content{size: size}}
	c.allocate(pagesFor(size))
	return c
}

// pagesFor returns the number of pages for size bytes; two at least.
func pagesFor(size int) int { return max(2, (size+PageData-1)/PageData) }

// allocate makes all pages anew, empty. They are one piece of memory: pages that were never written
// cost nothing.
func (c *cpu) allocate(n int) {
	list := newPages(n + 1)
	c.pages, c.reader = list[:n:n], list[n]
	c.clear()
}

func newPages(n int) []*page {
	mem := make([]byte, n*PageSize)
	pages := make([]page, n)
	list := make([]*page, n)
	for i := range list {
		pages[i].mem = mem[i*PageSize : (i+1)*PageSize : (i+1)*PageSize]
		list[i] = &pages[i]
	}
	return list
}

// clear empties the buffer and its counters (ring_buffer_reset_cpu).
func (c *cpu) clear() {
	c.generation++
	for _, p := range c.pages {
		if p.commit() != 0 || p.entries != 0 {
			p.clear(0)
		}
	}
	c.reader.clear(0)
	c.head, c.used = 0, 1
	c.pages[0].clear(0)
	c.writeStamp, c.readStamp = 0, 0
	c.written, c.overrun, c.dropped, c.read = 0, 0, 0, 0
	c.bytes, c.readBytes, c.lost, c.seenOverrun = 0, 0, 0, 0
}

// at is the i-th used page, oldest first.
func (c *cpu) at(i int) *page { return c.pages[(c.head+i)%len(c.pages)] }

func (c *cpu) tail() *page {
	if c.used == 0 {
		return c.reader
	}
	return c.at(c.used - 1)
}

// write appends a record, or says that it was dropped.
func (c *cpu) write(now uint64, data []byte, overwrite bool) bool {
	p := c.tail()
	length, delta := eventLen(len(data)), c.since(now)
	if p.commit() == 0 {
		delta = 0
	}
	if delta > maxDelta {
		length += timeExtendLen
	}
	if p.commit()+length > PageData {
		if p = c.next(p, overwrite); p == nil {
			return false
		}
		length, delta = eventLen(len(data)), 0
	}
	if p.commit() == 0 {
		p.setStamp(now)
	}
	p.put(length, delta, data)
	c.writeStamp = now
	c.written++
	c.bytes += int64(length)
	return true
}

// since is the time since the last record, 0 if the clock went back: the page format cannot express
// that.
func (c *cpu) since(now uint64) uint64 {
	if now < c.writeStamp {
		return 0
	}
	return now - c.writeStamp
}

// next moves the writer to the next page (rb_move_tail). Where that is the
// oldest one, its records are overwritten; or, without overwrite, the new
// record is dropped and nil returned.
func (c *cpu) next(p *page, overwrite bool) *page {
	if c.used == len(c.pages) {
		if !overwrite {
			c.dropped++
			c.bytes += int64(p.pad())
			return nil
		}
		c.discardOldest()
	}
	c.bytes += int64(p.pad())
	c.used++
	p = c.tail()
	p.clear(c.written)
	return p
}

func (c *cpu) discardOldest() {
	old := c.at(0)
	c.overrun += old.entries
	c.bytes -= int64(old.commit())
	c.head = (c.head + 1) % len(c.pages)
	c.used--
}

// entries returns the number of records that can be read.
func (c *cpu) entries() uint64 { return c.written - c.overrun - c.read }
