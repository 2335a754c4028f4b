package ring

import "encoding/binary"

// Marks in the commit field of a page that ReadPage filled: records were lost
// before it (RB_MISSED_EVENTS), and their number follows its events
// (RB_MISSED_STORED).
const (
	missedEvents = 1 << 31
	missedStored = 1 << 30
)

// ReadPage takes the readable part of one page off a CPU's buffer, and writes it to dst as a page
// of PageSize bytes, with zeros after the events (ring_buffer_read_page, the file trace_pipe_raw).
// False means that there is nothing to read now.
func (b *Buffer) ReadPage(cpu int, dst *[PageSize]byte) bool {
	c := b.cpus[cpu]
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.peek(); !ok {
		return false
	}
	from := c.reader.read
	n := copy(dst[pageHeader:], c.reader.mem[pageHeader+from:pageHeader+c.reader.commit()])
	// The first event's delta counts from the last one that was read.
	binary.NativeEndian.PutUint64(dst[:], c.readStamp)
	commit := uint64(n)
	for c.reader.read < from+n {
		c.advance(c.reader.event(c.reader.read))
	}
	if c.lost > 0 {
		commit |= missedEvents
		if PageData-n >= 8 {
			binary.NativeEndian.PutUint64(dst[pageHeader+n:], c.lost)
			commit |= missedStored
			n += 8
		}
		c.lost = 0
	}
	clear(dst[pageHeader+n:])
	binary.NativeEndian.PutUint64(dst[8:], commit)
	return true
}
