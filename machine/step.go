package machine

import (
	"errors"
	"fmt"

	"kprobelab/errno"
	"kprobelab/x86"
)

// Step lets one CPU run for n instructions, without the scheduler: its task, or a task that it may
// take. ran is false if it has nothing to run. Without Options.EveryInstruction, the CPU ends the
// block that it has begun. A task's failure is the error of the step in which it fails.
func (m *Machine) Step(cpu int, n uint64) (ran bool, err error) {
	if err := m.Closed(); err != nil {
		return false, err
	}
	if cpu < 0 || cpu >= len(m.cpus) {
		return false, fmt.Errorf("cpu %d of %d: %w", cpu, len(m.cpus), errno.EINVAL)
	}
	outermost, err := m.take()
	if err != nil {
		return false, err
	}
	defer m.give(outermost)
	if m.cur.Depth() > 0 {
		return false, ErrNested
	}
	m.allow()
	defer m.startTimer()()
	c := m.cpus[cpu]
	t := m.next(c)
	if t == nil {
		return false, nil
	}
	t.left = false
	_, err = m.turn(c, t, m.sh.Instrs+n, nil)
	failed := m.failed
	m.failed = nil
	if err != nil {
		return true, err
	}
	return true, errors.Join(failed...)
}

// next returns the task with which a CPU continues, nil if there is none. If all sleep, the clock
// moves to the first wake-up.
func (m *Machine) next(c *cpu) *Task {
	m.wakeUp()
	if !m.anyCanRun() && m.sleepOn() {
		m.wakeUp()
	}
	list := m.choices(nil, c)
	for _, p := range list {
		if p.t == c.task {
			return p.t
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[0].t
}

func (m *Machine) anyCanRun() bool {
	for _, t := range m.tasks {
		if t.canRun() {
			return true
		}
	}
	return false
}

// Running returns the task of a CPU and its registers; ok is false if the CPU has no task, or a
// task that has not begun its call.
func (m *Machine) Running(cpu int) (t *Task, regs x86.PtRegs, ok bool) {
	if m.gone || m.ours() != nil || cpu < 0 || cpu >= len(m.cpus) {
		return nil, x86.PtRegs{}, false
	}
	c := m.cpus[cpu]
	if c.task == nil || c.task.state != runnable && c.task.state != sleeping {
		return nil, x86.PtRegs{}, false
	}
	return c.task, *c.Regs(), true
}
