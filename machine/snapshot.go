package machine

import (
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Snapshot is the machine's memory at a moment between runs. Taking it copies
// nothing: a page is saved when it is first written after that.
type Snapshot struct {
	m *Machine
	// undo is the number of pages that had been saved when the snapshot was taken.
	undo int
	heap heap
	user heap
	exec x86.Addr
	part x86.Range
	stub stubs
	syms []kimage.Symbol
	// booted is the engine's own state of a booted kernel; nil for another.
	booted any
}

// Snapshot keeps the machine's memory as it is, for comparison and for Restore. It does not keep
// the tasks' registers, the clock and the scheduler's state, except of a booted kernel, of which it
// keeps everything. Of a booted kernel it leaves out executable memory that the machine has added
// (AllocExec, Callout), so that the memory's users can go on with it; probes have to be as they
// were at the snapshot before Restore. It fails with ErrNested inside a handler.
func (m *Machine) Snapshot() (*Snapshot, error) {
	if err := m.outside(); err != nil {
		return nil, err
	}
	s := &Snapshot{m: m, undo: m.engine.Saved(), exec: m.execNext, part: m.execPart, syms: slices.Clone(m.symbols)}
	s.heap, s.user = m.heap.clone(), m.user.clone()
	s.stub = stubs{slices.Clone(m.stubs.pages), m.stubs.used, slices.Clone(m.stubs.fns)}
	if m.booted != nil {
		var err error
		if s.booted, err = m.booted.Keep(); err != nil {
			return nil, err
		}
	}
	m.snapshots = append(m.snapshots, s)
	m.engine.Track(true)
	m.engine.Clean(0)
	return s, nil
}

func (m *Machine) outside() error {
	if err := m.Closed(); err != nil {
		return err
	}
	if err := m.ours(); err != nil {
		return err
	}
	if m.cur.Depth() > 0 {
		return ErrNested
	}
	return nil
}

// Dirty lists the pages whose content differs from the snapshot's, written by host or guest, in
// ascending order, with neighbours joined.
func (m *Machine) Dirty(since *Snapshot) []x86.Range {
	if m.gone {
		return nil
	}
	var list []x86.Range
	for _, p := range m.engine.Changed(since.undo) {
		if n := len(list); n > 0 && list[n-1].End == p {
			list[n-1].End += PageSize
		} else {
			list = append(list, x86.Range{Start: p, End: p + PageSize})
		}
	}
	return list
}

// Restore sets all memory, text included, back to its content at the snapshot, and frees later
// allocations. Later snapshots are void. It fails with ErrNested inside a handler, and with
// errno.EINVAL for a void snapshot.
func (m *Machine) Restore(s *Snapshot) error {
	if err := m.outside(); err != nil {
		return err
	}
	at := slices.Index(m.snapshots, s)
	if at < 0 {
		return fmt.Errorf("snapshot is void: %w", errno.EINVAL)
	}
	m.engine.Rewind(s.undo)
	if m.booted == nil {
		m.engine.Unmap(x86.Range{Start: s.exec, End: m.execNext})
	}
	m.engine.Clean(s.undo)
	m.engine.Forget(s.undo)
	m.snapshots = m.snapshots[:at+1]
	m.forgetAllocations(s)
	if m.booted != nil {
		if err := m.booted.GoBack(s.booted); err != nil {
			return err
		}
	}
	for _, fn := range m.restored {
		fn()
	}
	return nil
}

// OnRestore installs fn, which is called after every Restore: its copies of guest memory may be out
// of date.
func (m *Machine) OnRestore(fn func()) { m.restored = append(m.restored, fn) }

// Renew is Restore for another user of the machine: it also removes all receivers (SetTraps, OnLog,
// OnText, OnSwitch, OnWait, OnRestore).
func (m *Machine) Renew(s *Snapshot) error {
	m.restored = nil
	if err := m.Restore(s); err != nil {
		return err
	}
	m.traps, m.onLog, m.switched, m.onWait, m.onTaken = nil, nil, nil, nil, nil
	m.OnText(nil, nil)
	if m.watch != nil {
		return m.Watch(nil, nil)
	}
	return nil
}

// Discard forgets a snapshot and every later one, and leaves memory as it is.
// Once there is no snapshot, pages are not saved any more.
func (m *Machine) Discard(s *Snapshot) {
	at := slices.Index(m.snapshots, s)
	if at < 0 {
		return
	}
	m.snapshots = slices.Delete(m.snapshots, at, len(m.snapshots))
	if at == 0 {
		m.engine.Clean(0)
		m.engine.Forget(0)
		m.engine.Track(false)
	}
}

// forgetAllocations brings the allocators back to the snapshot. Heap pages that
// were mapped since stay mapped; they are zeroed when they are handed out again.
func (m *Machine) forgetAllocations(s *Snapshot) {
	m.heap, m.user = s.heap.clone(), s.user.clone()
	if m.booted != nil {
		return
	}
	m.execNext, m.execPart, m.symbols = s.exec, s.part, slices.Clone(s.syms)
	m.stubs = stubs{slices.Clone(s.stub.pages), s.stub.used, slices.Clone(s.stub.fns)}
}
