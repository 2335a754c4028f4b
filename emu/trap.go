//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"kprobelab/x86"
)

// C knows a machine by its index in this table, because C must not keep Go
// pointers. A reader takes no lock: the table is replaced as a whole.
var (
	tableMu sync.Mutex
	table   atomic.Pointer[[]*Machine]
)

func register(m *Machine) uintptr {
	tableMu.Lock()
	defer tableMu.Unlock()
	var list []*Machine
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
	list := append([]*Machine(nil), *table.Load()...)
	list[h] = nil
	table.Store(&list)
}

func machineOf(h C.uintptr_t) *Machine { return (*table.Load())[h] }

// border is deferred where C has called Go. A panic of a handler becomes an
// error of the run. A handler that ends its goroutine (t.FailNow does) closes
// the machine, because the engine's run can never return.
func (m *Machine) border(answer *C.int, returned *bool) {
	if *returned {
		return
	}
	if p := recover(); p != nil {
		m.fail(fmt.Errorf("%w: %v\n%s", ErrHandler, p, debug.Stack()))
		*answer = C.KPL_STOP
		return
	}
	m.closed = true
}

// fail records the first error of the run that is about to end.
func (m *Machine) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

//export kplTrap
func kplTrap(h C.uintptr_t, cpu, vector C.int, regs *C.kpl_regs) (answer C.int) {
	m, returned := machineOf(h), false
	defer m.border(&answer, &returned)
	answer = m.trap(int(vector), (*x86.PtRegs)(unsafe.Pointer(regs)))
	returned = true
	return answer
}

func (m *Machine) trap(vector int, regs *x86.PtRegs) C.int {
	if m.traps == nil {
		return C.KPL_NOT_MINE
	}
	m.noteTask()
	var mine bool
	if vector == VectorInt3 {
		mine = m.traps.Int3(regs)
	} else {
		mine = m.traps.Debug(regs)
	}
	switch {
	case m.err != nil:
		return C.KPL_STOP
	case !mine:
		return C.KPL_NOT_MINE
	}
	return C.KPL_RESUME
}

//export kplCallout
func kplCallout(h C.uintptr_t, cpu C.int, rip, frame C.uint64_t, regs *C.kpl_regs) (answer C.int) {
	m, returned := machineOf(h), false
	defer m.border(&answer, &returned)
	answer = m.callout(x86.Addr(rip), x86.Addr(frame), (*x86.PtRegs)(unsafe.Pointer(regs)))
	returned = true
	return answer
}

func (m *Machine) callout(stub, frame x86.Addr, regs *x86.PtRegs) C.int {
	fn := m.stubs.at(stub)
	m.noteTask()
	switch {
	case fn == nil:
		m.fail(fmt.Errorf("callout at %s, where no stub is", m.Symbolize(stub)))
	case regs == nil:
		m.fail(fmt.Errorf("callout %s with a frame at %s, which is no writable memory", m.Symbolize(stub), frame))
	default:
		fn(frame, regs)
	}
	if m.err != nil {
		return C.KPL_STOP
	}
	return C.KPL_RESUME
}
