//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/x86"
)

// splits reports whether n bytes lie on more than one page, which in a booted
// kernel may be anywhere in memory.
func splits(addr x86.Addr, n int) bool {
	return n > 0 && pageDown(addr) != pageDown(addr.Add(int64(n-1)))
}

// pieces calls do with the part of b on each page.
func (m *Machine) pieces(addr x86.Addr, b []byte, do func(x86.Addr, []byte) error) error {
	for len(b) > 0 {
		n := min(len(b), int(PageSize-addr%PageSize))
		if err := do(addr, b[:n]); err != nil {
			return err
		}
		addr, b = addr.Add(int64(n)), b[n:]
	}
	return nil
}

func (m *Machine) writable(addr x86.Addr, b []byte) error {
	if _, err := m.host(addr, len(b), attrW); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// guest is host for an address that goes through the guest's page tables: those of
// the task that runs. The bytes are on one page.
func (m *Machine) guest(addr x86.Addr, n int, need byte) ([]byte, error) {
	var p C.kpl_place
	if splits(addr, n) {
		return nil, fmt.Errorf("%d bytes at %s are on two pages: %w", n, addr, errno.EFAULT)
	}
	switch C.kpl_walk(m.c, C.kpl_cr3(m.cur.c), C.uint64_t(addr), C.int(need), 0, &p) {
	case C.KPL_FOUND:
		return unsafe.Slice((*byte)(unsafe.Pointer(p.host)), n), nil
	case C.KPL_FILTERED:
		return nil, fmt.Errorf("%d bytes at %s: %w: %w", n, addr, m.b.core.Present(uint64(p.pa)), errno.EFAULT)
	}
	return nil, fmt.Errorf("%d bytes at %s: %w", n, addr, errno.EFAULT)
}

// DirectMapped is where a booted kernel's map of all physical memory has what the running
// task sees at an address.
func (m *Machine) DirectMapped(addr x86.Addr) (x86.Addr, error) {
	var p C.kpl_place
	if m.b == nil || C.kpl_walk(m.c, C.kpl_cr3(m.cur.c), C.uint64_t(addr), C.KPL_R, 0, &p) != C.KPL_FOUND {
		return 0, fmt.Errorf("no physical memory at %s: %w", addr, errno.EFAULT)
	}
	return m.b.direct + x86.Addr(p.pa), nil
}

// ReadUser reads memory of the program whose task the machine stands in. What the
// kernel has not brought into memory, it is asked for.
func (m *Machine) ReadUser(addr x86.Addr, b []byte) error {
	if err := m.ReadMem(addr, b); err == nil || m.b == nil || m.runs > 0 {
		return err
	}
	buf, err := m.accessUser(addr, b, 0)
	if err == nil {
		err = m.ReadMem(buf, b)
		m.Free(buf)
	}
	return err
}

// WriteUser writes memory of the program whose task the machine stands in: pages that
// it shares with others become its own, as when the program writes them.
func (m *Machine) WriteUser(addr x86.Addr, b []byte) error {
	if err := m.WriteMem(addr, b); err == nil || m.b == nil || m.runs > 0 {
		return err
	}
	buf, err := m.accessUser(addr, b, follWrite)
	if err == nil {
		m.Free(buf)
	}
	return err
}

// follWrite is FOLL_WRITE (include/linux/mm_types.h).
const follWrite = 1

// accessUser lets the kernel copy to or from user memory, by way of a buffer that has
// b's content before and the result after.
func (m *Machine) accessUser(addr x86.Addr, b []byte, flags uint64) (x86.Addr, error) {
	buf, err := m.Alloc(len(b))
	if err != nil {
		return 0, err
	}
	if err = m.WriteMem(buf, b); err == nil {
		var n uint64
		n, err = m.Call("access_process_vm", uint64(m.current(m.cur)), uint64(addr), uint64(buf), len(b), flags)
		if err == nil && int(n) != len(b) {
			err = fmt.Errorf("%d bytes of the program at %s: %w", len(b), addr, errno.EFAULT)
		}
	}
	if err != nil {
		m.Free(buf)
		return 0, err
	}
	return buf, nil
}
