package kprobes

import (
	"kprobelab/x86"
)

// table holds the registered probes, at most one entry per address: the user's
// own object, or an aggregator. The buckets are the kernel's and give the order
// of the file list. A hit looks its address up in the index, which costs the
// same for any number of probes.
type table struct {
	buckets [1 << hashBits]*Kprobe
	// mult is the multiplier of the kernel's hash_64.
	mult  uint64
	index addrIndex
}

// hashBits is KPROBE_HASH_BITS.
const hashBits = 6

// golden64 is GOLDEN_RATIO_64, with which the index hashes.
const golden64 = 0x61C8864680B583EB

func (t *table) bucketOf(a x86.Addr) int { return int(uint64(a) * t.mult >> (64 - hashBits)) }

// lookup is get_kprobe.
func (t *table) lookup(a x86.Addr) *Kprobe { return t.index.get(a) }

// insert puts a probe at the head of its bucket.
func (t *table) insert(p *Kprobe) {
	head := &t.buckets[t.bucketOf(p.Addr)]
	p.prev, p.next = nil, *head
	if *head != nil {
		(*head).prev = p
	}
	*head = p
	t.index.set(p.Addr, p)
}

// replace gives old's place in its bucket to p.
func (t *table) replace(old, p *Kprobe) {
	p.prev, p.next = old.prev, old.next
	t.relink(p.Addr, p.prev, p, p.next)
	old.prev, old.next = nil, nil
	t.index.set(p.Addr, p)
}

// remove takes a probe out.
func (t *table) remove(p *Kprobe) {
	if p.next != nil {
		p.next.prev = p.prev
	}
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		t.buckets[t.bucketOf(p.Addr)] = p.next
	}
	p.prev, p.next = nil, nil
	t.index.del(p.Addr)
}

func (t *table) relink(a x86.Addr, prev, p, next *Kprobe) {
	if next != nil {
		next.prev = p
	}
	if prev != nil {
		prev.next = p
	} else {
		t.buckets[t.bucketOf(a)] = p
	}
}

// each calls fn for every entry of a caller's, bucket by bucket, newest first.
// fn may remove the entry it is given.
func (t *table) each(fn func(*Kprobe)) {
	for _, p := range t.buckets {
		for p != nil {
			next := p.next
			if !p.internal {
				fn(p)
			}
			p = next
		}
	}
}

// all calls fn for every entry.
func (t *table) all(fn func(*Kprobe)) {
	if t.index.n == 0 {
		return
	}
	for _, p := range t.buckets {
		for ; p != nil; p = p.next {
			fn(p)
		}
	}
}

// addrIndex is an open-addressed hash of addresses with linear probing. A Go
// map would do the same job in three times the time on the hit path.
type addrIndex struct {
	slots []indexSlot // a power of two, at most half full
	n     int
	shift uint // 64 - log2(len(slots))
}

// indexSlot is free where addr is 0, which no probe can have.
type indexSlot struct {
	addr x86.Addr
	p    *Kprobe
}

func (x *addrIndex) home(a x86.Addr) int { return int(uint64(a) * golden64 >> x.shift) }

func (x *addrIndex) get(a x86.Addr) *Kprobe {
	if x.n == 0 {
		return nil
	}
	mask := len(x.slots) - 1
	for i := x.home(a); ; i = (i + 1) & mask {
		s := &x.slots[i&mask]
		if s.addr == a {
			return s.p
		}
		if s.addr == 0 {
			return nil
		}
	}
}

func (x *addrIndex) set(a x86.Addr, p *Kprobe) {
	if 2*(x.n+1) > len(x.slots) {
		x.grow()
	}
	mask := len(x.slots) - 1
	i := x.home(a)
	for x.slots[i].addr != 0 && x.slots[i].addr != a {
		i = (i + 1) & mask
	}
	if x.slots[i].addr == 0 {
		x.n++
	}
	x.slots[i] = indexSlot{a, p}
}

func (x *addrIndex) grow() {
	old := x.slots
	x.slots = make([]indexSlot, max(16, 2*len(old)))
	x.shift = 64
	for n := len(x.slots); n > 1; n >>= 1 {
		x.shift--
	}
	x.n = 0
	for _, s := range old {
		if s.addr != 0 {
			x.set(s.addr, s.p)
		}
	}
}

// del removes an address and moves later entries back, so that no tombstones
// slow searches down.
func (x *addrIndex) del(a x86.Addr) {
	if x.n == 0 {
		return
	}
	mask := len(x.slots) - 1
	i := x.home(a)
	for x.slots[i].addr != a {
		if x.slots[i].addr == 0 {
			return
		}
		i = (i + 1) & mask
	}
	x.n--
	for j := i; ; {
		j = (j + 1) & mask
		s := x.slots[j]
		if s.addr == 0 {
			break
		}
		// s may fill the hole unless its home is past the hole.
		if (j-x.home(s.addr))&mask >= (j-i)&mask {
			x.slots[i] = s
			i = j
		}
	}
	x.slots[i] = indexSlot{}
}
