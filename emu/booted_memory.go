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
