package interp

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// PageSize is the guest's page size in bytes.
const PageSize = 4096

// Attributes of a page. A page with none is not mapped.
const (
	attrR = 1 << iota
	attrW
	attrX
	attrDirty // it has been saved since the last snapshot
)

func pageDown(a x86.Addr) x86.Addr { return a &^ (PageSize - 1) }
func pageUp(a x86.Addr) x86.Addr   { return (a + PageSize - 1) &^ (PageSize - 1) }

// lastPage is the last page of all. No region has a part of it: the address after
// its end would be 0. The kernel leaves it unmapped, too; its addresses are error
// numbers (ERR_PTR).
const lastPage x86.Addr = -PageSize & (1<<64 - 1)

// page is the host's memory of a guest page, aligned to 8 bytes.
type page [PageSize]byte

func newPage() *page { return (*page)(unsafe.Pointer(new([PageSize / 8]uint64))) }

// region is a range of guest addresses. A page of it is mapped as its attributes
// say, and has memory of the host once somebody used it.
type region struct {
	x86.Range
	pages []*page
	attr  []byte
}

// at is the memory of the i-th page.
func (r *region) at(i uint64) *page {
	if r.pages[i] == nil {
		r.pages[i] = newPage()
	}
	return r.pages[i]
}

// addRegion reserves [start, end), both page-aligned, with no page mapped.
func (m *Machine) addRegion(start, end x86.Addr) (*region, error) {
	if end > lastPage || end < start {
		return nil, fmt.Errorf("memory from %s on reaches into the last page, where no memory can be: %w", start, errno.EINVAL)
	}
	size := end.Sub(start)
	if size <= 0 || size > machine.MaxRegion {
		return nil, fmt.Errorf("region of %#x bytes at %s: %w", size, start, machine.ErrNoMemory)
	}
	for _, o := range m.regions {
		if o.Overlaps(x86.Range{Start: start, End: end}) {
			return nil, fmt.Errorf("region %s-%s overlaps %s-%s: %w", start, end, o.Start, o.End, errno.EINVAL)
		}
	}
	n := size / PageSize
	r := &region{Range: x86.Range{Start: start, End: end}, pages: make([]*page, n), attr: make([]byte, n)}
	m.regions = append(m.regions, r)
	return r, nil
}

// set gives the pages that [start, end) touches more attributes.
func (r *region) set(start, end x86.Addr, attr byte) {
	for p := pageDown(start); p < end; p += PageSize {
		r.attr[p.Sub(r.Start)/PageSize] |= attr
	}
}

// clear unmaps the pages of [start, end); dirty pages stay dirty.
func (r *region) clear(start, end x86.Addr) {
	for p := pageDown(start); p < end; p += PageSize {
		r.attr[p.Sub(r.Start)/PageSize] &= attrDirty
	}
}

func (m *Machine) region(a x86.Addr) *region {
	if r := m.recent; r != nil && r.Contains(a) {
		return r
	}
	for _, r := range m.regions {
		if r.Contains(a) {
			m.recent = r
			return r
		}
	}
	return nil
}

// page is the memory of the page of an address, nil where it is not mapped with
// all attributes of need.
func (m *Machine) page(a x86.Addr, need byte) *page {
	r := m.region(a)
	if r == nil {
		return nil
	}
	i := uint64(a-r.Start) / PageSize
	if r.attr[i]&need != need {
		return nil
	}
	return r.at(i)
}

// mapped reports whether every page of the range is mapped with need.
func (m *Machine) mapped(addr x86.Addr, n int, need byte) error {
	if m.gone {
		return machine.ErrClosed
	}
	if n == 0 {
		return nil
	}
	end := addr.Add(int64(n))
	for a := pageDown(addr); ; a += PageSize {
		if m.page(a, need) == nil || end < addr {
			return fmt.Errorf("%d bytes at %s: %w", n, addr, errno.EFAULT)
		}
		if end-a <= PageSize {
			return nil
		}
	}
}

// each calls fn with the pieces of a range that is mapped, page by page.
func (m *Machine) each(addr x86.Addr, n int, fn func(b []byte)) {
	for n > 0 {
		off := int(addr & (PageSize - 1))
		k := min(n, PageSize-off)
		fn(m.page(addr, 0)[off : off+k])
		addr, n = addr.Add(int64(k)), n-k
	}
}

func (m *Machine) copyOut(addr x86.Addr, b []byte) {
	m.each(addr, len(b), func(p []byte) { b = b[copy(b, p):] })
}

func (m *Machine) copyIn(addr x86.Addr, b []byte) {
	m.each(addr, len(b), func(p []byte) { b = b[copy(p, b):] })
}

// ReadMem reads guest memory as it is now, patched text and all. It reads all
// of b or fails with an error that wraps errno.EFAULT.
func (m *Machine) ReadMem(addr x86.Addr, b []byte) error {
	if err := m.mapped(addr, len(b), attrR); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	m.copyOut(addr, b)
	return nil
}

// WriteMem writes data memory. It writes all of b or fails with an error that
// wraps errno.EFAULT, as it does on text and read-only data.
func (m *Machine) WriteMem(addr x86.Addr, b []byte) error {
	if err := m.mapped(addr, len(b), attrW); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	m.touch(addr, len(b))
	m.copyIn(addr, b)
	return nil
}

// SwapWord reads a word of data memory and writes another in its place. It
// fails as WriteMem does.
func (m *Machine) SwapWord(addr x86.Addr, v uint64) (old uint64, err error) {
	if err := m.mapped(addr, 8, attrR|attrW); err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	m.touch(addr, 8)
	var b [8]byte
	m.copyOut(addr, b[:])
	old = binary.LittleEndian.Uint64(b[:])
	binary.LittleEndian.PutUint64(b[:], v)
	m.copyIn(addr, b[:])
	return old, nil
}

// touch is called before memory that is mapped is written: its pages are saved for
// a snapshot, and what they hold for steps back.
func (m *Machine) touch(addr x86.Addr, n int) {
	if n == 0 {
		return
	}
	if m.back != nil {
		m.anew()
		m.back.memory(m, addr, n)
	}
	if !m.track {
		return
	}
	end := addr.Add(int64(n))
	for a := pageDown(addr); a < end; a += PageSize {
		if r := m.region(a); r != nil {
			m.save(r, uint64(a-r.Start)/PageSize)
		}
	}
}

// save keeps what a page holds, if it is clean.
func (m *Machine) save(r *region, i uint64) {
	if r.attr[i]&attrDirty != 0 {
		return
	}
	old := *r.at(i)
	m.undo = append(m.undo, saved{r, i, &old})
	r.attr[i] |= attrDirty
}

// PokeText changes text, which is read-only to the guest, and makes every CPU
// drop its blocks of that text: what text_poke and the sync-core IPI do together.
// It fails with errno.EFAULT where addr is not executable.
func (m *Machine) PokeText(addr x86.Addr, b []byte) error {
	if err := m.PokeTextNoSync(addr, b); err != nil {
		return err
	}
	for n, c := range m.cpus {
		m.drop(c, addr, len(b))
		if m.onSync != nil {
			m.onSync(n)
		}
	}
	return nil
}

// PokeTextNoSync changes text, and every CPU may still execute the old text until
// SyncCore: the state between text_poke's store and its sync-core IPI.
func (m *Machine) PokeTextNoSync(addr x86.Addr, b []byte) error {
	if err := m.ours(); err != nil {
		return fmt.Errorf("poke: %w", err)
	}
	if err := m.mapped(addr, len(b), attrX); err != nil {
		return fmt.Errorf("poke: %w", err)
	}
	m.touch(addr, len(b))
	m.copyIn(addr, b)
	for _, c := range m.cpus {
		c.stale = append(c.stale, x86.Range{Start: addr, End: addr.Add(int64(len(b)))})
	}
	if m.onPoke != nil {
		m.onPoke(addr, len(b))
	}
	return nil
}

// OnText sets receivers for changes of text: poke after n bytes at an address
// were changed by the CPU that runs, sync after a CPU has come to see all
// changes. Each may be nil.
func (m *Machine) OnText(poke func(at x86.Addr, n int), sync func(cpu int)) {
	m.onPoke, m.onSync = poke, sync
}

// SyncCore makes one CPU see all text that was poked.
func (m *Machine) SyncCore(cpu int) {
	if m.gone || m.ours() != nil {
		return
	}
	c := m.cpus[cpu]
	for len(c.stale) > 0 {
		r := c.stale[len(c.stale)-1]
		m.drop(c, r.Start, int(r.Len()))
	}
	if m.onSync != nil {
		m.onSync(cpu)
	}
}

// drop makes c see the text of a range as it is.
func (m *Machine) drop(c *cpu, addr x86.Addr, n int) {
	end := addr.Add(int64(n))
	if n > 0 {
		c.blocks.drop(uint64(addr), uint64(end))
	}
	kept := c.stale[:0]
	for _, r := range c.stale {
		if r.Start < addr || end < r.End {
			kept = append(kept, r)
		}
	}
	c.stale = kept
}
