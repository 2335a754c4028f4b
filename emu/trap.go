//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// C knows an engine by its index in this table, because C must not keep Go
// pointers. A reader takes no lock: the table is replaced as a whole.
var (
	tableMu sync.Mutex
	table   atomic.Pointer[[]*engine]
)

func register(m *engine) uintptr {
	tableMu.Lock()
	defer tableMu.Unlock()
	var list []*engine
	if p := table.Load(); p != nil {
		list = append(list, *p...)
	}
	for i, o := range list {
		if o == nil {
			list[i] = m
			table.Store(&list)
			return uintptr(i)
		}
	}
	list = append(list, m)
	table.Store(&list)
	return uintptr(len(list) - 1)
}

func unregister(h uintptr) {
	tableMu.Lock()
	defer tableMu.Unlock()
	list := append([]*engine(nil), *table.Load()...)
	list[h] = nil
	table.Store(&list)
}

func engineOf(h C.uintptr_t) *engine { return (*table.Load())[h] }

//export kplTrap
func kplTrap(h C.uintptr_t, cpu, vector C.int, regs *C.kpl_regs) C.int {
	e := engineOf(h)
	e.noteTask()
	e.tellTaken()
	return C.int(e.host.Trap(int(vector), (*x86.PtRegs)(unsafe.Pointer(regs))))
}

//export kplCallout
func kplCallout(h C.uintptr_t, cpu C.int, rip, frame C.uint64_t, regs *C.kpl_regs) C.int {
	e := engineOf(h)
	e.noteTask()
	e.tellTaken()
	return C.int(e.host.Callout(x86.Addr(rip), x86.Addr(frame), (*x86.PtRegs)(unsafe.Pointer(regs))))
}

// The values of Go's answers equal C's.
const (
	_ = uint(contract.Resume - C.KPL_RESUME)
	_ = uint(C.KPL_RESUME - contract.Resume)
	_ = uint(contract.NotMine - C.KPL_NOT_MINE)
	_ = uint(C.KPL_NOT_MINE - contract.NotMine)
	_ = uint(contract.Stop - C.KPL_STOP)
	_ = uint(C.KPL_STOP - contract.Stop)
)
