package interp

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"kprobelab/errno"
	"kprobelab/x86"
)

// journal is what steps back need: at the start of each slice a mark, which has
// registers, clock and scheduler, and after it the changes of memory and of the
// blocks that were made since, in order.
//
// Equal registers of neighbouring marks are kept once. Of what a handler in Go
// did, only its changes of guest memory are undone.
type journal struct {
	marks   []mark
	most    int
	changes []change
	bytes   int
}

// change is one to undo.
type change struct {
	old   []byte // what memory held at
	at    x86.Addr
	block *block // was added to, or dropped from, cpu's
	cpu   *cpu
	added bool
}

// mark is the machine at the start of a slice, without its memory.
type mark struct {
	changes       int // how many there were
	random        [2][]byte
	instrs, extra uint64
	cur           *cpu
	curCPU        int
	curTask       int
	cpus          []cpuMark
	tasks         []*Task
	taskStates    []taskMark
	failed        []error
	heaps         [2]heap
	heapGen       uint64
	console       console
	last          x86.PtRegs
}

type cpuMark struct {
	state            *state
	fs, gs, kernelGS uint64
	sys              system
	single           bool
	task             *Task
	stale            []x86.Range
	answer           answer
	words            [localWords]uint64
}

// localWords is how many words of a CPU's own page the host may write.
const localWords = 8

type taskMark struct {
	fields taskFields
	saved  *state
}

// journalBytes is the most that the changes of memory may take.
const journalBytes = 256 << 20

// KeepSteps makes the machine log its changes from now on, so that StepBack can
// undo the last n slices of Run and RunUntil; with 0 it stops. With
// Options.EveryInstruction and a Slice of 1, a slice is an instruction and what its
// trap brought about. Whatever the host changes between two runs (a Call, a write,
// a new task) begins the log anew.
func (m *Machine) KeepSteps(n int) error {
	if err := m.outside(); err != nil {
		return err
	}
	if n < 0 || n > 1<<22 {
		return fmt.Errorf("%d steps: %w", n, errno.EINVAL)
	}
	m.back = nil
	if n > 0 {
		m.back = &journal{most: n}
	}
	m.logBlocks(m.back)
	m.flushTLB()
	return nil
}

func (m *Machine) logBlocks(j *journal) {
	for _, c := range m.cpus {
		c.blocks.log = j
	}
}

// Steps is how many slices StepBack can undo.
func (m *Machine) Steps() int {
	if m.back == nil {
		return 0
	}
	return len(m.back.marks)
}

// StepBack undoes the last slice: registers, memory, blocks, clock and scheduler
// are what they were, and the next run goes on alike. It fails with errno.ENODATA
// where no slice is logged.
func (m *Machine) StepBack() error {
	if err := m.outside(); err != nil {
		return err
	}
	if m.Steps() == 0 {
		return fmt.Errorf("no step to undo: %w", errno.ENODATA)
	}
	j := m.back
	k := &j.marks[len(j.marks)-1]
	m.logBlocks(nil)
	defer m.logBlocks(j)
	for n := len(j.changes) - 1; n >= k.changes; n-- {
		j.changes[n].undo(m)
		j.bytes -= len(j.changes[n].old)
	}
	clear(j.changes[k.changes:])
	j.changes = j.changes[:k.changes]
	k.restore(m)
	j.marks[len(j.marks)-1] = mark{}
	j.marks = j.marks[:len(j.marks)-1]
	return nil
}

func (c *change) undo(m *Machine) {
	switch {
	case c.block == nil:
		m.copyIn(c.at, c.old)
	case c.added:
		c.cpu.blocks.forget(c.block)
	default:
		c.cpu.blocks.revive(c.block)
	}
}

// anew forgets all steps, because the host changes the machine between runs.
func (m *Machine) anew() {
	if m.back != nil && !m.taken.Load() {
		m.back.forget()
	}
}

func (j *journal) forget() {
	clear(j.marks)
	clear(j.changes)
	j.marks, j.changes, j.bytes = j.marks[:0], j.changes[:0], 0
}

// memory is told before memory is written.
func (j *journal) memory(m *Machine, addr x86.Addr, n int) {
	if len(j.marks) == 0 {
		return
	}
	old := make([]byte, n)
	m.copyOut(addr, old)
	j.changes = append(j.changes, change{old: old, at: addr})
	if j.bytes += n; j.bytes > journalBytes {
		j.forget()
	}
}

// block is told after a block was added or dropped.
func (j *journal) block(c *cpu, b *block, added bool) {
	if len(j.marks) > 0 {
		j.changes = append(j.changes, change{block: b, cpu: c, added: added})
	}
}

// mark begins a slice.
func (j *journal) mark(m *Machine) {
	if len(j.marks) == j.most {
		j.forgetFirst()
	}
	k := mark{
		changes: len(j.changes), instrs: m.instrs, extra: m.extra, cur: m.cur, curCPU: m.curCPU, curTask: m.curTask,
		tasks: slices.Clone(m.tasks), failed: slices.Clone(m.failed), console: m.console.clone(), last: m.last,
	}
	k.random[0], _ = m.random.MarshalBinary() // these cannot fail
	k.random[1], _ = m.entropy.MarshalBinary()
	var before *mark
	if n := len(j.marks); n > 0 {
		before = &j.marks[n-1]
	}
	k.heapGen = m.heap.gen + m.user.gen
	if before != nil && before.heapGen == k.heapGen {
		k.heaps = before.heaps
	} else {
		k.heaps = [2]heap{m.heap.clone(), m.user.clone()}
	}
	for n, c := range m.cpus {
		cm := cpuMark{
			state: &c.state, fs: c.fs, gs: c.gs, kernelGS: c.kernelGS, sys: c.sys, single: c.single,
			task: c.task, stale: slices.Clone(c.stale), answer: c.answer, words: [localWords]uint64(c.words),
		}
		cm.sys.msr = maps.Clone(c.sys.msr)
		if before != nil && *before.cpus[n].state == c.state {
			cm.state = before.cpus[n].state
		} else {
			s := c.state
			cm.state = &s
		}
		k.cpus = append(k.cpus, cm)
	}
	for n, t := range m.tasks {
		tm := taskMark{fields: t.taskFields}
		if before != nil && n < len(before.tasks) && *before.taskStates[n].saved == t.saved {
			tm.saved = before.taskStates[n].saved
		} else {
			s := t.saved
			tm.saved = &s
		}
		k.taskStates = append(k.taskStates, tm)
	}
	j.marks = append(j.marks, k)
}

// forgetFirst makes room for another mark: an eighth of them go at once.
func (j *journal) forgetFirst() {
	n := max(1, j.most/8)
	first := len(j.changes)
	if n < len(j.marks) {
		first = j.marks[n].changes
	}
	for _, c := range j.changes[:first] {
		j.bytes -= len(c.old)
	}
	j.changes = slices.Delete(j.changes, 0, first)
	j.marks = slices.Delete(j.marks, 0, min(n, len(j.marks)))
	for i := range j.marks {
		j.marks[i].changes -= first
	}
}

func (k *mark) restore(m *Machine) {
	_ = m.random.UnmarshalBinary(k.random[0]) // it made these bytes
	_ = m.entropy.UnmarshalBinary(k.random[1])
	m.instrs, m.extra = k.instrs, k.extra
	m.cur, m.curCPU, m.curTask = k.cur, k.curCPU, k.curTask
	m.tasks, m.failed, m.console, m.last = k.tasks, k.failed, k.console, k.last
	if m.heap.gen+m.user.gen != k.heapGen {
		m.heap, m.user = k.heaps[0].clone(), k.heaps[1].clone()
	}
	for n, c := range m.cpus {
		s := &k.cpus[n]
		c.state, c.fs, c.gs, c.kernelGS, c.sys, c.single = *s.state, s.fs, s.gs, s.kernelGS, s.sys, s.single
		c.task, c.stale, c.answer = s.task, s.stale, s.answer
		copy(c.words, s.words[:])
	}
	for n, t := range m.tasks {
		t.taskFields, t.saved = k.taskStates[n].fields, *k.taskStates[n].saved
	}
}

// StateHash is a digest of all that decides how the machine goes on: memory, the
// CPUs' and tasks' registers, clock and scheduler.
func (m *Machine) StateHash() [32]byte {
	h := sha256.New()
	put := func(list ...any) {
		for _, v := range list {
			_ = binary.Write(h, binary.LittleEndian, v) // a hash does not fail
		}
	}
	text, _ := m.random.MarshalBinary()
	h.Write(text)
	put(m.instrs, m.extra, uint64(m.curCPU), uint64(m.curTask))
	for _, c := range m.cpus {
		put(c.readRegs(), c.x, c.mxcsr, c.fs, c.gs, c.kernelGS, c.sys.cr, c.single)
	}
	for _, t := range m.tasks {
		s := t.saved
		put(uint64(t.state), t.wake, t.scheds, uint64(len(t.results)), s.r, s.ip, s.flags, s.cc.all(), s.x)
	}
	var zero page
	for _, r := range m.regions {
		for i, p := range r.pages {
			if p != nil && *p != zero {
				put(uint64(r.Start), uint64(i))
				h.Write(p[:])
			}
		}
	}
	return [32]byte(h.Sum(nil))
}
