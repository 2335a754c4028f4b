package machine

import (
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/contract"
	"kprobelab/x86"
)

type taskState int

const (
	idle     taskState = iota // has nothing to do
	ready                     // has a call to begin
	runnable                  // is inside a call
	sleeping
	dead
)

// Task is a thread of the guest kernel: a stack, and calls that it makes one
// after the other.
//
//	idle -> ready -> runnable <-> sleeping
//	         ^          |
//	         +----------+-> dead
type Task struct {
	// Name is for people.
	Name string

	m     *Machine
	n     int
	stack x86.Addr // its end: past the last byte
	saved contract.State

	state taskState
	cpu   *cpu // the CPU that has its registers; if nil, saved has them
	pin   int  // -1: any CPU
	wake  uint64
	// it gave up its CPU, and has to let another task run if there is one
	left bool

	calls   []Invocation
	results []Result
	words   []uint64
	bufs    []copyBack
	err     error
	scheds  uint64
}

// newTask takes the next number or, once all are taken, the first dead task's.
func (m *Machine) newTask(name string) (*Task, error) {
	n := len(m.tasks)
	if n == MaxTasks {
		if n = slices.IndexFunc(m.tasks, func(t *Task) bool { return t.state == dead }); n < 0 {
			return nil, fmt.Errorf("task %q: %w: %d tasks are alive: %w", name, ErrNoMemory, MaxTasks, errno.EAGAIN)
		}
		old := m.tasks[n]
		t := &Task{Name: name, m: m, n: n, stack: old.stack, saved: old.saved, pin: -1}
		m.tasks[n] = t
		return t, nil
	}
	// Each stack is aligned to its size and has as much unmapped below it.
	low := m.stacks.Start.Add(int64(n)*2*ThreadSize + ThreadSize)
	m.engine.Allow(x86.Range{Start: low, End: low + ThreadSize}, AttrR|AttrW)
	t := &Task{Name: name, m: m, n: n, stack: low + ThreadSize, saved: m.engine.NewState(), pin: -1}
	m.tasks = append(m.tasks, t)
	return t, nil
}

// Go adds a task that makes the calls in order. It runs during Run, and during a
// Call of the boot task. A call that fails ends the task. A task without calls is
// done at once.
func (m *Machine) Go(name string, calls ...Invocation) (*Task, error) {
	if err := m.Closed(); err != nil {
		return nil, err
	}
	if m.booted != nil {
		return nil, fmt.Errorf("a booted kernel has tasks of its own: %w", errno.EINVAL)
	}
	t, err := m.newTask(name)
	if err != nil {
		return nil, err
	}
	t.calls, t.state = calls, ready
	if len(calls) == 0 {
		t.state = dead
	}
	return t, nil
}

// Number is the task's number. The boot task has 0, the next tasks 1, 2 and so
// on; once MaxTasks have been made, new tasks take the numbers of dead ones.
func (t *Task) Number() int { return t.n }

// Pin lets the task run on one CPU only. It is for a task that has not run yet.
func (t *Task) Pin(cpu int) error {
	if cpu < 0 || cpu >= len(t.m.cpus) {
		return fmt.Errorf("pin to cpu %d of %d: %w", cpu, len(t.m.cpus), errno.EINVAL)
	}
	t.pin = cpu
	return nil
}

// Results returns the results of the calls that have ended.
func (t *Task) Results() []Result { return t.results }

// Err returns the error that ended the task early, or nil.
func (t *Task) Err() error { return t.err }

// Done reports whether the task has made all its calls, or failed.
func (t *Task) Done() bool { return t.state == idle || t.state == dead }

// Switches counts how often the task gave up its CPU voluntarily or ended: the events that a grace
// period of tasks-RCU waits for.
func (t *Task) Switches() uint64 { return t.scheds }

// Stack is the task's stack, lowest byte first.
func (t *Task) Stack() x86.Range { return x86.Range{Start: t.stack - ThreadSize, End: t.stack} }

// Tasks lists all tasks by number, the boot task first.
func (m *Machine) Tasks() []*Task { return m.tasks }

// Wake ends a task's sleep at once.
func (m *Machine) Wake(t *Task) {
	if t.state == sleeping {
		t.state = runnable
	}
}
