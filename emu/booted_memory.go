//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/x86"
)

// guest is Bytes for an address that goes through the guest's page tables: the tables of the
// running task. The bytes are on one page.
func (e *engine) guest(addr x86.Addr, n int, need byte) ([]byte, error) {
	var p C.kpl_place
	switch C.kpl_walk(e.c, C.kpl_cr3(e.cur.c), C.uint64_t(addr), C.int(need), 0, &p) {
	case C.KPL_FOUND:
		return unsafe.Slice((*byte)(unsafe.Pointer(p.host)), n), nil
	case C.KPL_FILTERED:
		return nil, fmt.Errorf("%d bytes at %s: %w: %w", n, addr, e.b.core.Present(uint64(p.pa)), errno.EFAULT)
	}
	return nil, fmt.Errorf("%d bytes at %s: %w", n, addr, errno.EFAULT)
}

// DirectMapped returns the address in the guest's map of all physical memory of the byte that the
// running task sees at addr.
func (e *engine) DirectMapped(addr x86.Addr) (x86.Addr, error) {
	var p C.kpl_place
	if C.kpl_walk(e.c, C.kpl_cr3(e.cur.c), C.uint64_t(addr), C.KPL_R, 0, &p) != C.KPL_FOUND {
		return 0, fmt.Errorf("no physical memory at %s: %w", addr, errno.EFAULT)
	}
	return e.b.direct + x86.Addr(p.pa), nil
}
