package watch

import (
	"kprobelab/machine"
	"kprobelab/watch/registers"
)

// types maps the accesses to the kernel's values of bp_type.
var types = []struct{ kind, as uint32 }{
	{machine.WatchRead, registers.Read}, {machine.WatchWrite, registers.Write}, {machine.WatchExec, registers.Execute},
}

// Attr returns the kernel's request for the watchpoint.
func (w *Watchpoint) Attr() registers.Attr {
	a := registers.Attr{Addr: w.Addr, Len: uint64(w.Len)}
	for _, t := range types {
		if w.Kinds&t.kind != 0 {
			a.Type |= t.as
		}
	}
	return a
}

// take reserves the debug registers for a watchpoint, if they are counted.
func (s *Set) take(w *Watchpoint) error {
	if s.Registers == nil {
		return nil
	}
	if w.Task == Any && w.CPU == Any {
		list, err := s.Registers.RegisterWide(w.Attr())
		s.taken[w] = list
		return err
	}
	e, err := s.Registers.Register(w.Attr(), w.Task, w.CPU)
	s.taken[w] = []*registers.Event{e}
	return err
}

func (s *Set) giveUp(w *Watchpoint) {
	for _, e := range s.taken[w] {
		s.Registers.Close(e)
	}
	delete(s.taken, w)
}
