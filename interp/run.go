package interp

import (
	"fmt"

	"kprobelab/machine"
	"kprobelab/x86"
)

// outcome is how a run ended when it did not fail.
type outcome int

const (
	returned outcome = iota
	sliced           // its slice of instructions is used up
	yielded
	slept
	exited
)

// faultCost is what a fault that the guest survives takes of the budget, as in emu.
// Without it, an exception table that leads back to the fault would run for ever,
// because an instruction that faults on being fetched does not count.
const faultCost = 500

// maxDepth is how deep runs inside handlers may nest, as in emu.
const maxDepth = 63

// What takes the host's time beside instructions, as instructions that would
// take as long. It is no part of the virtual clock or of the budget.
const (
	workBlock = 1000
	workByte  = 100
	workTrap  = 150
	workTurn  = 200
)

// addWork: the run ends before its next block once that is too much, or its time
// is up.
func (m *Machine) addWork(n uint64) {
	m.work += n
	if m.work > m.allowance || m.expired.Load() {
		m.stopAt.Store(0)
	}
}

// run lets c execute from ip until the scheduler has to decide something. The
// slice ends when the instruction count is limit; the run fails when it is
// m.budget.
func (m *Machine) run(c *cpu, ip x86.Addr, limit uint64) (outcome, error) {
	if m.runs == maxDepth {
		return 0, fmt.Errorf("%w: run at %s: %d handlers call each other", machine.ErrEngine, m.Symbolize(ip), maxDepth)
	}
	m.runs++
	defer func() { m.runs-- }()
	m.cur, m.curCPU = c, c.n
	for {
		if m.work > m.allowance {
			return 0, m.overWorked(ip)
		}
		m.stopAt.Store(min(limit, m.budget))
		if m.expired.Load() { // after stopAt, which undoes what the timer did
			return 0, m.overTime(ip)
		}
		c.start(ip)
		if m.closed {
			return 0, machine.ErrClosed
		}
		if m.err != nil {
			return 0, m.takeErr()
		}
		at := x86.Addr(c.ip)
		switch c.reason {
		case reasonReturn:
			return returned, nil
		case reasonYield:
			return yielded, nil
		case reasonSleep:
			return slept, nil
		case reasonExit:
			return exited, nil
		case reasonTime:
			switch {
			case m.expired.Load():
				return 0, m.overTime(at)
			case m.work > m.allowance:
				return 0, m.overWorked(at)
			case m.instrs < m.budget:
				return sliced, nil
			}
			return 0, m.overBudget(at)
		case reasonFault:
			if err := m.fault(c); err != nil {
				return 0, err
			}
			ip = x86.Addr(c.ip)
			m.budget -= min(faultCost, m.budget)
			m.work += faultCost
			if m.instrs >= m.budget {
				return 0, m.overBudget(ip)
			}
		default:
			return 0, fmt.Errorf("%w before %s", machine.ErrHalted, m.Symbolize(at))
		}
	}
}

func (m *Machine) overBudget(at x86.Addr) error {
	return &machine.BudgetError{Limit: m.opt.Budget, IP: at, Symbol: m.Symbolize(at)}
}

func (m *Machine) overWorked(at x86.Addr) error {
	return &machine.BudgetError{Limit: m.opt.Budget, Work: true, IP: at, Symbol: m.Symbolize(at)}
}

// fault handles an exception that ended the run, and sets where to go on. It asks
// the receiver of traps, then the exception table (arch/x86/mm/extable.c,
// fixup_exception); else the exception is an error.
func (m *Machine) fault(c *cpu) error {
	e := c.event
	m.extra += m.opt.TrapCost
	var regs x86.PtRegs
	c.regs(&regs)
	m.last = regs
	f := &machine.Fault{
		Vector: e.vector, Access: e.access, IP: x86.Addr(regs.IP), Regs: regs,
		CPU: c.n, Task: m.curTask, Missing: c.missing,
	}
	c.missing = ""
	if e.access != machine.AccessNone {
		f.Addr = x86.Addr(e.addr)
	}
	f.Symbol = m.Symbolize(f.IP)
	mine := m.resolve(c, f, &regs)
	c.setRegs(&regs)
	c.ip = regs.IP
	if mine {
		return nil
	}
	f.IP, f.Regs, m.last = x86.Addr(regs.IP), regs, regs
	f.Symbol = m.Symbolize(f.IP)
	if m.err != nil {
		return m.takeErr()
	}
	return f
}

// resolve reports whether someone took the fault; regs then say where to go on.
func (m *Machine) resolve(c *cpu, f *machine.Fault, regs *x86.PtRegs) bool {
	if f.Vector == machine.VectorInvalid && m.warn(regs) {
		return true
	}
	if m.traps != nil && f.Vector != machine.VectorInt3 && f.Vector != machine.VectorDebug {
		mine := m.host(c, hostCall{vector: f.Vector, regs: regs})
		if m.err != nil || m.closed {
			return false
		}
		if mine {
			return true
		}
	}
	// The receiver may have moved the fault from a copy to the original's ud2.
	return f.Vector == machine.VectorInvalid && m.warn(regs) || m.fixup(regs, f.Vector)
}

func (m *Machine) takeErr() error {
	err := m.err
	m.err = nil
	return err
}
