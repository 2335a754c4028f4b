package ring

import (
	"sync"
	"sync/atomic"
)

// waiters are the readers that wait for a record. While there are none, a writer pays one load of
// an atomic.
type waiters struct {
	n    atomic.Int32
	mu   sync.Mutex
	woke chan struct{}
}

// join returns a channel that the next write closes.
func (w *waiters) join() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.Store(1)
	if w.woke == nil {
		w.woke = make(chan struct{})
	}
	return w.woke
}

func (w *waiters) wake() {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woke != nil {
		close(w.woke)
		w.woke = nil
	}
	w.n.Store(0)
}

// Changed returns a channel that is closed at the next write, or Wake. Get the channel before you
// check for records, so that no write falls between the check and the wait.
func (b *Buffer) Changed() <-chan struct{} { return b.waiters.join() }

// Wake closes the channel of Changed without a write, when something else has
// changed that readers wait for (tracing_on, the end of the buffer).
func (b *Buffer) Wake() { b.waiters.wake() }
