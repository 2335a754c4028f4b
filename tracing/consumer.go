package tracing

import (
	"context"
	"sync"

	"kprobelab/errno"
)

type nonBlocking struct{}

// NonBlocking marks a context so that a read with it fails with EAGAIN where it would wait, as for
// a file with O_NONBLOCK.
func NonBlocking(ctx context.Context) context.Context {
	return context.WithValue(ctx, nonBlocking{}, true)
}

// IsNonBlocking reports whether NonBlocking made the context.
func IsNonBlocking(ctx context.Context) bool { return ctx.Value(nonBlocking{}) != nil }

// consumer is the common part of trace_pipe and trace_pipe_raw: a handle that takes data out of a
// buffer, and waits while the buffer has none.
type consumer struct {
	a *traceArray
	// cpu is the CPU whose data is read, ring.AllCPUs for all.
	cpu    int
	closed chan struct{}
	once   sync.Once
	// wait is false for a reader that does not wait: such a reader gets an end of file.
	wait bool
	// read takes the available data, up to the length of b; ended reports that a reader need not
	// wait for more.
	read  func(b []byte) int
	ended func() bool
}

// newConsumer opens a handle; the caller sets read and ended. The tracing's mu must be held.
func newConsumer(a *traceArray, cpu int) *consumer {
	a.pipes++
	return &consumer{a: a, cpu: cpu, closed: make(chan struct{}), wait: true}
}

func (c *consumer) noWait() { c.wait = false }

// ReadAt reads from the buffer; the offset is ignored.
func (c *consumer) ReadAt(ctx context.Context, b []byte, _ int64) (int, error) {
	for {
		select {
		case <-c.closed:
			return 0, errBadHandle
		default:
		}
		changed := c.a.ring.Changed()
		n := c.read(b)
		if n > 0 || len(b) == 0 || !c.wait {
			return n, nil
		}
		if IsNonBlocking(ctx) { // before the end of the trace (tracing_wait_pipe)
			return 0, errno.EAGAIN
		}
		if c.ended() {
			return 0, nil
		}
		select {
		case <-changed:
		case <-c.closed:
			return 0, errBadHandle
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// WriteAt fails: the file is read-only.
func (c *consumer) WriteAt([]byte, int64) (int, error) { return 0, errBadHandle }

// Close ends a read that waits.
func (c *consumer) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.a.t.mu.Lock()
		defer c.a.t.mu.Unlock()
		c.a.pipes--
	})
	return nil
}
