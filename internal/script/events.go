package script

import (
	"encoding/binary"

	"kprobelab/internal/bounded"
)

// Later calls do after the handler, in its place in the output. It is for the work that the reader of a
// language's events does when it gets them. If too many calls wait, they are made at once, as by a
// quick reader.
func (t *Thread) Later(do func()) {
	if len(t.events) >= bounded.ScriptEvents || t.waiting > bounded.ScriptEventText {
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
