package script

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// table is an array's content. All of its memory is allocated at the beginning. A key is its
// parts one after the other, integers as 8 bytes, strings as 2 bytes of length and their own.
type table struct {
	of    *Array
	text  int // room of a string
	room  int // of a key
	keys  []byte
	ints  []int64
	texts []byte
	lens  []uint16 // of texts
	stats []stat
	nodes []node
	// heads are the first entry of each chain, plus 1.
	heads []int32
	// first and last are the ends of the list of entries, the oldest first. free is the first unused entry.
	first, last, free int32
	n                 int
	// order is for loops in sorted order, one inside another.
	order []int32
}

type node struct {
	key               uint16 // length
	chain, next, prev int32
	hash              uint32
	live              bool
}

const nobody int32 = -1

var seed = maphash.MakeSeed()

// tableSize returns the memory of an array's table, in bytes.
func tableSize(a *Array, l *Limits) int {
	entry := keyRoom(a, l) + 64
	switch a.Value {
	case String:
		entry += l.StringSize
	case Stat:
		entry += 96 + 8*a.Histogram.Buckets()
	}
	return entry * entries(a, l)
}

func entries(a *Array, l *Limits) int {
	if a.Max > 0 {
		return a.Max
	}
	return l.Entries
}

func keyRoom(a *Array, l *Limits) int {
	n := 0
	for _, k := range a.Keys {
		if k == String {
			n += 2 + l.StringSize - 1
		} else {
			n += 8
		}
	}
	return n
}

func newTable(a *Array, l *Limits) *table {
	size := entries(a, l)
	t := &table{of: a, text: l.StringSize, room: keyRoom(a, l), nodes: make([]node, size)}
	t.keys = make([]byte, t.room*size)
	switch a.Value {
	case Int:
		t.ints = make([]int64, size)
	case String:
		t.texts, t.lens = make([]byte, t.text*size), make([]uint16, size)
	case Stat:
		t.stats = make([]stat, size)
		if n := a.Histogram.Buckets(); n > 0 {
			all := make([]int64, n*size)
			for i := range t.stats {
				t.stats[i].buckets = all[i*n : (i+1)*n : (i+1)*n]
			}
		}
	}
	chains := 1
	for chains < 2*size {
		chains *= 2
	}
	t.heads = make([]int32, chains)
	t.order = make([]int32, 0, size)
	t.clear()
	return t
}

// clear removes all entries.
func (t *table) clear() {
	clear(t.heads)
	t.n, t.first, t.last, t.free = 0, nobody, nobody, 0
	for i := range t.nodes {
		t.nodes[i].next, t.nodes[i].live = int32(i)+1, false
	}
	t.nodes[len(t.nodes)-1].next = nobody
}

func (t *table) key(i int32) []byte {
	at := int(i) * t.room
	return t.keys[at : at+int(t.nodes[i].key)]
}

func (t *table) find(key []byte) int32 {
	h := uint32(maphash.Bytes(seed, key))
	for i := t.heads[int(h)&(len(t.heads)-1)] - 1; i != nobody; i = t.nodes[i].chain {
		if n := &t.nodes[i]; n.hash == h && bytes.Equal(t.key(i), key) {
			return i
		}
	}
	return nobody
}

// put returns the entry of a key, and makes it if there is none. It returns nobody if there is no room.
func (t *table) put(key []byte) int32 {
	if i := t.find(key); i != nobody {
		return i
	}
	if t.free == nobody {
		if !t.of.Wrap {
			return nobody
		}
		t.remove(t.first)
	}
	i := t.free
	n := &t.nodes[i]
	t.free = n.next
	n.hash = uint32(maphash.Bytes(seed, key))
	n.key = uint16(copy(t.keys[int(i)*t.room:(int(i)+1)*t.room], key))
	head := &t.heads[int(n.hash)&(len(t.heads)-1)]
	n.chain = *head - 1
	*head = i + 1
	n.prev, n.next, n.live = t.last, nobody, true
	if t.last != nobody {
		t.nodes[t.last].next = i
	} else {
		t.first = i
	}
	t.last = i
	t.n++
	switch t.of.Value {
	case Int:
		t.ints[i] = 0
	case String:
		t.lens[i] = 0
	case Stat:
		t.stats[i].reset()
	}
	return i
}

func (t *table) remove(i int32) {
	n := &t.nodes[i]
	head := &t.heads[int(n.hash)&(len(t.heads)-1)]
	if *head == i+1 {
		*head = n.chain + 1
	} else {
		at := *head - 1
		for t.nodes[at].chain != i {
			at = t.nodes[at].chain
		}
		t.nodes[at].chain = n.chain
	}
	if n.prev != nobody {
		t.nodes[n.prev].next = n.next
	} else {
		t.first = n.next
	}
	if n.next != nobody {
		t.nodes[n.next].prev = n.prev
	} else {
		t.last = n.prev
	}
	n.next, n.live, t.free = t.free, false, i
	t.n--
}

func (t *table) value(i int32) []byte {
	at := int(i) * t.text
	return t.texts[at : at+int(t.lens[i])]
}

func (t *table) setText(i int32, s []byte) {
	at := int(i) * t.text
	t.lens[i] = uint16(copy(t.texts[at:at+t.text-1], s))
}

// part returns part number n of a key, which begins at at, and the beginning of the next part. An integer's
// part is its 8 bytes.
func (t *table) part(key []byte, n, at int) (part []byte, next int) {
	if t.of.Keys[n] == String {
		size := int(binary.LittleEndian.Uint16(key[at:]))
		return key[at+2 : at+2+size], at + 2 + size
	}
	return key[at : at+8], at + 8
}

// nth returns part number n of an entry's key, from 0 on.
func (t *table) nth(i int32, n int) []byte {
	key, at := t.key(i), 0
	for k := range n {
		_, at = t.part(key, k, at)
	}
	part, _ := t.part(key, n, at)
	return part
}

// matches reports whether an entry's key has the parts of key. A part whose anyPart is true matches any value;
// key leaves it out.
func (t *table) matches(i int32, key []byte, anyPart []bool) bool {
	mine, at, theirs := t.key(i), 0, 0
	for n := range t.of.Keys {
		var a, b []byte
		a, at = t.part(mine, n, at)
		if anyPart[n] {
			continue
		}
		b, theirs = t.part(key, n, theirs)
		if !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}

// Unpack returns value number n of a tuple, in the result of its type.
func Unpack(b []byte, layout []Type, n int) (number int64, text []byte) {
	for i, typ := range layout {
		if typ != String {
			if len(b) < 8 {
				return 0, nil
			}
			if i == n {
				return int64(binary.LittleEndian.Uint64(b)), nil
			}
			b = b[8:]
			continue
		}
		if len(b) < 2 {
			return 0, nil
		}
		end := min(2+int(binary.LittleEndian.Uint16(b)), len(b))
		if i == n {
			return 0, b[2:end]
		}
		b = b[end:]
	}
	return 0, nil
}

func number(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// compare returns the order of two entries by part number by of their keys, from 1 on, or by their value if by is 0.
func (t *table) compare(a, b int32, by int, what Extractor) int {
	if by > 0 {
		x, y := t.nth(a, by-1), t.nth(b, by-1)
		if t.of.Keys[by-1] == String {
			return bytes.Compare(x, y)
		}
		return order(number(x), number(y))
	}
	switch t.of.Value {
	case String:
		return bytes.Compare(t.value(a), t.value(b))
	case Stat:
		x, _ := t.stats[a].extract(what)
		y, _ := t.stats[b].extract(what)
		return order(x, y)
	}
	return order(t.ints[a], t.ints[b])
}

func order(x, y int64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// maxFew is the number of wanted entries up to which list looks for the first ones and does not sort the whole array.
const maxFew = 30

// list appends the entries to order, and returns the index of the first. If by is not negative, it sorts them, or at
// least the first ones if only some are wanted. As in stap, an array keeps the sorted order afterwards. An array of
// aggregates does not, because stap collects it anew for each loop.
func (t *table) list(by int, what Extractor, descending bool, wanted int64) int {
	from := len(t.order)
	for i := t.first; i != nobody; i = t.nodes[i].next {
		t.order = append(t.order, i)
	}
	if by < 0 {
		return from
	}
	list := t.order[from:]
	compare := func(a, b int32) int {
		c := t.compare(a, b, by, what)
		if descending {
			return -c
		}
		return c
	}
	if wanted > 0 && wanted <= maxFew && int(wanted) < len(list) {
		firstFew(list, int(wanted), compare)
	} else {
		slices.SortStableFunc(list, compare)
	}
	if t.of.Value != Stat {
		t.arrange(list)
	}
	return from
}

// firstFew moves the first n entries in sort order to the front of a list. An entry that loses its place follows them.
func firstFew(list []int32, n int, compare func(a, b int32) int) {
	slices.SortStableFunc(list[:n], compare)
	for i := n; i < len(list); i++ {
		at := n
		for at > 0 && compare(list[at-1], list[i]) > 0 {
			at--
		}
		if at < n {
			one := list[i]
			copy(list[at+1:i+1], list[at:i])
			list[at] = one
		}
	}
}

// arrange links the entries in the order of list, which has all of them.
func (t *table) arrange(list []int32) {
	t.first, t.last = nobody, nobody
	for _, i := range list {
		n := &t.nodes[i]
		if n.prev, n.next = t.last, nobody; t.last == nobody {
			t.first = i
		} else {
			t.nodes[t.last].next = i
		}
		t.last = i
	}
}

// extract returns a number of an aggregate. An empty aggregate has only a count and a sum.
func (s *stat) extract(what Extractor) (v int64, ok bool) {
	switch what {
	case Count:
		return s.count, true
	case Sum:
		return s.sum, true
	}
	if s.count == 0 {
		return 0, false
	}
	switch what {
	case Min:
		return s.min, true
	case Max:
		return s.max, true
	case Avg:
		return s.sum / s.count, true
	}
	if s.count < 2 {
		return 0, true
	}
	// stap adds up the aggregates of several CPUs, whose means differ from the mean of all. It does so for one CPU, too.
	off := s.mean - (s.sum<<s.shift)/s.count
	return (s.count*off*off + (s.count-1)*s.variance) / (s.count - 1) >> (2 * s.shift), true
}
