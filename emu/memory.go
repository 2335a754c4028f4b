//go:build unicorn && cgo && linux && amd64

package emu

// #cgo nocallback kpl_touch
// #include <string.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Attributes of a page, as in the C files; machine has the same.
const (
	attrR     = C.KPL_R
	attrW     = C.KPL_W
	attrX     = C.KPL_X
	attrDirty = C.KPL_DIRTY
)

func pageDown(a x86.Addr) x86.Addr { return a &^ (machine.PageSize - 1) }

// region is a range of guest addresses and the host memory that holds it. A page
// of it is mapped as its attributes say; a page without attributes faults.
type region struct {
	x86.Range
	mem  []byte
	attr []byte
}

// Reserve makes a region. A new CPU maps the existing regions into its engine; Reserve maps a
// later region into the engines of all CPUs.
func (e *engine) Reserve(at x86.Range) error {
	if len(e.cpus) > 0 && e.Here() {
		return fmt.Errorf("room at %s while code runs: %w", at.Start, errno.EBUSY)
	}
	r, size := &region{Range: at}, at.End.Sub(at.Start)
	e.regions = append(e.regions, r) // Close frees it, whatever fails below
	var err error
	if r.mem, err = reserve(size); err == nil {
		r.attr, err = reserve(size / machine.PageSize)
	}
	if err != nil {
		return engineError(fmt.Sprintf("%d bytes of host memory", size), err)
	}
	if C.kpl_add_region(e.c, C.uint64_t(at.Start), C.uint64_t(size), (*C.uint8_t)(&r.mem[0]), (*C.uint8_t)(&r.attr[0])) != 0 {
		return fmt.Errorf("region of %#x bytes at %s, and %d before it: %w", size, at.Start, C.KPL_MAX_REGIONS, machine.ErrNoMemory)
	}
	for _, c := range e.cpus {
		if err := c.mapRegion(r); err != nil {
			return err
		}
	}
	return nil
}

// Discard returns the memory to the host's kernel: it reads as zero then.
func (e *engine) Discard(at x86.Range) {
	for _, r := range e.regions {
		if from, to := max(at.Start, r.Start), min(at.End, r.End); from < to {
			_ = unix.Madvise(r.mem[from-r.Start:to-r.Start], unix.MADV_DONTNEED) // it is ours, and whole pages
		}
	}
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

func (e *engine) Allow(r x86.Range, attr byte) {
	e.attributes(r, func(have *byte) { *have |= attr })
}

// Unmap leaves dirty pages dirty.
func (e *engine) Unmap(r x86.Range) (executable bool) {
	taken := byte(0)
	e.attributes(r, func(have *byte) {
		taken |= *have &^ attrDirty
		*have &= attrDirty
	})
	if taken == 0 {
		return false // also because a hook cannot have the TLB flushed
	}
	for _, c := range e.cpus {
		C.kpl_cpu_flush_tlb(c.c)
	}
	return taken&machine.AttrX != 0
}

// attributes calls fn with the attributes of each page that a range touches.
func (e *engine) attributes(a x86.Range, fn func(attr *byte)) {
	for p := pageDown(a.Start); p < a.End; p += machine.PageSize {
		if r := e.region(p); r != nil {
			fn(&r.attr[p.Sub(r.Start)/machine.PageSize])
		}
	}
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

// Bytes is guest memory as host bytes.
func (e *engine) Bytes(addr x86.Addr, n int, need byte) ([]byte, error) {
	if r := e.region(addr); r != nil {
		off := uint64(addr - r.Start)
		if r.attr[off/machine.PageSize]&need == need {
			return r.mem[off : off+uint64(n)], nil
		}
	} else if e.b != nil {
		return e.guest(addr, n, need)
	}
	return nil, fmt.Errorf("%d bytes at %s: %w", n, addr, errno.EFAULT)
}

// Touch saves, for a snapshot, the pages that the host is about to write.
func (e *engine) Touch(addr x86.Addr, n int) {
	if e.c.track != 0 {
		C.kpl_touch(e.c, C.uint64_t(addr), C.uint64_t(n))
	}
}

func (e *engine) Saved() int { return int(e.c.nundo) }

func (e *engine) Track(on bool) {
	e.c.track = 0
	if on {
		e.c.track = 1
	}
}

func (e *engine) Clean(from int) {
	for _, u := range e.undoList()[from:] {
		*u.attr &^= attrDirty
	}
	for _, c := range e.cpus {
		C.kpl_cpu_flush_tlb(c.c)
	}
}

func (e *engine) undoList() []*C.kpl_undo {
	if e.c.nundo == 0 {
		return nil
	}
	return unsafe.Slice((**C.kpl_undo)(unsafe.Pointer(e.c.undo)), e.c.nundo)
}

func (e *engine) Changed(from int) []x86.Addr {
	first := map[x86.Addr]*C.kpl_undo{}
	for _, u := range e.undoList()[from:] {
		p := x86.Addr(u.page)
		if u.ram != 0 {
			p += e.b.direct
		}
		if first[p] == nil {
			first[p] = u
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(first)), func(p x86.Addr) bool {
		u := first[p]
		return C.memcmp(unsafe.Pointer(u.host), unsafe.Pointer(&u.old[0]), machine.PageSize) == 0
	})
}

func (e *engine) Rewind(from int) {
	list := e.undoList()
	all := false // translations are dropped, once for all pages
	for i := len(list) - 1; i >= from; i-- {
		u := list[i]
		if u.ram != 0 {
			all = e.restorePage(u) || all
			continue
		}
		C.memcpy(unsafe.Pointer(u.host), unsafe.Pointer(&u.old[0]), machine.PageSize)
		if *u.attr&attrX != 0 {
			for _, c := range e.cpus {
				c.Drop(x86.Addr(u.page), machine.PageSize)
			}
		}
	}
	if all {
		for _, c := range e.cpus {
			C.kpl_cpu_drop_all(c.c)
		}
	}
}

func (e *engine) Forget(from int) { C.kpl_undo_drop(e.c, C.int(from)) }
