package registers

import "slices"

// Set is the breakpoints of a kernel, of all tasks and CPUs.
type Set struct {
	Kernel Kernel
	events []*Event
	traced map[int]*Traced
	gone   map[int]bool
}

// New is a Set without breakpoints.
func New(k Kernel) *Set {
	return &Set{Kernel: k, traced: map[int]*Traced{}, gone: map[int]bool{}}
}

// Asker is the task that calls perf_event_open.
type Asker struct {
	// Privileged is true with CAP_SYS_ADMIN.
	Privileged bool
	// Others reports whether a task belongs to another user; nil: none does.
	Others func(task int) bool
}

// Open is perf_event_open of PERF_TYPE_BREAKPOINT. The error is a *Refusal.
func (s *Set) Open(by Asker, a Attr, task, cpu int) (*Event, error) {
	return s.add(&asked{Event: &Event{a, task, cpu}, s: s, by: by, ofPerf: true})
}

// Register is the kernel's own, for a task (register_user_hw_breakpoint) or a CPU.
func (s *Set) Register(a Attr, task, cpu int) (*Event, error) {
	return s.add(&asked{Event: &Event{a, task, cpu}, s: s})
}

// RegisterWide is register_wide_hw_breakpoint: one on each CPU, or none.
func (s *Set) RegisterWide(a Attr) ([]*Event, error) {
	var list []*Event
	for cpu := range s.Kernel.CPUs {
		if !s.Kernel.online(cpu) {
			continue
		}
		e, err := s.Register(a, Any, cpu)
		if err != nil {
			for _, e := range list {
				s.Close(e)
			}
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (s *Set) add(a *asked) (*Event, error) {
	if err := a.refused(inOrder); err != nil {
		return nil, err
	}
	s.events = append(s.events, a.Event)
	return a.Event, nil
}

// Close releases the register; it does nothing for a closed event.
func (s *Set) Close(e *Event) {
	s.events = slices.DeleteFunc(s.events, func(x *Event) bool { return x == e })
}

// Exit ends a task. Events that were opened for it keep their registers until they are closed; its
// debugger's registers are released.
func (s *Set) Exit(task int) {
	if t := s.traced[task]; t != nil {
		for _, e := range t.slots {
			s.Close(e)
		}
		delete(s.traced, task)
	}
	s.gone[task] = true
}

// All lists the breakpoints, in the order in which they came.
func (s *Set) All() []*Event { return slices.Clone(s.events) }

// room reports whether every CPU that the event may need has a register left for it.
func (s *Set) room(e *Event) bool {
	for cpu := range s.Kernel.CPUs {
		if e.covers(cpu) && s.taken(e, cpu) >= Count {
			return false
		}
	}
	return true
}

// taken returns the number of a CPU's registers that an event cannot have: registers of the CPU's
// own events, and of events of the same task. An event for the CPU counts those of the task that
// has most.
func (s *Set) taken(e *Event, cpu int) int {
	own, of := 0, map[int]int{}
	for _, o := range s.events {
		switch {
		case !o.covers(cpu):
		case o.Task == Any:
			own++
		default:
			of[o.Task]++
		}
	}
	if e.Task != Any {
		return own + of[e.Task]
	}
	most := 0
	for _, n := range of {
		most = max(most, n)
	}
	return own + most
}
