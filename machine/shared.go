package machine

// A machine is for one goroutine at a time. What would end the process when
// another one comes in between is refused: a run, a change of text, the end. This
// catches the mistake as Go's maps catch theirs, mostly; it is no lock.

// take claims the machine for a run. outermost means that give has to follow; a run of a handler,
// or of a receiver of faults, is part of the enclosing run.
func (m *Machine) take() (outermost bool, err error) {
	if m.taken.CompareAndSwap(false, true) {
		return true, nil
	}
	return false, m.ours()
}

func (m *Machine) give(outermost bool) {
	if outermost {
		m.taken.Store(false)
	}
}

// ours returns nil if the machine runs nothing, or if the caller was called by the run.
func (m *Machine) ours() error {
	if !m.gone && m.taken.Load() && !m.receiving && !m.engine.Here() {
		return ErrShared
	}
	return nil
}
