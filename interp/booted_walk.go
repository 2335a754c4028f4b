package interp

import (
	"errors"
	"unsafe"

	"kprobelab/internal/board"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// The page tables of a booted kernel, walked as the processor does (SDM Vol. 3A, 4.5 "4-Level Paging
// and 5-Level Paging").

// attrU: user mode may use the page. Only a walk knows it.
const attrU = 1 << 4

// Bits of an entry.
const (
	entryPresent  = 1 << 0
	entryWrite    = 1 << 1
	entryUser     = 1 << 2
	entryAccessed = 1 << 5
	entryDirty    = 1 << 6
	entryLarge    = 1 << 7
	entryNoExec   = 1 << 63
	entryFrame    = 0xffffffffff000
)

// found is the result of a walk.
type found uint8

const (
	foundPage found = iota
	foundDevice
	foundAbsent
	foundForbidden
	foundFiltered // the dump has not the page
	foundNothing  // no memory and no device is there
)

// place is a page of physical memory; r is nil for a device.
type place struct {
	r    *region
	i    uint64
	pa   uint64 // the address itself
	perm byte
}

func (p *place) page() *page { return p.r.at(p.i) }

// layMemory makes the ranges of the dump's memory. A page is copied from the dump when it is first used.
func (b *booted) layMemory() {
	for _, r := range b.core.RAM() {
		n := r.Size / pageSize
		to := &region{
			Range: x86.Range{Start: x86.Addr(r.Phys), End: x86.Addr(r.Phys + n*pageSize)},
			pages: make([]*page, n), attr: make([]byte, n),
		}
		to.fill = func(i uint64, p *page) { b.fill(r.Phys+i*pageSize, p) }
		for i := range to.attr {
			if b.core.Present(r.Phys+uint64(i)*pageSize) == nil {
				to.attr[i] = attrR | attrW | attrX
			}
		}
		b.ram = append(b.ram, to)
	}
}

// fill reads a page of the dump. An error ends the run: the file has changed, or its disk fails.
func (b *booted) fill(phys uint64, p *page) {
	var filtered *vmcore.FilteredError
	if err := b.core.ReadPhys(phys, p[:]); err != nil && !errors.As(err, &filtered) {
		b.fail(err)
	}
}

// physical is the memory at a physical address, false if there is none.
func (b *booted) physical(pa uint64) (p place, ok bool) {
	for _, r := range b.ram {
		if r.Contains(x86.Addr(pa)) {
			i := (pa - uint64(r.Start)) / pageSize
			return place{r: r, i: i, pa: pa, perm: r.attr[i] & (attrR | attrW | attrX)}, true
		}
	}
	return place{pa: pa}, false
}

// word is the aligned word at the place.
func (p *place) word() *uint64 { return (*uint64)(unsafe.Pointer(&p.page()[p.pa%pageSize&^7])) }

// setBits sets bits of an entry.
func (b *booted) setBits(t *place, entry *uint64, bits uint64) {
	if *entry&bits == bits {
		return
	}
	if b.e.track {
		b.e.save(t.r, t.i)
	}
	*entry |= bits
}

// walk finds the page of an address that gives all of need; granted is given by no table's leave. With mark it sets
// the entries' accessed and dirty bits, as for the processor's own access.
func (b *booted) walk(cr3, va uint64, need, granted byte, mark bool) (place, found) {
	table := cr3 & entryFrame
	perm := byte(attrR | attrW | attrX | attrU)
	for shift := 9*b.levels + 3; ; shift -= 9 {
		t, ok := b.physical(table + va>>shift&511*8)
		switch {
		case !ok:
			return t, foundNothing
		case t.perm&attrR == 0:
			return t, foundFiltered
		}
		entry := t.word()
		e := *entry
		if e&entryPresent == 0 {
			return t, foundAbsent
		}
		perm &= permitted(e)
		if shift != 12 && (shift > 30 || e&entryLarge == 0) {
			if mark {
				b.setBits(&t, entry, entryAccessed)
			}
			table = e & entryFrame
			continue
		}
		if need&^(perm|granted) != 0 {
			return t, foundForbidden
		}
		if mark {
			bits := uint64(entryAccessed)
			if need&attrW != 0 {
				bits |= entryDirty
			}
			b.setBits(&t, entry, bits)
			b.noteLarge(va, shift)
		}
		low := uint64(1)<<shift - 1
		return b.leaf(e&entryFrame&^low|va&low, perm)
	}
}

// permitted are the attributes that an entry leaves.
func permitted(e uint64) byte {
	perm := byte(attrR)
	if e&entryWrite != 0 {
		perm |= attrW
	}
	if e&entryUser != 0 {
		perm |= attrU
	}
	if e&entryNoExec == 0 {
		perm |= attrX
	}
	return perm
}

// leaf is the end of a walk.
func (b *booted) leaf(pa uint64, perm byte) (place, found) {
	p, ok := b.physical(pa)
	switch {
	case !ok && pa-board.Devices < board.DevicesEnd-board.Devices:
		return p, foundDevice
	case !ok:
		return p, foundNothing
	case p.perm&attrR == 0:
		return p, foundFiltered
	}
	p.perm = perm
	return p, foundPage
}

// page is the memory of the page that a CPU's kernel has at an address, nil where it is not mapped with all attributes
// of need.
func (b *booted) page(c *cpu, va uint64, need byte) *page {
	if p, what := b.walk(c.sys.cr[3], va, need, 0, false); what == foundPage {
		return p.page()
	}
	return nil
}

// absent is the reason why the host finds no page at an address, if it is the dump's.
func (e *engine) absent(addr x86.Addr, need byte) error {
	if e.b == nil || e.region(addr) != nil {
		return nil
	}
	if p, what := e.b.walk(e.b.cur.sys.cr[3], uint64(addr), need, 0, false); what == foundFiltered {
		return e.b.core.Present(p.pa)
	}
	return nil
}

// touch saves the page of an address for a snapshot.
func (b *booted) touch(a x86.Addr) {
	if p, what := b.walk(b.cur.sys.cr[3], uint64(a), 0, 0, false); what == foundPage {
		b.e.save(p.r, p.i)
	}
}

// restore puts a saved page back, and drops the blocks of its code.
func (b *booted) restore(u *saved) {
	p := u.r.at(u.i)
	if *p == *u.old {
		return
	}
	*p = *u.old
	b.dropPage(p, 0, pageSize)
}

// canonical: the bits above the highest that is translated equal it.
func (e *engine) canonical(a uint64) bool {
	if e.b == nil || e.b.levels == 4 {
		return canonical(a)
	}
	return uint64(int64(a)<<7>>7) == a
}

// fail ends the run with an error.
func (b *booted) fail(err error) {
	if b.err == nil {
		b.err = err
	}
	b.cur.reason = reasonEngine
	b.e.StopAt.Store(0)
}

// noPage is memory that the dump has not.
func (b *booted) noPage(phys uint64) error {
	if err := b.core.Present(phys); err != nil {
		return err
	}
	return errNoMemoryAt(phys)
}
