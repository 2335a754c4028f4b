//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"kprobelab/x86"
)

// startTimer begins the time of a run, and returns what ends it. The timer's
// goroutine makes the engine's thread stop before its next block: by expired,
// which lasts, and by stopAt, which is all that the block hook reads.
func (m *Machine) startTimer() (stop func()) {
	if m.opt.Timeout <= 0 {
		return func() {}
	}
	var mu sync.Mutex
	runs := true
	timer := time.AfterFunc(m.opt.Timeout, func() {
		mu.Lock()
		defer mu.Unlock()
		if runs {
			atomic.StoreUint32(m.expiredWord(), 1)
			m.stopNow()
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		runs = false
		atomic.StoreUint32(m.expiredWord(), 0)
	}
}

func (m *Machine) expiredWord() *uint32 { return (*uint32)(unsafe.Pointer(&m.c.expired)) }

// expired reports whether the run's time is up.
func (m *Machine) expired() bool { return atomic.LoadUint32(m.expiredWord()) != 0 }

// stopNow makes the run look before its next block whether it has to end.
func (m *Machine) stopNow() {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&m.c.stop_at)), 0)
}

// stopAt sets the instruction count before which the run stops. A booted machine's
// timers stop it before that.
func (m *Machine) stopAt(n uint64) {
	if m.b != nil {
		m.c.limit = C.uint64_t(n)
		C.kpl_aim(m.c)
		return
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&m.c.stop_at)), n)
}

func (m *Machine) overTime(at x86.Addr) error {
	return &BudgetError{Limit: m.opt.Budget, Time: m.opt.Timeout, IP: at, Symbol: m.Symbolize(at)}
}
