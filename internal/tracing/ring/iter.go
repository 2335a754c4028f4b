package ring

// Iterator reads records and leaves them in the buffer, as the trace file does. Records may be
// written and consumed meanwhile. Records that are overwritten before the iterator reaches them
// count as lost.
type Iterator struct {
	b    *Buffer
	cpus []cursor
}

// cursor is an iterator's place in a CPU's buffer.
type cursor struct {
	cpu int
	// next is the number of the next record among all written on the CPU.
	next uint64
	// page is the page of the record: first and generation show whether the page still has the same
	// content. The event at off has the time stamp before its own delta.
	page              *page
	first, generation uint64
	off               int
	stamp             uint64
	// lost are records that were overwritten under the iterator; overrun is
	// the CPU's counter when it last looked.
	lost, overrun uint64
}

// Iterate returns an iterator that starts at the oldest record of a CPU, or of
// AllCPUs.
func (b *Buffer) Iterate(cpu int) *Iterator {
	it := &Iterator{b: b}
	for i, c := range b.cpus {
		if cpu == AllCPUs || cpu == i {
			it.cpus = append(it.cpus, c.cursor(i))
		}
	}
	return it
}

func (c *cpu) cursor(n int) cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cursor{cpu: n, overrun: c.overrun, generation: c.generation}
	if p := c.pageFrom(0); p != nil {
		k.next = p.first
	}
	return k
}

// Next returns the next record by time; of equal times the CPU with the smaller number comes first.
// Data is appended to buf[:0]. False means that there is no more now.
func (it *Iterator) Next(buf []byte) (Record, bool) {
	for {
		var best *cursor
		var bestTime uint64
		for i := range it.cpus {
			k := &it.cpus[i]
			t, ok := it.look(k, nil)
			if ok && (best == nil || t < bestTime) {
				best, bestTime = k, t
			}
		}
		if best == nil {
			return Record{}, false
		}
		if r, ok := it.take(best, buf); ok {
			return r, true
		}
	}
}

// look finds a cursor's next record under the CPU's lock, and calls do with it.
func (it *Iterator) look(k *cursor, do func(event)) (uint64, bool) {
	c := it.b.cpus[k.cpu]
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.find(k)
	if ok && do != nil {
		do(e)
	}
	return k.stamp + e.delta, ok
}

// take returns the record and moves on; false if the record has gone since look.
func (it *Iterator) take(k *cursor, buf []byte) (r Record, ok bool) {
	_, ok = it.look(k, func(e event) {
		r = Record{CPU: k.cpu, Time: k.stamp + e.delta, Data: append(buf[:0], e.data...), Lost: k.lost}
		k.off, k.stamp, k.lost = k.off+e.length, k.stamp+e.delta, 0
		k.next++
	})
	return r, ok
}

// find puts the cursor on the event of its next record.
func (c *cpu) find(k *cursor) (event, bool) {
	for {
		if !c.onPage(k) && !c.seek(k) {
			return event{}, false
		}
		e := k.page.event(k.off)
		if e.data != nil {
			return e, true
		}
		k.off, k.stamp = k.off+e.length, k.stamp+e.delta
	}
}

// onPage reports whether the cursor is before an unread event of its page.
func (c *cpu) onPage(k *cursor) bool {
	p := k.page
	return p != nil && k.generation == c.generation && p.first == k.first &&
		k.next-p.first < p.entries && k.next-p.first >= p.taken && k.off < p.commit()
}

// seek finds the cursor's next record anew. Records that have gone are passed:
// the overwritten ones count as lost, the others were consumed.
func (c *cpu) seek(k *cursor) bool {
	if k.generation != c.generation && k.next > c.written { // emptied
		k.next, k.lost = 0, 0
	}
	p := c.pageFrom(k.next)
	if p == nil {
		return false
	}
	if at := max(k.next, p.first+p.taken); at > k.next {
		k.lost += min(at-k.next, c.overrun-min(c.overrun, k.overrun))
		k.next = at
	}
	k.page, k.first, k.generation, k.overrun = p, p.first, c.generation, c.overrun
	k.off, k.stamp = 0, p.stamp()
	for n := p.first; n < k.next; {
		e := p.event(k.off)
		k.off, k.stamp = k.off+e.length, k.stamp+e.delta
		if e.data != nil {
			n++
		}
	}
	return true
}

// pageFrom returns the page with record number n, or with the first later unread record; nil if
// there is none.
func (c *cpu) pageFrom(n uint64) *page {
	if r := c.reader; r.taken < r.entries && n < r.first+r.entries {
		return r
	}
	for i := range c.used {
		if p := c.at(i); p.entries > 0 && n < p.first+p.entries {
			return p
		}
	}
	return nil
}
