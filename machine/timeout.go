package machine

import (
	"math"
	"runtime"
	"sync"
	"time"

	"kprobelab/x86"
)

// startTimer starts the timer of a run, and returns a function that stops it. The timer's goroutine
// makes the engine stop before its next block. It sets expired, which lasts, and StopAt, which is
// all that the engine reads.
func (m *Machine) startTimer() (stop func()) {
	if m.opt.Timeout <= 0 && m.booted == nil {
		return func() {}
	}
	return m.timed()
}

func (m *Machine) timed() (stop func()) {
	var mu sync.Mutex
	runs := true
	ends := func() {
		mu.Lock()
		defer mu.Unlock()
		if runs {
			m.sh.Expired.Store(1)
			m.sh.StopAt.Store(0)
		}
	}
	unwatch := m.watchMemory(ends)
	var timer *time.Timer
	if m.opt.Timeout > 0 {
		timer = time.AfterFunc(m.opt.Timeout, ends)
	}
	return func() {
		if timer != nil {
			timer.Stop()
		}
		unwatch()
		mu.Lock()
		defer mu.Unlock()
		runs = false
		m.sh.Expired.Store(0)
	}
}

// expired reports whether the run's time is up.
func (m *Machine) expired() bool { return m.sh.Expired.Load() != 0 }

func (m *Machine) overTime(at x86.Addr) error {
	err := &BudgetError{Limit: m.opt.Budget, Time: m.opt.Timeout, IP: at, Symbol: m.Symbolize(at)}
	if m.wroteTooMuch.Load() {
		return &WrittenError{err}
	}
	return err
}

// nextPause lets the timer strike on systems with a single thread, and is the
// instruction count at which it has to be let again.
func (m *Machine) nextPause() uint64 {
	const patience = 1 << 20 // instructions, some ten milliseconds
	if runtime.GOARCH != "wasm" || m.opt.Timeout <= 0 {
		return math.MaxUint64
	}
	runtime.Gosched()
	return m.sh.Instrs + patience
}
