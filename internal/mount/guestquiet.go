//go:build linux

package mount

import (
	"encoding/binary"

	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// While init serves a file, the guest's buffers record nothing: a probe on vfs_read, or the
// function tracer, would record the reading of the trace, and the trace would never end. Each CPU's
// part of a buffer has a count of the requests for that (ring_buffer_per_cpu.record_disabled),
// which no file shows.

// quieter knows where the counts are.
type quieter struct {
	live *Live
	// head is the list of buffers (ftrace_trace_arrays).
	head x86.Addr
	// What follows are offsets: of the list's link and the buffer in struct trace_array, of the ring
	// buffer in that, of its CPUs' parts in it, and of the count in one.
	link, buffer, ring, parts, count int64
	cpus                             int
}

// newQuieter finds the counts by the kernel's types; nil without types.
func newQuieter(f *Live) *quieter {
	head := f.lab.Image.Lookup("ftrace_trace_arrays")
	if len(head) != 1 {
		return nil
	}
	q := &quieter{live: f, head: head[0].Addr, cpus: f.lab.Machine.NumCPU()}
	types := f.lab.Image.Types()
	for _, m := range []struct {
		to       *int64
		in, name string
	}{
		{&q.link, "trace_array", "list"}, {&q.buffer, "trace_array", "array_buffer"}, {&q.ring, "array_buffer", "buffer"},
		{&q.parts, "trace_buffer", "buffers"}, {&q.count, "ring_buffer_per_cpu", "record_disabled"},
	} {
		t, ok := types.Struct(m.in)
		if !ok {
			return nil
		}
		member, ok := t.Member(m.name)
		if !ok {
			return nil
		}
		*m.to = int64(member.Offset / 8)
	}
	return q
}

// during calls fn while no buffer records.
func (q *quieter) during(fn func() error) error {
	if q == nil {
		return fn()
	}
	counts := q.counts()
	for _, at := range counts {
		q.add(at, 1)
	}
	state, known := q.recursion()
	before := q.pointer(state)
	err := fn()
	if known {
		q.setWord(state, before)
	}
	for _, at := range counts {
		q.add(at, ^uint32(0))
	}
	return err
}

// recursion returns the address of the tracers' state in init's task (task_struct.trace_recursion). If the function
// graph finds no room for a function's entry, it leaves a bit set there: it is inside a function (TRACE_GRAPH_BIT).
func (q *quieter) recursion() (x86.Addr, bool) {
	at, ok := kimage.CurrentTask(q.live.lab.Image.Lookup)
	task, known := q.live.lab.Image.Types().Struct("task_struct")
	if !ok || !known {
		return 0, false
	}
	member, ok := task.Member("trace_recursion")
	current := q.pointer(q.live.lab.Machine.GSBase(q.live.lab.Machine.CPU()) + at)
	return current.Add(int64(member.Offset / 8)), ok && current != 0
}

func (q *quieter) setWord(at, v x86.Addr) {
	_ = q.live.lab.Machine.WriteMem(at, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// counts returns the addresses of the buffers' counts (record_disabled), one for each CPU of each buffer.
func (q *quieter) counts() (list []x86.Addr) {
	n := 0
	for at := q.pointer(q.head); at != 0 && at != q.head && n < bounded.MountInstances; at = q.pointer(at) {
		n++
		parts := q.pointer(q.pointer(at.Add(q.buffer + q.ring - q.link)).Add(q.parts))
		for cpu := range q.cpus {
			if part := q.pointer(parts.Add(int64(8 * cpu))); part != 0 {
				list = append(list, part.Add(q.count))
			}
		}
	}
	return list
}

func (q *quieter) pointer(at x86.Addr) x86.Addr {
	var b [8]byte
	if q.live.lab.Machine.ReadMem(at, b[:]) != nil {
		return 0
	}
	return x86.Addr(binary.LittleEndian.Uint64(b[:]))
}

// add changes a count; an error shows in the next system call.
func (q *quieter) add(at x86.Addr, n uint32) {
	var b [4]byte
	if q.live.lab.Machine.ReadMem(at, b[:]) == nil {
		binary.LittleEndian.PutUint32(b[:], binary.LittleEndian.Uint32(b[:])+n)
		_ = q.live.lab.Machine.WriteMem(at, b[:])
	}
}
