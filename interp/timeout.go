package interp

import (
	"sync"
	"time"

	"kprobelab/machine"
	"kprobelab/x86"
)

// startTimer begins the time of a run, and returns what ends it. The timer's
// goroutine makes the run stop before its next block: by expired, which lasts, and
// by stopAt, which is all that the loop reads.
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
			m.expired.Store(true)
			m.stopAt.Store(0)
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		runs = false
		m.expired.Store(false)
	}
}

func (m *Machine) overTime(at x86.Addr) error {
	return &machine.BudgetError{Limit: m.opt.Budget, Time: m.opt.Timeout, IP: at, Symbol: m.Symbolize(at)}
}
