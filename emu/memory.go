//go:build cgo && linux && amd64

package emu

// #cgo nocallback kpl_cpu_drop
// #cgo nocallback kpl_forget_counts
// #cgo nocallback kpl_touch
// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// PageSize is the guest's page size in bytes.
const PageSize = 4096

// Attributes of a page, as in the C files.
const (
	attrR     = C.KPL_R
	attrW     = C.KPL_W
	attrX     = C.KPL_X
	attrDirty = C.KPL_DIRTY
)

const maxRegion = machine.MaxRegion

func pageDown(a x86.Addr) x86.Addr { return a &^ (PageSize - 1) }
func pageUp(a x86.Addr) x86.Addr   { return (a + PageSize - 1) &^ (PageSize - 1) }

// lastPage is the last page of all. No region has a part of it: the address after
// its end would be 0. The kernel leaves it unmapped, too; its addresses are error
// numbers (ERR_PTR).
const lastPage x86.Addr = -PageSize & (1<<64 - 1)

// region is a range of guest addresses and the host memory that holds it. A page
// of it is mapped as its attributes say; a page without attributes faults.
type region struct {
	x86.Range
	mem  []byte
	attr []byte
}

// addRegion reserves [start, end), both page-aligned, with no page mapped. All
// regions are made before the first CPU, which maps them into its engine.
func (m *Machine) addRegion(start, end x86.Addr) (*region, error) {
	if end > lastPage || end < start {
		return nil, fmt.Errorf("memory from %s on reaches into the last page, where no memory can be: %w", start, errno.EINVAL)
	}
	size := end.Sub(start)
	if size <= 0 || size > maxRegion {
		return nil, fmt.Errorf("region of %#x bytes at %s: %w", size, start, ErrNoMemory)
	}
	for _, o := range m.regions {
		if o.Overlaps(x86.Range{Start: start, End: end}) {
			return nil, fmt.Errorf("region %s-%s overlaps %s-%s: %w", start, end, o.Start, o.End, errno.EINVAL)
		}
	}
	r := &region{Range: x86.Range{Start: start, End: end}}
	m.regions = append(m.regions, r) // Close frees it, whatever fails below
	var err error
	if r.mem, err = reserve(size); err == nil {
		r.attr, err = reserve(size / PageSize)
	}
	if err != nil {
		return nil, engineError(fmt.Sprintf("%d bytes of host memory", size), err)
	}
	if C.kpl_add_region(m.c, C.uint64_t(start), C.uint64_t(size), (*C.uint8_t)(&r.mem[0]), (*C.uint8_t)(&r.attr[0])) != 0 {
		return nil, fmt.Errorf("region of %#x bytes at %s, and %d before it: %w", size, start, C.KPL_MAX_REGIONS, ErrNoMemory)
	}
	return r, nil
}

// reserve maps zeroed host memory that is not Go's, so that C may keep its
// address. The host pays for a page when it is first used.
func reserve(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

func (r *region) free() {
	for _, b := range [][]byte{r.mem, r.attr} {
		if b != nil {
			_ = unix.Munmap(b) // it is ours, and mapped
		}
	}
	r.mem, r.attr = nil, nil
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
	for _, r := range m.regions {
		if r.Contains(a) {
			m.recent = r
			return r
		}
	}
	return nil
}

// host returns guest memory as host bytes, with every page of it mapped with
// at least the attributes of need.
func (m *Machine) host(addr x86.Addr, n int, need byte) ([]byte, error) {
	if m.c == nil { // not Closed(): memory stays when a handler ended its goroutine
		return nil, ErrClosed
	}
	if n == 0 {
		return nil, nil
	}
	if r := m.recent; r != nil { // most accesses are to one page of the last region
		off := uint64(addr - r.Start)
		if end := off + uint64(n); off < end && end <= uint64(len(r.mem)) && off/PageSize == (end-1)/PageSize && r.attr[off/PageSize]&need == need {
			return r.mem[off:end], nil
		}
	}
	r := m.region(addr)
	if r == nil && m.b != nil {
		return m.guest(addr, n, need)
	}
	if r == nil || uint64(n) > uint64(r.End.Sub(addr)) {
		return nil, fmt.Errorf("%d bytes at %s: %w", n, addr, errno.EFAULT)
	}
	off := addr.Sub(r.Start)
	for p := off / PageSize; p <= (off+int64(n)-1)/PageSize; p++ {
		if r.attr[p]&need != need {
			return nil, fmt.Errorf("%d bytes at %s: %w", n, addr, errno.EFAULT)
		}
	}
	return r.mem[off : off+int64(n)], nil
}

// ReadMem reads guest memory as it is now, patched text and all. It reads all
// of b or fails with an error that wraps errno.EFAULT.
func (m *Machine) ReadMem(addr x86.Addr, b []byte) error {
	if m.b != nil && splits(addr, len(b)) {
		return m.pieces(addr, b, m.ReadMem)
	}
	h, err := m.host(addr, len(b), attrR)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	copy(b, h)
	return nil
}

// WriteMem writes data memory. It writes all of b or fails with an error that
// wraps errno.EFAULT, as it does on text and read-only data.
func (m *Machine) WriteMem(addr x86.Addr, b []byte) error {
	if m.b != nil && splits(addr, len(b)) {
		if err := m.pieces(addr, make([]byte, len(b)), m.writable); err != nil {
			return err
		}
		return m.pieces(addr, b, m.WriteMem)
	}
	h, err := m.host(addr, len(b), attrW)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	m.touch(addr, len(b))
	copy(h, b)
	return nil
}

// SwapWord reads a word of data memory and writes another in its place. It
// fails as WriteMem does.
func (m *Machine) SwapWord(addr x86.Addr, v uint64) (old uint64, err error) {
	h, err := m.host(addr, 8, attrR|attrW)
	if err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	m.touch(addr, 8)
	old = binary.LittleEndian.Uint64(h)
	binary.LittleEndian.PutUint64(h, v)
	return old, nil
}

// touch saves, for a snapshot, the pages that the host is about to write.
func (m *Machine) touch(addr x86.Addr, n int) {
	if m.c.track != 0 {
		C.kpl_touch(m.c, C.uint64_t(addr), C.uint64_t(n))
	}
}

// PokeText changes text, which is read-only to the guest, and makes every CPU
// drop its translations of that text: what text_poke and the sync-core IPI do
// together. It fails with errno.EFAULT where addr is not executable.
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
	if m.b != nil && splits(addr, len(b)) {
		return m.pieces(addr, b, m.PokeTextNoSync)
	}
	h, err := m.host(addr, len(b), attrX)
	if err != nil {
		return fmt.Errorf("poke: %w", err)
	}
	m.touch(addr, len(b))
	copy(h, b)
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
	if m.c == nil || m.ours() != nil {
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
		C.kpl_cpu_drop(c.c, C.uint64_t(addr), C.uint64_t(end))
		C.kpl_forget_counts(m.c, C.uint64_t(addr), C.uint64_t(end))
	}
	kept := c.stale[:0]
	for _, r := range c.stale {
		if r.Start < addr || end < r.End {
			kept = append(kept, r)
		}
	}
	c.stale = kept
}
