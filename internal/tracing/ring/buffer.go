package ring

import "sync/atomic"

// DefaultSize is the default size of a CPU's buffer in bytes: buffer_size_kb then reads 1410.
const DefaultSize = 1441792

// Buffer is a trace buffer: a ring of pages for every CPU. All methods may be
// called from any goroutine.
type Buffer struct {
	cpus []*cpu
	// noOverwrite is the option "overwrite", turned off.
	noOverwrite atomic.Bool
	waiters     waiters
}

// New makes a buffer for that many CPUs, each holding size bytes; 0 is
// DefaultSize. Memory is taken as it is written to.
func New(cpus, size int) *Buffer {
	if size <= 0 {
		size = DefaultSize
	}
	b := &Buffer{cpus: make([]*cpu, cpus)}
	for i := range b.cpus {
		b.cpus[i] = newCPU(size)
	}
	return b
}

// CPUs is the number of CPUs.
func (b *Buffer) CPUs() int { return len(b.cpus) }

// SetOverwrite selects what a full buffer of a CPU drops: the oldest page (true, the default), or
// the new record, which then counts as a dropped event.
func (b *Buffer) SetOverwrite(on bool) { b.noOverwrite.Store(!on) }

// Overwrite returns the value of SetOverwrite.
func (b *Buffer) Overwrite() bool { return !b.noOverwrite.Load() }

// Write appends a copy of the record to a CPU's buffer, and wakes waiting readers. now is in
// nanoseconds, and must not decrease on a CPU. Write allocates nothing. It returns false if the
// record was dropped: the buffer is full and does not overwrite, or the record is longer than
// MaxRecord.
func (b *Buffer) Write(cpu int, now uint64, record []byte) bool {
	if len(record) > MaxRecord {
		return false
	}
	c := b.cpus[cpu]
	c.mu.Lock()
	ok := c.write(now, record, !b.noOverwrite.Load())
	c.mu.Unlock()
	if ok {
		b.waiters.wake()
	}
	return ok
}

// Reset empties every CPU's buffer, counters and all.
func (b *Buffer) Reset() {
	for i := range b.cpus {
		b.ResetCPU(i)
	}
}

// ResetCPU empties one CPU's buffer.
func (b *Buffer) ResetCPU(cpu int) {
	c := b.cpus[cpu]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}
