package machine

import (
	"errors"
	"fmt"
	"math"

	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// Run lets all tasks make their calls, and returns when each task is done or has failed. Its error
// joins the errors of the tasks that failed since the last Run. ErrDeadlock and a *BudgetError end
// it for all tasks. Options.Budget is for the whole run.
func (m *Machine) Run() error {
	if err := m.Closed(); err != nil {
		return err
	}
	outermost, err := m.take()
	if err != nil {
		return err
	}
	defer m.give(outermost)
	if m.cur.Depth() > 0 {
		return ErrNested
	}
	err = m.schedule(nil)
	failed := m.failed
	m.failed = nil
	if err != nil {
		return err
	}
	return errors.Join(failed...)
}

// schedule lets CPUs run until the target's call has returned or failed. Without
// a target, it goes on until no task has anything left to do.
func (m *Machine) schedule(target *Task) error {
	if m.runs == 0 { // else it is a receiver of faults that calls
		m.allow()
		defer m.startTimer()()
	}
	for {
		if m.reached() {
			return nil
		}
		c, t, alone := m.pick()
		if t == nil {
			if target == nil && m.allDone() {
				return nil
			}
			if !m.sleepOn() {
				return ErrDeadlock
			}
			continue
		}
		limit := uint64(math.MaxUint64)
		if !alone || m.until != nil {
			limit = m.sh.Instrs + m.opt.Slice
		}
		done, err := m.turn(c, t, limit, target)
		if done || err != nil {
			return err
		}
	}
}

// allow gives a run its budget.
func (m *Machine) allow() {
	m.sh.Budget = m.sh.Instrs + m.opt.Budget
	if m.sh.Budget < m.opt.Budget {
		m.sh.Budget = math.MaxUint64
	}
	m.sh.Allowance = m.sh.Work + m.allowed
}

// reached reports whether RunUntil's condition holds.
func (m *Machine) reached() bool {
	if m.until == nil {
		return false
	}
	m.receiving = true
	defer func() { m.receiving = false }()
	return m.until()
}

// workAllowance returns the bound of Shared.Work for a budget: several times the work of a run that
// does not try to waste it.
func workAllowance(budget uint64) uint64 {
	const most = 1 << 60
	return freeWork + workPerInstruction*min(budget, most/workPerInstruction)
}

const (
	freeWork           = 500_000_000
	workPerInstruction = 4
)

// turn gives t one slice on c, which ends when the instruction count is limit. It
// reports whether the target's call is done.
func (m *Machine) turn(c *cpu, t *Task, limit uint64, target *Task) (bool, error) {
	m.load(c, t)
	m.sh.Work += workTurn
	m.setTask(t.n)
	if t.state == ready {
		if err := m.begin(c, t); err != nil {
			m.end(t, err)
			return false, nil
		}
	}
	x, err := m.run(c, c.IP(), limit)
	if m.closed {
		return true, ErrClosed
	}
	if err == nil {
		err = m.settle(c, t, x)
	}
	if t == target && (err != nil || x.Why == contract.Returned) {
		t.state = idle
		return true, err
	}
	if err == nil {
		return false, nil
	}
	var over *BudgetError
	if errors.As(err, &over) {
		return true, err
	}
	m.end(t, err)
	return false, nil
}

// settle handles the end of a slice for the task.
func (m *Machine) settle(c *cpu, t *Task, x contract.Exit) error {
	switch x.Why {
	case contract.Returned:
		if t.n == 0 {
			return nil
		}
		m.complete(t, c.Regs().AX, nil)
		t.state = ready
		if len(t.results) == len(t.calls) {
			m.exit(t)
		}
	case contract.TimeUp:
	default:
		return m.hypercall(c, t, x)
	}
	return nil
}

func (m *Machine) hypercall(c *cpu, t *Task, x contract.Exit) error {
	switch x.Why {
	case contract.Yielded:
		t.left = true
		t.scheds++
	case contract.Slept:
		t.left = true
		t.scheds++
		t.state = sleeping
		t.wake = m.Now() + x.Arg
		if t.wake < m.Now() {
			t.wake = math.MaxUint64
		}
	case contract.Exited:
		if t.n == 0 {
			return ErrTaskExited
		}
		m.complete(t, 0, nil)
		m.exit(t)
	}
	return nil
}

// begin makes the task enter its next call.
func (m *Machine) begin(c *cpu, t *Task) error {
	call := t.calls[len(t.results)]
	addr, err := call.Addr, error(nil)
	if call.Func != "" {
		if addr, err = m.function(call.Func); err != nil {
			return err
		}
	}
	if t.words, t.bufs, err = m.marshal(call.Args); err != nil {
		return fmt.Errorf("%s: %w", call.Func, err)
	}
	if err := m.enter(c, t.stack-x86.PtRegsSize, t.words); err != nil {
		return err
	}
	c.SetIP(addr)
	t.state = runnable
	return nil
}

// complete records the result of the task's call.
func (m *Machine) complete(t *Task, ret uint64, err error) {
	m.finish(t.bufs)
	t.bufs = nil
	t.results = append(t.results, Result{Ret: ret, Err: err})
}

// end is a task that failed.
func (m *Machine) end(t *Task, err error) {
	m.complete(t, 0, err)
	t.err = err
	m.failed = append(m.failed, fmt.Errorf("task %d (%s): %w", t.n, t.Name, err))
	m.exit(t)
}

// exit is the end of a task other than the boot task.
func (m *Machine) exit(t *Task) {
	t.state = dead
	t.scheds++
	if t.cpu != nil {
		t.cpu.task = nil
		t.cpu = nil
	}
	if m.traps != nil {
		m.traps.TaskExit(t.n)
	}
}

// pick chooses a CPU and a task for it, and reports whether there is no other
// choice. It returns no task when none can run.
func (m *Machine) pick() (*cpu, *Task, bool) {
	m.wakeUp()
	if len(m.tasks) == 1 {
		return m.pickOnly()
	}
	var pairs []pair
	for _, c := range m.cpus {
		pairs = m.choices(pairs, c)
	}
	switch len(pairs) {
	case 0:
		return nil, nil, false
	case 1:
		// Sleepers may want to run when their time comes.
		return pairs[0].c, pairs[0].t, m.othersDone(pairs[0].t)
	}
	p := pairs[m.rng.IntN(len(pairs))]
	p.t.left = false
	return p.c, p.t, false
}

func (m *Machine) pickOnly() (*cpu, *Task, bool) {
	t := m.tasks[0]
	if t.state != runnable {
		return nil, nil, false
	}
	t.left = false
	if t.cpu == nil {
		return m.cpus[0], t, true
	}
	return t.cpu, t, true
}

type pair struct {
	c *cpu
	t *Task
}

// choices appends the tasks that c could run next. A CPU keeps its task while the task has
// preemption or interrupts off or is being stepped. A task that gave up its CPU is a choice only if
// there is no other.
func (m *Machine) choices(list []pair, c *cpu) []pair {
	cur := c.task
	if cur != nil && !cur.canRun() {
		cur = nil
	}
	if cur != nil && !cur.left && !m.preemptible(c) {
		return append(list, pair{c, cur})
	}
	n := len(list)
	for _, t := range m.tasks {
		if t.canRun() && t.cpu == nil && (t.pin < 0 || t.pin == c.n) {
			list = append(list, pair{c, t})
		}
	}
	if cur != nil && (!cur.left || len(list) == n) {
		list = append(list, pair{c, cur})
	}
	return list
}

func (t *Task) canRun() bool { return t.state == runnable || t.state == ready }

func (m *Machine) preemptible(c *cpu) bool {
	if f := c.Flags(); f&x86.FlagIF == 0 || f&x86.FlagTF != 0 {
		return false
	}
	if c.preempt == 0 {
		return true
	}
	h, err := m.engine.Bytes(c.preempt, m.preempt.Size, AttrR)
	return err != nil || m.preempt.Read(h)&^m.preempt.NoResched() == 0
}

func (m *Machine) othersDone(t *Task) bool {
	for _, o := range m.tasks {
		if o != t && !o.Done() {
			return false
		}
	}
	return true
}

func (m *Machine) allDone() bool {
	for _, t := range m.tasks {
		if !t.Done() {
			return false
		}
	}
	return true
}

// wakeUp ends the sleep of tasks whose time has come.
func (m *Machine) wakeUp() {
	for _, t := range m.tasks {
		if t.state == sleeping && t.wake != math.MaxUint64 && t.wake <= m.Now() {
			t.state = runnable
		}
	}
}

// sleepOn moves the clock to the next wake-up, for no task can run. It reports
// whether there is one.
func (m *Machine) sleepOn() bool {
	next := uint64(math.MaxUint64)
	for _, t := range m.tasks {
		if t.state == sleeping {
			next = min(next, t.wake)
		}
	}
	if next == math.MaxUint64 {
		return false
	}
	m.sh.Extra = next - m.sh.Instrs
	return true
}

// load puts t's registers into c, and saves the registers of c's last task.
func (m *Machine) load(c *cpu, t *Task) {
	if c.task == t {
		return
	}
	if o := c.task; o != nil {
		c.Save(o.saved)
		o.cpu, c.task = nil, nil
	}
	if t.cpu != nil {
		t.cpu.Save(t.saved)
		t.cpu.task = nil
	}
	if t.state == runnable || t.state == sleeping {
		c.Load(t.saved)
	}
	c.task, t.cpu = t, c
	if m.switched != nil {
		m.switched(c.n, t)
	}
}

// OnSwitch makes the machine call fn whenever a CPU switches to another task,
// before that task runs. The machine does not set the guest's current; fn may.
// nil removes it.
func (m *Machine) OnSwitch(fn func(cpu int, t *Task)) { m.switched = fn }

// claim finds a CPU for the boot task's new call.
func (m *Machine) claim(t *Task) *cpu {
	c := t.cpu
	if c == nil {
		c = m.cpus[0]
		if t.pin >= 0 {
			c = m.cpus[t.pin]
		}
		m.load(c, t)
	}
	t.left = false
	return c
}

// place is the CPU that has the task's registers, or had them last.
func (t *Task) place() *cpu {
	if t.cpu != nil {
		return t.cpu
	}
	return t.m.cur
}
