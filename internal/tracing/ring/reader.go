package ring

// Record is a record as a reader gets it.
type Record struct {
	// CPU wrote it.
	CPU int
	// Time in nanoseconds.
	Time uint64
	// Data is the record, filled up with zeros to a multiple of 4 bytes: the
	// buffer does not keep the length in bytes.
	Data []byte
	// Lost is the number of records of that CPU that were overwritten between the record that was
	// read last and this one: "[LOST n EVENTS]".
	Lost uint64
}

// AllCPUs selects the records of all CPUs, merged by time.
const AllCPUs = -1

// Consume takes the oldest record off the buffer of one CPU or, with AllCPUs, off the buffer with
// the oldest of all; of equal times the CPU with the smaller number comes first. Data is appended
// to buf[:0]. False means that there is none now.
func (b *Buffer) Consume(cpu int, buf []byte) (Record, bool) {
	return b.next(cpu, buf, true)
}

// Peek is Consume but leaves the record where it is: the next Consume returns
// it, with its Lost.
func (b *Buffer) Peek(cpu int, buf []byte) (Record, bool) {
	return b.next(cpu, buf, false)
}

func (b *Buffer) next(cpu int, buf []byte, take bool) (Record, bool) {
	if cpu == AllCPUs {
		if cpu = b.oldest(); cpu < 0 {
			return Record{}, false
		}
	}
	c := b.cpus[cpu]
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.peek()
	if !ok {
		return Record{}, false
	}
	r := Record{CPU: cpu, Time: c.readStamp + e.delta, Data: append(buf[:0], e.data...), Lost: c.lost}
	if take {
		c.lost = 0
		c.advance(e)
	}
	return r, true
}

// oldest is the CPU whose next record is the oldest, -1 where none has one.
func (b *Buffer) oldest() int {
	best, bestTime := -1, uint64(0)
	for i, c := range b.cpus {
		c.mu.Lock()
		e, ok := c.peek()
		t := c.readStamp + e.delta
		c.mu.Unlock()
		if ok && (best < 0 || t < bestTime) {
			best, bestTime = i, t
		}
	}
	return best
}

// peek is the next record, which stays; events that carry none are passed.
func (c *cpu) peek() (event, bool) {
	for c.turn() {
		e := c.reader.event(c.reader.read)
		if e.data != nil {
			return e, true
		}
		c.advance(e)
	}
	return event{}, false
}

func (c *cpu) advance(e event) {
	if e.data != nil {
		c.read++
		c.reader.taken++
	}
	c.readStamp += e.delta
	c.reader.read += e.length
	c.readBytes += int64(e.length)
}

// turn gives the reader a page with something to read, if there is one
// (rb_get_reader_page): the emptied page takes the place of the oldest page,
// which becomes the reader's.
func (c *cpu) turn() bool {
	for c.reader.read >= c.reader.commit() {
		if c.used == 0 || c.entries() == 0 {
			return false
		}
		c.reader.clear(0)
		c.reader, c.pages[c.head] = c.pages[c.head], c.reader
		c.head = (c.head + 1) % len(c.pages)
		c.used--
		if c.overrun != c.seenOverrun {
			c.lost, c.seenOverrun = c.overrun-c.seenOverrun, c.overrun
		}
	}
	if c.reader.read == 0 {
		c.readStamp = c.reader.stamp()
	}
	return true
}
