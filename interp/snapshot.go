package interp

import (
	"fmt"
	"maps"
	"slices"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Snapshot is the machine's memory at a moment between runs. Taking it copies
// nothing: a page is saved when it is first written after that.
type Snapshot struct {
	m *Machine
	// undo is how many pages had been saved when it was taken.
	undo int
	heap heap
	user heap
	exec x86.Addr
	part x86.Range
	stub stubs
	syms []kimage.Symbol
}

// Snapshot keeps the machine's memory as it is, to compare with and to go back
// to. It does not keep the tasks' registers, the clock or the scheduler's state.
// It fails with ErrNested inside a handler.
func (m *Machine) Snapshot() (*Snapshot, error) {
	if err := m.outside(); err != nil {
		return nil, err
	}
	s := &Snapshot{m: m, undo: len(m.undo), exec: m.execNext, part: m.execPart, syms: slices.Clone(m.symbols)}
	s.heap, s.user = m.heap.clone(), m.user.clone()
	s.stub = stubs{slices.Clone(m.stubs.pages), m.stubs.used, slices.Clone(m.stubs.fns)}
	m.anew()
	m.snapshots = append(m.snapshots, s)
	m.track = true
	m.cleanPages(0)
	return s, nil
}

// cleanPages makes the n-th saved page and all later ones be saved again when
// they are next written.
func (m *Machine) cleanPages(n int) {
	for _, u := range m.undo[n:] {
		u.r.attr[u.i] &^= attrDirty
	}
	m.flushTLB()
}

// saved is what a page held when it was first written after a snapshot.
type saved struct {
	r   *region
	i   uint64
	old *page
}

func (s *saved) page() x86.Addr { return s.r.Start + x86.Addr(s.i*PageSize) }

// dropped is the list without the n-th and all later ones.
func dropped(list []saved, n int) []saved {
	clear(list[n:])
	return list[:n]
}

func (m *Machine) outside() error {
	if err := m.Closed(); err != nil {
		return err
	}
	if err := m.ours(); err != nil {
		return err
	}
	if m.cur.depth > 0 {
		return machine.ErrNested
	}
	return nil
}

// Dirty lists the pages whose content differs from the snapshot's, whoever wrote
// them, in ascending order, with neighbours joined.
func (m *Machine) Dirty(since *Snapshot) []x86.Range {
	if m.gone {
		return nil
	}
	first := map[x86.Addr]saved{}
	for _, u := range m.undo[since.undo:] {
		if _, ok := first[u.page()]; !ok {
			first[u.page()] = u
		}
	}
	pages := slices.Sorted(maps.Keys(first))
	var list []x86.Range
	for _, p := range pages {
		u := first[p]
		if *u.r.at(u.i) == *u.old {
			continue
		}
		if n := len(list); n > 0 && list[n-1].End == p {
			list[n-1].End += PageSize
		} else {
			list = append(list, x86.Range{Start: p, End: p + PageSize})
		}
	}
	return list
}

// Restore brings all memory, text included, back to what it held at the
// snapshot, and frees what was allocated since. Later snapshots are void. It
// fails with ErrNested inside a handler, and with errno.EINVAL for a void
// snapshot.
func (m *Machine) Restore(s *Snapshot) error {
	if err := m.outside(); err != nil {
		return err
	}
	at := slices.Index(m.snapshots, s)
	if at < 0 {
		return fmt.Errorf("snapshot is void: %w", errno.EINVAL)
	}
	m.anew()
	list := m.undo
	for i := len(list) - 1; i >= s.undo; i-- {
		u := list[i]
		*u.r.at(u.i) = *u.old
		if u.r.attr[u.i]&attrX != 0 {
			for _, c := range m.cpus {
				m.drop(c, u.page(), PageSize)
			}
		}
	}
	m.forgetGates()
	m.exec.clear(s.exec, m.execNext)
	m.cleanPages(s.undo)
	m.undo = dropped(m.undo, s.undo)
	m.snapshots = m.snapshots[:at+1]
	m.forgetAllocations(s)
	for _, fn := range m.restored {
		fn()
	}
	return nil
}

// OnRestore has fn called after every Restore: what it knows of guest memory may
// be wrong.
func (m *Machine) OnRestore(fn func()) { m.restored = append(m.restored, fn) }

// Discard forgets a snapshot and every later one, and leaves memory as it is.
// Once there is no snapshot, pages are not saved any more.
func (m *Machine) Discard(s *Snapshot) {
	at := slices.Index(m.snapshots, s)
	if at < 0 {
		return
	}
	m.snapshots = slices.Delete(m.snapshots, at, len(m.snapshots))
	if at == 0 {
		m.cleanPages(0)
		m.undo = dropped(m.undo, 0)
		m.track = false
	}
}

// forgetAllocations brings the allocators back to the snapshot. Heap pages that
// were mapped since stay mapped; they are zeroed when they are handed out again.
func (m *Machine) forgetAllocations(s *Snapshot) {
	m.heap, m.user = s.heap.clone(), s.user.clone()
	m.execNext, m.execPart, m.symbols = s.exec, s.part, slices.Clone(s.syms)
	m.stubs = stubs{slices.Clone(s.stub.pages), s.stub.used, slices.Clone(s.stub.fns)}
}
