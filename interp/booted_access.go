package interp

import (
	"encoding/binary"

	"kprobelab/machine"
	"kprobelab/x86"
)

// space has the pages that were used last in a mode. fetches has pages of code.
type space struct {
	reads, writes, fetches tlb
	used                   bool
}

// The modes that see memory differently: kernel and user; and the kernel where it may not access memory of
// user mode (SMAP, without the flag AC).
const (
	modeKernel = iota
	modeUser
	modeGuarded
	modes
)

const (
	cr0WP   = 1 << 16
	cr4SMEP = 1 << 20
	cr4SMAP = 1 << 21
)

// changeMode follows a change of privilege, of the flag AC or of CR4.
func (c *cpu) changeMode() {
	switch {
	case c.user:
		c.mode = modeUser
	case c.sys.cr[4]&cr4SMAP != 0 && c.flags&flagAC == 0:
		c.mode = modeGuarded
	default:
		c.mode = modeKernel
	}
	b := c.e.b
	c.reads, c.writes = &b.spaces[c.mode].reads, &b.spaces[c.mode].writes
	c.view = b.epoch<<2 | uint64(c.mode)
}

// flush forgets all pages that were used last.
func (b *booted) flush() {
	for i := range b.spaces {
		if s := &b.spaces[i]; s.used {
			s.reads.flush()
			s.writes.flush()
			s.fetches.flush()
			s.used = false
		}
	}
	b.large = x86.Range{}
	b.epoch++
	if b.cur != nil {
		b.cur.changeMode()
	}
}

// flushPage forgets one page; all of them, if it may be a part of a larger one.
func (b *booted) flushPage(va uint64) {
	if b.large.Contains(x86.Addr(va)) {
		b.flush()
		return
	}
	for i := range b.spaces {
		s := &b.spaces[i]
		for _, t := range []*tlb{&s.reads, &s.writes, &s.fetches} {
			if e := &t[va/pageSize%tlbSize]; e.number == va/pageSize {
				*e = tlbEntry{number: ^uint64(0)}
			}
		}
	}
	b.epoch++
	b.cur.changeMode()
}

// noteLarge notes the addresses of a large page.
func (b *booted) noteLarge(va uint64, shift int) {
	if shift == 12 {
		return
	}
	start := x86.Addr(va &^ (1<<shift - 1))
	end := start + 1<<shift - 1
	if b.large.End == 0 {
		b.large = x86.Range{Start: start, End: end}
	}
	b.large.Start, b.large.End = min(b.large.Start, start), max(b.large.End, end)
}

// reach finds the page of an address for an access of the running program's. It returns the page as the program
// sees it, nil for a device at pa; r and i are its place. On failure the event is set.
func (c *cpu) reach(a uint64, need byte) (p place, ok bool) {
	e := c.e
	if r := e.region(x86.Addr(a)); r != nil {
		i := (a - uint64(r.Start)) / pageSize
		if r.attr[i]&need == need {
			return place{r: r, i: i}, true
		}
		return place{}, c.missed(a, need, foundAbsent, 0)
	}
	if !e.canonical(a) {
		return place{}, c.missed(a, need, foundAbsent, 0)
	}
	asked, granted := need, byte(0)
	if c.user {
		asked |= attrU
	} else if c.sys.cr[0]&cr0WP == 0 {
		granted = attrW
	}
	p, what := e.b.walk(c.sys.cr[3], a, asked, granted, true)
	if what == foundPage && !c.user && p.perm&attrU != 0 && !c.mayUseUsers(need) {
		what = foundForbidden
	}
	if what == foundPage || what == foundDevice && need != attrX {
		return p, true
	}
	return place{}, c.missed(a, need, what, p.pa)
}

// mayUseUsers reports whether the kernel may access memory of user mode so.
func (c *cpu) mayUseUsers(need byte) bool {
	if need == attrX {
		return c.sys.cr[4]&cr4SMEP == 0
	}
	return c.mode != modeGuarded
}

// missed is an access that failed.
func (c *cpu) missed(a uint64, need byte, what found, pa uint64) bool {
	if what == foundFiltered || what == foundNothing || what == foundDevice {
		c.e.b.fail(c.e.b.noPage(pa))
		c.event = event{kind: eventEnd}
		return false
	}
	access := map[byte]machine.Access{attrR: machine.AccessRead, attrW: machine.AccessWrite, attrX: machine.AccessFetch}[need]
	c.miss(a, access)
	c.event.present = what == foundForbidden
	return false
}

// readBooted is readBytes on a booted kernel.
func (c *cpu) readBooted(a uint64, b []byte) bool {
	e := c.e
	if e.watch.data {
		e.access(a, len(b), machine.WatchRead)
	}
	for len(b) > 0 {
		p, ok := c.reach(a, attrR)
		if !ok {
			return false
		}
		n := min(len(b), int(pageSize-a%pageSize))
		if p.r == nil {
			var v [8]byte
			binary.LittleEndian.PutUint64(v[:], e.b.board.ReadDevice(c.n, p.pa, n))
			copy(b[:n], v[:])
		} else {
			seen := e.b.seen(p.page())
			copy(b[:n], seen[a%pageSize:])
			if !e.watch.watched(a / pageSize) {
				c.reads[a/pageSize%tlbSize] = tlbEntry{a / pageSize, seen}
				e.b.spaces[c.mode].used = true
			}
		}
		a, b = a+uint64(n), b[n:]
	}
	return true
}

// writableBooted is writable on a booted kernel. The places are for the write that follows.
func (c *cpu) writableBooted(a uint64, n int) bool {
	b := c.e.b
	ends := a + uint64(n)
	k := 0
	for at := a; at < ends; at = at&^(pageSize-1) + pageSize {
		p, ok := c.reach(at, attrW)
		if !ok {
			return false
		}
		c.targets[k&1] = p
		k++
	}
	k = 0
	for at := a; at < ends; at = at&^(pageSize-1) + pageSize {
		if p := &c.targets[k&1]; p.r != nil && b.code[p.page()] != nil {
			b.dropPage(p.page(), at%pageSize, min(pageSize, at%pageSize+ends-at))
		}
		k++
	}
	if r := c.running; r != nil && r.dead && len(r.ops) > 1 {
		c.event = event{kind: eventRestart}
		return false
	}
	return true
}

// writeBooted is writeBytes on a booted kernel, to the targets.
func (c *cpu) writeBooted(a uint64, b []byte) {
	e := c.e
	if e.watch.data {
		e.access(a, len(b), machine.WatchWrite)
	}
	for k := 0; len(b) > 0; k++ {
		n := min(len(b), int(pageSize-a%pageSize))
		if p := &c.targets[k&1]; p.r == nil {
			var v [8]byte
			copy(v[:], b[:n])
			e.b.board.WriteDevice(c.n, p.pa, binary.LittleEndian.Uint64(v[:]))
		} else {
			c.store(p, a, b[:n])
		}
		a, b = a+uint64(n), b[n:]
	}
}

// store writes within a page.
func (c *cpu) store(at *place, a uint64, b []byte) {
	e := c.e
	if e.track {
		e.save(at.r, at.i)
	}
	p := at.page()
	if v := e.b.views[p]; v != nil {
		copy(v.seen[a%pageSize:], b)
		e.b.merge(v)
		return
	}
	copy(p[a%pageSize:], b)
	if e.b.code[p] == nil && !e.watch.watched(a/pageSize) {
		c.writes[a/pageSize%tlbSize] = tlbEntry{a / pageSize, p}
		e.b.spaces[c.mode].used = true
	}
}

// fetchable is the page of code at an address, nil if it cannot be fetched; then the event is set.
func (c *cpu) fetchable(a uint64) *page {
	s := &c.e.b.spaces[c.mode]
	t := &s.fetches[a/pageSize%tlbSize]
	if t.number == a/pageSize {
		return t.p
	}
	p, ok := c.reach(a, attrX)
	if !ok {
		return nil
	}
	*t = tlbEntry{a / pageSize, p.page()}
	s.used = true
	return t.p
}
