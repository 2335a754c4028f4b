package machine

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"time"

	"kprobelab/internal/bounded"
)

// lookEvery is the time between two looks at the process's memory.
const lookEvery = 100 * time.Millisecond

// owned is the memory in bytes that the process has for itself, 0 where the system does not tell: a guest's page that was
// written is such, whatever the engine.
func owned() int64 {
	const pageBytes, resident, shared = 4096, 1, 2
	b, err := bounded.ReadFile("/proc/self/statm", 4096)
	f := bytes.Fields(b)
	if err != nil || len(f) <= shared {
		return 0
	}
	all, err1 := strconv.ParseInt(string(f[resident]), 10, 64)
	others, err2 := strconv.ParseInt(string(f[shared]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (all - others) * pageBytes
}

// watchMemory makes a run of a booted kernel end, as its time does, once the process has much more memory for itself than
// at the first run: a dump may be of a machine with more memory than the host has. stop ends the watch.
func (m *Machine) watchMemory(ends func()) (stop func()) {
	if m.booted == nil {
		return func() {}
	}
	return m.watchOwned(owned, lookEvery, bounded.GuestWritten, ends)
}

func (m *Machine) watchOwned(owned func() int64, every time.Duration, most int64, ends func()) (stop func()) {
	if m.ownedFirst == 0 {
		m.ownedFirst = owned()
	}
	m.wroteTooMuch.Store(false)
	first := m.ownedFirst
	var mu sync.Mutex // look may come before its timer is known
	var timer *time.Timer
	stopped := false
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case stopped:
		case first > 0 && owned()-first > most:
			m.wroteTooMuch.Store(true)
			ends()
		default:
			timer.Reset(every)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, look)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// WrittenError is a run of a booted kernel that has written to more memory than one may.
type WrittenError struct{ *BudgetError }

// Error is one line.
func (e *WrittenError) Error() string {
	return fmt.Sprintf("the guest has written to more than %d GiB of memory, at %s; boot it with less memory for a dump that can be written whole", bounded.GuestWritten>>30, place(e.Symbol, e.IP))
}
