package interp

import (
	"encoding/binary"

	"kprobelab/machine"
	"kprobelab/x86"
)

// A small table finds the memory of pages that were used last. A page that a
// write has to do more for is not in the table for writes: text, a page that a
// snapshot has not saved, every page while changes are logged. A page with a byte that is
// watched is in neither.
const tlbSize = 512

type tlbEntry struct {
	number uint64 // of the page
	p      *page
}

type tlb [tlbSize]tlbEntry

func (t *tlb) flush() {
	for i := range t {
		t[i] = tlbEntry{number: ^uint64(0)}
	}
}

// flushTLB is needed whenever attributes of a page go.
func (e *engine) flushTLB() {
	e.reads.flush()
	e.writes.flush()
	if e.b != nil {
		e.b.flush()
	}
}

// read reads size bytes, 1, 2, 4 or 8.
func (c *cpu) read(a uint64, size uint8) (uint64, bool) {
	t := &c.reads[a/pageSize%tlbSize]
	off := a % pageSize
	if t.number == a/pageSize && off <= pageSize-8 {
		b := t.p[off : off+8]
		switch size {
		case 8:
			return binary.LittleEndian.Uint64(b), true
		case 4:
			return uint64(binary.LittleEndian.Uint32(b)), true
		case 2:
			return uint64(binary.LittleEndian.Uint16(b)), true
		}
		return uint64(b[0]), true
	}
	return c.readSlow(a, size)
}

func (c *cpu) readSlow(a uint64, size uint8) (uint64, bool) {
	var b [8]byte
	if !c.readBytes(a, b[:size]) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// hidden reports whether an address is not there for the mode that the CPU is in.
func (c *cpu) hidden(a uint64) bool { return c.user && a >= uint64(x86.UserEnd) }

// fast reports whether a page may be in the table of the pages used last, which both modes look into.
func (c *cpu) fast(a uint64) bool { return a < uint64(x86.UserEnd) || !c.e.opt.UserMode }

// readBytes reads all of b or none.
func (c *cpu) readBytes(a uint64, b []byte) bool {
	if c.e.b != nil {
		return c.readBooted(a, b)
	}
	if c.e.watch.data {
		c.e.access(a, len(b), machine.WatchRead)
	}
	for len(b) > 0 {
		p := c.e.page(x86.Addr(a), attrR)
		if p == nil || c.hidden(a) {
			return c.miss(a, machine.AccessRead)
		}
		if c.fast(a) && !c.e.watch.watched(a/pageSize) {
			c.e.reads[a/pageSize%tlbSize] = tlbEntry{a / pageSize, p}
		}
		n := copy(b, p[a%pageSize:])
		a, b = a+uint64(n), b[n:]
	}
	return true
}

// write writes size bytes, all or none.
func (c *cpu) write(a uint64, size uint8, v uint64) bool {
	t := &c.writes[a/pageSize%tlbSize]
	off := a % pageSize
	if t.number == a/pageSize && off <= pageSize-8 {
		b := t.p[off : off+8]
		switch size {
		case 8:
			binary.LittleEndian.PutUint64(b, v)
		case 4:
			binary.LittleEndian.PutUint32(b, uint32(v))
		case 2:
			binary.LittleEndian.PutUint16(b, uint16(v))
		default:
			b[0] = byte(v)
		}
		return true
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return c.writeBytes(a, b[:size])
}

func (c *cpu) writeBytes(a uint64, b []byte) bool {
	if !c.writable(a, len(b)) {
		return false
	}
	e := c.e
	if e.b != nil {
		c.writeBooted(a, b)
		return true
	}
	if e.watch.data {
		e.access(a, len(b), machine.WatchWrite)
	}
	e.Touch(x86.Addr(a), len(b))
	e.copyIn(x86.Addr(a), b)
	for n := a / pageSize; n <= (a+uint64(len(b))-1)/pageSize; n++ {
		r := e.region(x86.Addr(n * pageSize))
		i := n - uint64(r.Start)/pageSize
		if at := r.attr[i]; at&attrX == 0 && c.fast(a) && !e.watch.watched(n) && (!e.track || at&attrDirty != 0) {
			e.writes[n%tlbSize] = tlbEntry{n, r.at(i)}
		}
	}
	return true
}

// writable reports whether a write would succeed. Of text it drops the blocks;
// where that is the block that runs, the instruction has to begin anew, alone.
func (c *cpu) writable(a uint64, n int) bool {
	e := c.e
	if e.b != nil {
		return c.writableBooted(a, n)
	}
	text := false
	for at := a; ; {
		r := e.region(x86.Addr(at))
		if r == nil || c.hidden(at) || r.attr[(at-uint64(r.Start))/pageSize]&attrW == 0 {
			return c.miss(at, machine.AccessWrite)
		}
		text = text || r.attr[(at-uint64(r.Start))/pageSize]&attrX != 0
		at = at&^(pageSize-1) + pageSize
		if at-a >= uint64(n) {
			break
		}
	}
	if text {
		c.blocks.drop(a, a+uint64(n))
		if b := c.running; b != nil && b.dead && len(b.ops) > 1 {
			c.event = event{kind: eventRestart}
			return false
		}
	}
	return true
}
