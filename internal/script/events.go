package script

import "encoding/binary"

// maxEvents and maxEventText bound what waits for the end of a handler.
const (
	maxEvents    = 1 << 14
	maxEventText = 1 << 22
)

// Later calls do after the handler, in its place in the output. It is for the work that the reader of a
// language's events does when it gets them. If too many calls wait, they are made at once, as by a
// quick reader.
func (t *Thread) Later(do func()) {
	if len(t.events) >= maxEvents || t.waiting > maxEventText {
		t.catchUp()
	}
	t.events = append(t.events, do)
}

// catchUp does what waits.
func (t *Thread) catchUp() {
	list := t.events
	t.events, t.waiting = nil, 0
	for _, do := range list {
		do()
	}
	clear(list)
	if t.events == nil {
		t.events = list[:0]
	}
}

// Put makes an element of an array whose one key is a number.
func (t *Thread) Put(a *Array, key int64) {
	t.tables[a.index].put(binary.LittleEndian.AppendUint64(nil, uint64(key)))
}
