package machine

// TaskSwitches says what a grace period of tasks-RCU asks of a task: how often it
// gave up its CPU of its own accord or ended a call (which is to a task what a
// return to user mode is to a thread), and whether it is inside a call and not
// asleep. ok is false where there is no task of that number.
func (m *Machine) TaskSwitches(task int) (n uint64, inside, ok bool) {
	if m.booted != nil { // one that stands for all: the guest knows
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
