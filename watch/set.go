package watch

import (
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/watch/registers"
	"kprobelab/x86"
)

// Hit describes one instruction's accesses to a Watchpoint's bytes.
type Hit struct {
	// Kinds are the watched kinds of access that it made.
	Kinds uint32
	// Old and New are the values of the bytes before and after the instruction, the first byte
	// lowest.
	Old, New uint64
	// CPU and Task executed it; Now is the virtual clock, in nanoseconds since boot.
	CPU, Task int
	Now       uint64
}

// Handler receives hits. The CPU continues with regs as the handler leaves them; h and regs are
// valid during the call. Guest code that it calls hits nothing.
type Handler func(w *Watchpoint, h *Hit, regs *x86.PtRegs)

// Watchpoint is memory whose accesses are handled. Its fields are not changed while it is set.
type Watchpoint struct {
	Addr x86.Addr
	// Len is 1, 2, 4 or 8; of an instruction the address alone counts.
	Len uint32
	// Kinds are machine.WatchRead and machine.WatchWrite, or machine.WatchExec.
	Kinds uint32
	// CPU and Task select the accesses that count; Any selects all.
	CPU, Task int
	Handler   Handler
	// Hits is the number of hits so far.
	Hits uint64
}

// Any is every CPU or task.
const Any = -1

// Set is the watchpoints of a machine.
type Set struct {
	// Registers, if it is set, are the debug registers that a watchpoint takes when it is added:
	// one on each CPU, or on its task's or its own CPU. A watchpoint that the kernel would refuse
	// is refused with a *registers.Refusal. Nil: the number of watchpoints has no such limit.
	Registers *registers.Set

	m     *machine.Machine
	list  []*Watchpoint
	taken map[*Watchpoint][]*registers.Event
	now   Hit
}

// NewSet is the machine's, empty. A machine has one Set at a time.
func NewSet(m *machine.Machine) *Set {
	return &Set{m: m, taken: map[*Watchpoint][]*registers.Event{}}
}

// Check returns the error in a length or in accesses.
func Check(length, kinds uint32) error {
	switch {
	case length == 0 || length > machine.MaxWatch || length&(length-1) != 0:
		return fmt.Errorf("a watchpoint of %d bytes: %w: it has 1, 2, 4 or 8", length, errno.EINVAL)
	case kinds == 0:
		return fmt.Errorf("a watchpoint for no access: %w", errno.EINVAL)
	case kinds&machine.WatchExec != 0 && kinds != machine.WatchExec:
		return fmt.Errorf("a watchpoint for %s: %w: execution goes with no other access", Access(kinds), errno.EINVAL)
	}
	return nil
}

// Add sets a watchpoint. Its address need not be mapped, or aligned but for Registers.
func (s *Set) Add(w *Watchpoint) error {
	if err := Check(w.Len, w.Kinds); err != nil {
		return err
	}
	if slices.Contains(s.list, w) {
		return fmt.Errorf("a watchpoint that is set: %w", errno.EBUSY)
	}
	if err := s.take(w); err != nil {
		return err
	}
	if err := s.replace(append(slices.Clone(s.list), w)); err != nil {
		s.giveUp(w)
		return err
	}
	return nil
}

// Remove removes a watchpoint; it does nothing if the watchpoint is not set.
func (s *Set) Remove(w *Watchpoint) error {
	if !slices.Contains(s.list, w) {
		return nil
	}
	s.giveUp(w)
	return s.replace(slices.DeleteFunc(slices.Clone(s.list), func(x *Watchpoint) bool { return x == w }))
}

// All lists the watchpoints in the order in which they were set.
func (s *Set) All() []*Watchpoint { return slices.Clone(s.list) }

func (s *Set) replace(list []*Watchpoint) error {
	words := make([]machine.Watch, len(list))
	for i, w := range list {
		words[i] = machine.Watch{Addr: w.Addr, Len: w.Len, Kinds: w.Kinds}
		if w.Kinds == machine.WatchExec {
			words[i].Len = 1
		}
	}
	if err := s.m.Watch(words, s.hit); err != nil {
		return err
	}
	s.list = list
	return nil
}

// hit calls the handlers, in the order of the list of this moment.
func (s *Set) hit(hits []machine.WatchHit, regs *x86.PtRegs) {
	list := s.list
	cpu, task := s.m.CPU(), s.m.Task()
	for i := range hits {
		h := &hits[i]
		w := list[h.Watch]
		if w.CPU != Any && w.CPU != cpu || w.Task != Any && w.Task != task {
			continue
		}
		w.Hits++
		if w.Handler != nil {
			s.now = Hit{Kinds: h.Kinds, Old: h.Old, New: h.New, CPU: cpu, Task: task, Now: s.m.Now()}
			w.Handler(w, &s.now, regs)
		}
	}
}
