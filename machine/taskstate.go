package machine

// TaskSwitches returns the state of a task that a grace period of tasks-RCU depends on: the number
// of times that it gave up its CPU voluntarily or ended a call (the equivalent of a thread's return
// to user mode), and whether it is inside a call and not asleep. ok is false if no task has that
// number.
func (m *Machine) TaskSwitches(task int) (n uint64, inside, ok bool) {
	if m.booted != nil { // one task stands for all: the guest knows its own
		return 0, task == 0 && !m.booted.Grace(), task == 0
	}
	if task < 0 || task >= len(m.tasks) {
		return 0, false, false
	}
	t := m.tasks[task]
	return t.scheds + uint64(len(t.results)), t.state == runnable, true
}

// RunUntil is Run that ends as soon as done returns true. done is called before
// every slice. Tasks may then be in the middle of their calls; a later Run lets
// them go on.
func (m *Machine) RunUntil(done func() bool) error {
	m.until = done
	defer func() { m.until = nil }()
	return m.Run()
}
