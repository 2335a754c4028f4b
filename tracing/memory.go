package tracing

import (
	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/tracing/ring"
)

// memory bounds the trace buffers, snapshots, events and texts that are being read, in bytes. The
// kernel stops only at the end of its memory; this program is a guest on its host. The Tracing's mu
// protects it.
type memory struct{ left int }

// DefaultMemory is the default of Options.Memory, in bytes.
const DefaultMemory = bounded.TracingMemory

// What a probe takes with its definition, and an event's file in a trace array:
// rounded up.
const (
	probeMemory = 8 << 10
	fileMemory  = 1 << 10
)

// take is ENOMEM where so much is not left.
func (m *memory) take(bytes int) error {
	if bytes > m.left {
		return errno.ENOMEM
	}
	m.left -= bytes
	return nil
}

func (m *memory) give(bytes int) { m.left += bytes }

// ringMemory returns the current size of a buffer in memory, in bytes.
func ringMemory(r *ring.Buffer) int {
	total := 0
	for cpu := range r.CPUs() {
		total += ring.Memory(r.Size(cpu))
	}
	return total
}

// resize changes the size of a buffer of the array, or of all of its CPUs' buffers: ENOMEM if there
// is no room.
func (a *traceArray) resize(r *ring.Buffer, cpu, size int) error {
	more := 0
	for i := range r.CPUs() {
		if cpu == ring.AllCPUs || cpu == i {
			more += ring.Memory(size) - ring.Memory(r.Size(i))
		}
	}
	if err := a.t.memory.take(more); err != nil {
		return err
	}
	if !r.Resize(cpu, size) {
		a.t.memory.give(more)
		return errno.ENOMEM
	}
	return nil
}
