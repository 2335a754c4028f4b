//go:build cgo && linux && amd64

package emu

// #include <string.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Snapshot is the machine's memory at a moment between runs. Taking it copies
// nothing: a page is saved when it is first written after that.
type Snapshot struct {
	m *Machine
	// undo is how many pages had been saved when it was taken.
	undo C.int
	heap heap
	user heap
	exec x86.Addr
	part x86.Range
	stub stubs
	syms []kimage.Symbol
	// cpus is nil but for a booted machine.
	cpus *stopped
}

// Snapshot keeps the machine's memory as it is, to compare with and to go back
// to. It does not keep the tasks' registers, the clock or the scheduler's state, but
// for a booted kernel's: of that it keeps everything. There, executable memory that the
// machine has added (AllocExec, Callout) is not part of it, so that whoever made it can
// go on with it; probes have to be as they were at the snapshot before Restore.
// It fails with ErrNested inside a handler.
func (m *Machine) Snapshot() (*Snapshot, error) {
	if err := m.outside(); err != nil {
		return nil, err
	}
	s := &Snapshot{m: m, undo: m.c.nundo, exec: m.execNext, part: m.execPart, syms: slices.Clone(m.symbols)}
	s.heap, s.user = m.heap.clone(), m.user.clone()
	s.stub = stubs{slices.Clone(m.stubs.pages), m.stubs.used, slices.Clone(m.stubs.fns)}
	if m.b != nil {
		var err error
		if s.cpus, err = m.stop(); err != nil {
			return nil, err
		}
	}
	m.snapshots = append(m.snapshots, s)
	m.c.track = 1
	m.cleanPages(0)
	return s, nil
}

// cleanPages makes the n-th saved page and all later ones be saved again when
// they are next written.
func (m *Machine) cleanPages(n int) {
	for _, u := range m.undoList()[n:] {
		*u.attr &^= attrDirty
	}
	for _, c := range m.cpus {
		C.kpl_cpu_flush_tlb(c.c)
	}
}

func (m *Machine) undoList() []*C.kpl_undo {
	if m.c.nundo == 0 {
		return nil
	}
	return unsafe.Slice((**C.kpl_undo)(unsafe.Pointer(m.c.undo)), m.c.nundo)
}

func (m *Machine) outside() error {
	if err := m.Closed(); err != nil {
		return err
	}
	if err := m.ours(); err != nil {
		return err
	}
	if m.cur.c.depth > 0 {
		return ErrNested
	}
	return nil
}

// Dirty lists the pages whose content differs from the snapshot's, whoever wrote
// them, in ascending order, with neighbours joined.
func (m *Machine) Dirty(since *Snapshot) []x86.Range {
	if m.c == nil {
		return nil
	}
	first := map[x86.Addr]*C.kpl_undo{}
	for _, u := range m.undoList()[since.undo:] {
		p := x86.Addr(u.page)
		if u.ram != 0 {
			p += m.b.direct
		}
		if first[p] == nil {
			first[p] = u
		}
	}
	pages := slices.Sorted(maps.Keys(first))
	var list []x86.Range
	for _, p := range pages {
		u := first[p]
		if C.memcmp(unsafe.Pointer(u.host), unsafe.Pointer(&u.old[0]), PageSize) == 0 {
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
	list := m.undoList()
	for i := len(list) - 1; i >= int(s.undo); i-- {
		u := list[i]
		if u.ram != 0 {
			m.b.restorePage(m, u)
			continue
		}
		C.memcpy(unsafe.Pointer(u.host), unsafe.Pointer(&u.old[0]), PageSize)
		if *u.attr&attrX != 0 {
			for _, c := range m.cpus {
				m.drop(c, x86.Addr(u.page), PageSize)
			}
		}
	}
	m.forgetGates()
	if m.b == nil {
		m.exec.clear(s.exec, m.execNext)
	}
	m.cleanPages(int(s.undo))
	C.kpl_undo_drop(m.c, s.undo)
	m.snapshots = m.snapshots[:at+1]
	m.forgetAllocations(s)
	if s.cpus != nil {
		if err := m.goBack(s.cpus); err != nil {
			return err
		}
	}
	for _, fn := range m.restored {
		fn()
	}
	return nil
}

// OnRestore has fn called after every Restore: what it knows of guest memory may
// be wrong.
func (m *Machine) OnRestore(fn func()) { m.restored = append(m.restored, fn) }

// Renew is Restore for another user of the machine: who received what happens on it
// (SetTraps, OnLog, OnText, OnSwitch, OnRestore) is forgotten.
func (m *Machine) Renew(s *Snapshot) error {
	m.restored = nil
	if err := m.Restore(s); err != nil {
		return err
	}
	m.traps, m.onLog, m.switched = nil, nil, nil
	m.OnText(nil, nil)
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
		m.cleanPages(0)
		C.kpl_undo_drop(m.c, 0)
		m.c.track = 0
	}
}

// forgetAllocations brings the allocators back to the snapshot. Heap pages that
// were mapped since stay mapped; they are zeroed when they are handed out again.
func (m *Machine) forgetAllocations(s *Snapshot) {
	m.heap, m.user = s.heap.clone(), s.user.clone()
	if m.b != nil {
		return
	}
	m.execNext, m.execPart, m.symbols = s.exec, s.part, slices.Clone(s.syms)
	m.stubs = stubs{slices.Clone(s.stub.pages), s.stub.used, slices.Clone(s.stub.fns)}
}
