package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Reversible is an Engine that can step backwards.
type Reversible interface {
	Engine
	// Log makes the engine log its changes, from now on, or not any more.
	Log(on bool)
	// Mark is the engine as it is now: its CPUs, and how much it has logged. What is
	// as in an earlier mark may be shared with it.
	Mark(before any) any
	// Undo brings the engine back to a mark, and forgets what was logged since.
	Undo(mark any)
	// Trim forgets what was logged before a mark. The engine calls ForgetSteps when
	// its log takes more than MaxLog bytes.
	Trim(mark any)
	// KeepState is a copy of s, or before, if that is the same. SetState makes s what
	// was kept.
	KeepState(s, before State) State
	SetState(s, kept State)
	// Digest writes all that decides how the engine goes on.
	Digest(w hash.Hash)
	DigestState(w hash.Hash, s State)
}

// ErrNoStepsBack: the engine cannot step backwards.
var ErrNoStepsBack = errors.New("this engine has no steps back")

// journal is what steps back need: at the start of each slice a mark, which has
// registers, clock and scheduler. The engine logs what memory held.
//
// Of what a handler in Go did, only its changes of guest memory are undone.
type journal struct {
	Reversible
	marks []mark
	most  int
}

// mark is the machine at the start of a slice, without its memory.
type mark struct {
	engine        any
	random        []byte
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
	last          x86.PtRegs
}

type cpuMark struct {
	task   *Task
	stale  []x86.Range
	answer Answer
	words  [localWords]uint64
}

// localWords is how many words of a CPU's own page the host may write.
const localWords = 8

type taskMark struct {
	fields taskFields
	saved  State
}

// MaxLog is the most bytes that an engine's log may take.
const MaxLog = bounded.GuestLog

// KeepSteps makes the machine log its changes from now on, so that StepBack can
// undo the last n slices of Run and RunUntil; with 0 it stops. With
// Options.EveryInstruction and a Slice of 1, a slice is an instruction and what its
// trap brought about. Whatever the host changes between two runs (a Call, a write,
// a new task) begins the log anew. It fails with ErrNoStepsBack on an engine that
// cannot.
func (m *Machine) KeepSteps(n int) error {
	if err := m.outside(); err != nil {
		return err
	}
	if n < 0 || n > 1<<22 {
		return fmt.Errorf("%d steps: %w", n, errno.EINVAL)
	}
	r, ok := m.engine.(Reversible)
	if !ok {
		return fmt.Errorf("%s: %w", m.engine.Name(), ErrNoStepsBack)
	}
	m.back = nil
	r.Log(n > 0)
	if n > 0 {
		m.back = &journal{Reversible: r, most: n}
	}
	return nil
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
	j.Undo(k.engine)
	k.restore(m)
	j.marks[len(j.marks)-1] = mark{}
	j.marks = j.marks[:len(j.marks)-1]
	return nil
}

// anew forgets all steps, because the host changes the machine between runs.
func (m *Machine) anew() {
	if m.back != nil && len(m.back.marks) > 0 && !m.taken.Load() {
		m.back.forget()
	}
}

// forget forgets all steps.
func (j *journal) forget() {
	clear(j.marks)
	j.marks = j.marks[:0]
	j.Log(true)
}

// ForgetSteps is called by an engine whose log has become void.
func (h *Host) ForgetSteps() {
	if h.m.back != nil {
		h.m.back.forget()
	}
}

// mark begins a slice.
func (m *Machine) mark() {
	j := m.back
	if j == nil || m.runs > 0 {
		return
	}
	if len(j.marks) == j.most {
		j.forgetFirst()
	}
	var before *mark
	var beforeEngine any
	if n := len(j.marks); n > 0 {
		before = &j.marks[n-1]
		beforeEngine = before.engine
	}
	k := mark{
		engine: j.Mark(beforeEngine), instrs: m.sh.Instrs, extra: m.sh.Extra, cur: m.cur, curCPU: m.curCPU, curTask: m.curTask,
		tasks: slices.Clone(m.tasks), failed: slices.Clone(m.failed), last: m.last, heapGen: m.heap.gen + m.user.gen,
	}
	k.random, _ = m.random.MarshalBinary() // it cannot fail
	if before != nil && before.heapGen == k.heapGen {
		k.heaps = before.heaps
	} else {
		k.heaps = [2]heap{m.heap.clone(), m.user.clone()}
	}
	for _, c := range m.cpus {
		k.cpus = append(k.cpus, cpuMark{
			task: c.task, stale: slices.Clone(c.stale), answer: *c.answer, words: [localWords]uint64(c.words),
		})
	}
	for n, t := range m.tasks {
		tm := taskMark{fields: t.taskFields}
		var saved State
		if before != nil && n < len(before.tasks) {
			saved = before.taskStates[n].saved
		}
		tm.saved = j.KeepState(t.saved, saved)
		k.taskStates = append(k.taskStates, tm)
	}
	j.marks = append(j.marks, k)
}

// forgetFirst makes room for another mark: an eighth of them go at once.
func (j *journal) forgetFirst() {
	n := max(1, j.most/8)
	if n >= len(j.marks) {
		j.forget()
		return
	}
	j.Trim(j.marks[n].engine)
	j.marks = slices.Delete(j.marks, 0, n)
}

func (k *mark) restore(m *Machine) {
	_ = m.random.UnmarshalBinary(k.random) // it made these bytes
	m.sh.Instrs, m.sh.Extra = k.instrs, k.extra
	m.cur, m.curCPU = k.cur, k.curCPU
	m.setTask(k.curTask)
	m.tasks, m.failed, m.last = k.tasks, k.failed, k.last
	if m.heap.gen+m.user.gen != k.heapGen {
		m.heap, m.user = k.heaps[0].clone(), k.heaps[1].clone()
	}
	for n, c := range m.cpus {
		s := &k.cpus[n]
		c.task, c.stale, *c.answer = s.task, s.stale, s.answer
		copy(c.words, s.words[:])
	}
	for n, t := range m.tasks {
		t.taskFields = k.taskStates[n].fields
		m.back.SetState(t.saved, k.taskStates[n].saved)
	}
}

// StateHash is a digest of all that decides how the machine goes on: memory, the
// CPUs' and tasks' registers, clock and scheduler. It fails with ErrNoStepsBack as
// KeepSteps does.
func (m *Machine) StateHash() ([32]byte, error) {
	r, ok := m.engine.(Reversible)
	if !ok {
		return [32]byte{}, fmt.Errorf("%s: %w", m.engine.Name(), ErrNoStepsBack)
	}
	h := sha256.New()
	text, _ := m.random.MarshalBinary()
	h.Write(text)
	put := func(list ...uint64) {
		for _, v := range list {
			_ = binary.Write(h, binary.LittleEndian, v) // a hash does not fail
		}
	}
	put(m.sh.Instrs, m.sh.Extra, uint64(m.curCPU), uint64(m.curTask))
	r.Digest(h)
	for _, t := range m.tasks {
		put(uint64(t.state), t.wake, t.scheds, uint64(len(t.results)))
		r.DigestState(h, t.saved)
	}
	return [32]byte(h.Sum(nil)), nil
}
