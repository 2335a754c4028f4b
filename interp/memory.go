package interp

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

const pageSize = machine.PageSize

// Attributes of a page.
const (
	attrR     = machine.AttrR
	attrW     = machine.AttrW
	attrX     = machine.AttrX
	attrDirty = machine.AttrDirty
)

func pageDown(a x86.Addr) x86.Addr { return a &^ (pageSize - 1) }

// page is the host's memory of a guest page, aligned to 8 bytes.
type page [pageSize]byte

func newPage() *page { return (*page)(unsafe.Pointer(new([pageSize / 8]uint64))) }

// region is a range of guest addresses. A page of it is mapped as its attributes
// say, and has memory of the host once somebody used it.
type region struct {
	x86.Range
	pages []*page
	attr  []byte
	// fill is called with a page when it is first used; nil: it is zeros.
	fill func(i uint64, p *page)
}

// at is the memory of the i-th page.
func (r *region) at(i uint64) *page {
	if r.pages[i] == nil {
		r.pages[i] = newPage()
		if r.fill != nil {
			r.fill(i, r.pages[i])
		}
	}
	return r.pages[i]
}

func (e *engine) Reserve(r x86.Range) error {
	n := r.Len() / pageSize
	e.regions = append(e.regions, &region{Range: r, pages: make([]*page, n), attr: make([]byte, n)})
	return nil
}

// Discard gives up the memory of pages that are not mapped.
func (e *engine) Discard(a x86.Range) {
	for _, r := range e.regions {
		for p := max(a.Start, r.Start); p < min(a.End, r.End); p += pageSize {
			r.pages[uint64(p-r.Start)/pageSize] = nil
		}
	}
	e.flushTLB()
}

// attributes calls fn with the attributes of each page that a range touches.
func (e *engine) attributes(a x86.Range, fn func(attr *byte)) {
	for p := pageDown(a.Start); p < a.End; p += pageSize {
		if r := e.region(p); r != nil {
			fn(&r.attr[uint64(p-r.Start)/pageSize])
		}
	}
}

func (e *engine) Allow(r x86.Range, attr byte) {
	e.attributes(r, func(have *byte) { *have |= attr })
}

func (e *engine) Unmap(r x86.Range) (executable bool) {
	e.attributes(r, func(have *byte) {
		executable = executable || *have&machine.AttrX != 0
		*have &= attrDirty
	})
	e.flushTLB()
	return executable
}

func (e *engine) region(a x86.Addr) *region {
	if r := e.recent; r != nil && r.Contains(a) {
		return r
	}
	for _, r := range e.regions {
		if r.Contains(a) {
			e.recent = r
			return r
		}
	}
	return nil
}

// page is the memory of the page of an address, nil where it is not mapped with
// all attributes of need.
func (e *engine) page(a x86.Addr, need byte) *page {
	r := e.region(a)
	if r == nil {
		if e.b != nil {
			return e.b.page(e.b.cur, uint64(a), need)
		}
		return nil
	}
	i := uint64(a-r.Start) / pageSize
	if r.attr[i]&need != need {
		return nil
	}
	return r.at(i)
}

func (e *engine) Bytes(addr x86.Addr, n int, need byte) ([]byte, error) {
	p := e.page(addr, need)
	if p == nil {
		if err := e.absent(addr, need); err != nil {
			return nil, fmt.Errorf("%d bytes at %s: %w: %w", n, addr, err, errno.EFAULT)
		}
		return nil, fmt.Errorf("%d bytes at %s: %w", n, addr, errno.EFAULT)
	}
	off := addr % pageSize
	return p[off : off+x86.Addr(n)], nil
}

// each calls fn with the pieces of a range that is mapped, page by page.
func (e *engine) each(addr x86.Addr, n int, fn func(b []byte)) {
	for n > 0 {
		off := int(addr & (pageSize - 1))
		k := min(n, pageSize-off)
		fn(e.page(addr, 0)[off : off+k])
		addr, n = addr.Add(int64(k)), n-k
	}
}

func (e *engine) copyOut(addr x86.Addr, b []byte) {
	e.each(addr, len(b), func(p []byte) { b = b[copy(b, p):] })
}

func (e *engine) copyIn(addr x86.Addr, b []byte) {
	e.each(addr, len(b), func(p []byte) { b = b[copy(p, b):] })
}

// Touch is called before memory that is mapped is written: its pages are saved for
// a snapshot.
func (e *engine) Touch(addr x86.Addr, n int) {
	if n == 0 || !e.track {
		return
	}
	end := addr.Add(int64(n))
	for a := pageDown(addr); a < end; a += pageSize {
		if r := e.region(a); r != nil {
			e.save(r, uint64(a-r.Start)/pageSize)
		} else if e.b != nil {
			e.b.touch(a)
		}
	}
}

// save keeps a copy of the page's content, if the page is clean.
func (e *engine) save(r *region, i uint64) {
	if r.attr[i]&attrDirty != 0 {
		return
	}
	old := *r.at(i)
	e.undo = append(e.undo, saved{r, i, &old})
	r.attr[i] |= attrDirty
}

// saved is the content of a page before the first write to it after a snapshot.
type saved struct {
	r   *region
	i   uint64
	old *page
}

func (s *saved) page() x86.Addr { return s.r.Start + x86.Addr(s.i*pageSize) }

// name is the page's address; of physical memory, that in the guest's map of it all.
func (e *engine) name(s *saved) x86.Addr {
	if e.b != nil && s.r.fill != nil {
		return e.b.direct + s.page()
	}
	return s.page()
}

func (e *engine) Saved() int    { return len(e.undo) }
func (e *engine) Track(on bool) { e.track = on }

func (e *engine) Clean(from int) {
	for _, u := range e.undo[from:] {
		u.r.attr[u.i] &^= attrDirty
	}
	e.flushTLB()
}

func (e *engine) Changed(from int) []x86.Addr {
	first := map[x86.Addr]saved{}
	for _, u := range e.undo[from:] {
		if _, ok := first[e.name(&u)]; !ok {
			first[e.name(&u)] = u
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(first)), func(p x86.Addr) bool {
		u := first[p]
		return *u.r.at(u.i) == *u.old
	})
}

func (e *engine) Rewind(from int) {
	for i := len(e.undo) - 1; i >= from; i-- {
		u := e.undo[i]
		if e.b != nil {
			e.b.restore(&u)
			continue
		}
		*u.r.at(u.i) = *u.old
		if u.r.attr[u.i]&attrX != 0 {
			for _, c := range e.cpus {
				c.Drop(u.page(), pageSize)
			}
		}
	}
}

func (e *engine) Forget(from int) {
	clear(e.undo[from:])
	e.undo = e.undo[:from]
}
