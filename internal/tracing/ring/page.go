package ring

import "encoding/binary"

// A page of the buffer, as kernel/trace/ring_buffer.c has it and trace_pipe_raw
// hands it out:
//
//	0       8        16                                         4096
//	+-------+--------+------------------------------------------+
//	| time  | commit | events, each 4-byte aligned              |
//	+-------+--------+------------------------------------------+
//
// commit is the number of bytes of events. An event starts with a word of
// 5 bits type and 27 bits time since the event before it (since the page's
// time, for the first). Types 1..28 are records of that many words; 0 a record
// with its length in the next word; the rest carry no record.
const (
	// PageSize is the size of a page, header and all.
	PageSize = 4096
	// PageData is the number of bytes of events on a page (BUF_PAGE_SIZE).
	PageData = PageSize - pageHeader

	pageHeader = 16

	// MaxRecord is the size of the longest record: a page of events less the event's own two words
	// (BUF_MAX_DATA_SIZE).
	MaxRecord = PageData - 2*eventHeader
)

const (
	typePadding    = 29
	typeTimeExtend = 30

	eventHeader   = 4
	maxSmall      = 28 * 4 // RB_MAX_SMALL_DATA
	timeExtendLen = 8
	minEvent      = 8 // RB_EVNT_MIN_SIZE
	deltaBits     = 27
	maxDelta      = 1<<deltaBits - 1
)

// page is one page of a CPU's buffer.
type page struct {
	mem []byte // PageSize bytes
	// entries is the number of records on it, read ones included; first the number of its first
	// record among all that were written on the CPU.
	entries, first uint64
	// read is the number of its bytes that the consuming reader has taken, taken the number of
	// those records.
	read  int
	taken uint64
}

func (p *page) stamp() uint64     { return binary.NativeEndian.Uint64(p.mem) }
func (p *page) setStamp(t uint64) { binary.NativeEndian.PutUint64(p.mem, t) }
func (p *page) commit() int       { return int(binary.NativeEndian.Uint64(p.mem[8:])) }
func (p *page) setCommit(n int)   { binary.NativeEndian.PutUint64(p.mem[8:], uint64(n)) }

func (p *page) word(at int) uint32 { return binary.NativeEndian.Uint32(p.mem[pageHeader+at:]) }
func (p *page) setWord(at int, v uint32) {
	binary.NativeEndian.PutUint32(p.mem[pageHeader+at:], v)
}

// clear makes the page an empty one whose first record will be number first.
func (p *page) clear(first uint64) {
	p.entries, p.first, p.read, p.taken = 0, first, 0, 0
	p.setStamp(0)
	p.setCommit(0)
}

// eventLen is the length of a record's event: header, rounded up to words
// (rb_calculate_event_length). 12 becomes 16, because a discarded event of 12 bytes would look like
// a time extension and a padding.
func eventLen(n int) int {
	n = max(n, 1)
	if n > maxSmall {
		n += 4
	}
	n = (n + eventHeader + 3) &^ 3
	if n == timeExtendLen+4 {
		n += 4
	}
	return n
}

// put writes the event at the page's end; length includes the time extension,
// which is there where delta needs one.
func (p *page) put(length int, delta uint64, data []byte) {
	at := p.commit()
	p.setCommit(at + length)
	if delta > maxDelta {
		p.setWord(at, typeTimeExtend|uint32(delta&maxDelta)<<5)
		p.setWord(at+4, uint32(delta>>deltaBits))
		at, length, delta = at+timeExtendLen, length-timeExtendLen, 0
	}
	body := length - eventHeader
	if body > maxSmall {
		p.setWord(at, uint32(delta)<<5)
		p.setWord(at+4, uint32(body))
		at += 4
		body -= 4
	} else {
		p.setWord(at, uint32(body/4)|uint32(delta)<<5)
	}
	to := p.mem[pageHeader+at+eventHeader:][:body]
	clear(to[copy(to, data):])
	p.entries++
}

// pad fills the rest of the page, as the event that did not fit leaves it, and
// says by how many bytes that extends it. Where less than an event's minimum
// is left, only a mark is written and the page ends where it did.
func (p *page) pad() int {
	at := p.commit()
	switch left := PageData - at; {
	case left == 0:
		return 0
	case left < minEvent:
		p.setWord(at, typePadding)
		return 0
	default:
		p.setWord(at, typePadding|1<<5)
		p.setWord(at+4, uint32(left-eventHeader))
		p.setCommit(PageData)
		return left
	}
}

// event is one event on a page, decoded.
type event struct {
	length int // in bytes, header and all
	delta  uint64
	data   []byte // nil where it is no record
}

func (p *page) event(at int) event {
	head := p.word(at)
	e := event{delta: uint64(head >> 5)}
	switch kind := head & 31; kind {
	case 0:
		n := int(p.word(at + 4))
		e.length = n + eventHeader
		e.data = p.mem[pageHeader+at+8:][: n-4 : n-4]
	case typePadding:
		e.length, e.delta = int(p.word(at+4))+eventHeader, 0
	case typeTimeExtend:
		e.length, e.delta = timeExtendLen, e.delta|uint64(p.word(at+4))<<deltaBits
	default:
		n := int(kind) * 4
		e.length = n + eventHeader
		e.data = p.mem[pageHeader+at+4:][:n:n]
	}
	return e
}
