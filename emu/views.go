//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"kprobelab/machine"
	"kprobelab/x86"
)

// HideText precedes a change of text by the host: the guest goes on to see the text as it is
// now (shim_views.c).
func (e *engine) HideText(addr x86.Addr, n int) error {
	if e.cur == nil || n == 0 {
		return nil
	}
	if C.kpl_view_add(e.cur.c, C.uint64_t(addr), C.uint64_t(n)) != 0 {
		return fmt.Errorf("text on more than %d pages of a booted kernel: %w", C.KPL_MAX_VIEWS, machine.ErrNoMemory)
	}
	return nil
}

// GuestText reads text as the guest sees it.
func (e *engine) GuestText(addr x86.Addr, b []byte) {
	for i := range b {
		if p := C.kpl_view_at(e.c, C.uint64_t(addr)+C.uint64_t(i)); p != nil {
			b[i] = byte(*p)
		}
	}
}

// HoldText keeps the int3 that the host has written to a byte, whatever the guest writes there, or lets go of it.
func (e *engine) HoldText(at x86.Addr, on bool) error {
	hold := C.int(0)
	if on {
		hold = 1
	}
	if C.kpl_hold(e.c, C.uint64_t(at), hold) != 0 {
		return fmt.Errorf("hold an int3 at %s: %w", at, machine.ErrNoMemory)
	}
	return nil
}

// held are the bytes of HoldText.
func (e *engine) held() []C.uint64_t {
	return slices.Clone(unsafe.Slice(e.c.held, e.c.nheld))
}

// holdAgain holds these bytes alone.
func (e *engine) holdAgain(list []C.uint64_t) {
	e.c.nheld = 0
	for _, at := range list {
		C.kpl_hold(e.c, at, 1) // it has held as many before
	}
}

// settleViews makes the guest's view and the executed text consistent, between two runs.
func (e *engine) settleViews() {
	if e.b != nil && e.c.nviews > 0 {
		C.kpl_view_settle(e.cur.c)
	}
}

// tellTaken reports the host's changes that the guest has overwritten.
func (e *engine) tellTaken() {
	if e.c.ntaken == 0 {
		return
	}
	list := slices.Clone(unsafe.Slice((*x86.Addr)(unsafe.Pointer(e.c.taken)), e.c.ntaken))
	e.c.ntaken = 0
	e.host.Taken(list)
}
