//go:build cgo && linux && amd64

package emu

// TaskSwitches is how often a task gave up its CPU of its own accord or came to
// the end of a call, which is to it what user mode is to a thread; and whether
// it is inside a call and not asleep. A grace period of tasks-RCU asks for that.
// ok is false where there is no task of that number.
func (m *Machine) TaskSwitches(task int) (n uint64, inside, ok bool) {
	if task < 0 || task >= len(m.tasks) {
		return 0, false, false
	}
	t := m.tasks[task]
	return t.scheds + uint64(len(t.results)), t.state == runnable, true
}

// RunUntil is Run that ends as soon as done says so, which is asked before
// every slice. Tasks may then be anywhere in their calls; a later Run lets
// them go on.
func (m *Machine) RunUntil(done func() bool) error {
	m.until = done
	defer func() { m.until = nil }()
	return m.Run()
}
