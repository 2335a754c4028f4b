package machine

import (
	"errors"
	"fmt"

	"kprobelab/decoder"
	"kprobelab/internal/contract"
	"kprobelab/internal/cpumodel"
	"kprobelab/x86"
)

// run lets c execute from ip until the scheduler has to decide something. The
// slice ends when the instruction count is limit; the run fails when it is the
// budget. The result is Returned, TimeUp, Yielded, Slept or Exited.
func (m *Machine) run(c *cpu, ip x86.Addr, limit uint64) (contract.Exit, error) {
	if m.runs == contract.MaxDepth {
		return contract.Exit{}, fmt.Errorf("%w: run at %s: %d handlers call each other", ErrEngine, m.Symbolize(ip), contract.MaxDepth)
	}
	m.runs++
	defer func() { m.runs-- }()
	m.cur, m.curCPU = c, c.n
	for {
		if m.sh.Work > m.sh.Allowance {
			return contract.Exit{}, m.overWorked(ip)
		}
		pause := m.nextPause()
		m.aim = min(limit, m.sh.Budget, pause)
		m.engine.Aim(m.aim)
		if m.expired() { // after Aim, which clears the timer's stop
			return contract.Exit{}, m.overTime(ip)
		}
		x := c.Start(ip)
		switch {
		case m.closed:
			return x, ErrClosed
		case m.err != nil:
			return x, m.takeErr()
		}
		switch x.Why {
		case contract.Again:
			ip = x.IP
		case contract.Faulted:
			next, err := m.fault(c)
			if err != nil {
				return x, err
			}
			ip = next
			m.sh.PayFault()
			if m.sh.Instrs >= m.sh.Budget {
				return x, m.overBudget(ip)
			}
		case contract.TimeUp:
			switch {
			case m.expired():
				return x, m.overTime(x.IP)
			case m.sh.Work > m.sh.Allowance:
				return x, m.overWorked(x.IP)
			case m.sh.Instrs >= pause && m.sh.Instrs < min(limit, m.sh.Budget):
				ip = x.IP
				continue
			case m.sh.Instrs < m.sh.Budget:
				return x, nil
			}
			return x, m.overBudget(x.IP)
		case contract.Halted:
			return x, fmt.Errorf("%w before %s", ErrHalted, m.Symbolize(x.IP))
		case contract.Failed:
			return x, x.Err
		default:
			return x, nil
		}
	}
}

func (m *Machine) overBudget(at x86.Addr) error {
	return &BudgetError{Limit: m.opt.Budget, IP: at, Symbol: m.Symbolize(at)}
}

func (m *Machine) overWorked(at x86.Addr) error {
	return &BudgetError{Limit: m.opt.Budget, Work: true, IP: at, Symbol: m.Symbolize(at)}
}

// fault handles an exception that ended the run, and returns the continuation. It calls the
// receiver of traps, then searches the exception table (arch/x86/mm/extable.c, fixup_exception);
// else the exception is an error.
func (m *Machine) fault(c *cpu) (x86.Addr, error) {
	m.sh.Extra += m.opt.TrapCost
	var failed error
	ip, err := c.Fault(func(f *Fault, regs *x86.PtRegs) {
		m.last = *regs
		f.IP, f.Regs, f.CPU, f.Task = x86.Addr(regs.IP), *regs, c.n, m.curTask
		f.Symbol = m.Symbolize(f.IP)
		m.accessed, m.access = f.Addr, f.Access
		if m.resolve(f, regs) {
			return
		}
		f.IP, f.Regs, m.last = x86.Addr(regs.IP), *regs, *regs
		f.Symbol = m.Symbolize(f.IP)
		if failed = m.takeErr(); failed == nil {
			m.lacks(f)
			failed = f
		}
	})
	if err == nil {
		err = failed
	}
	return ip, err
}

// lacks says of an invalid opcode for want of which extension it is one.
func (m *Machine) lacks(f *Fault) {
	model, err := cpumodel.Named(m.opt.CPUModel)
	if f.Vector != VectorInvalid || err != nil {
		return
	}
	var b [decoder.MaxInsnSize]byte
	n := len(b)
	for n > 0 && m.ReadMem(f.IP, b[:n]) != nil {
		n--
	}
	_, err = model.Decode(b[:n])
	var l *cpumodel.LacksError
	if errors.As(err, &l) {
		f.Insn, f.Lacks = l.Insn, l.Extension
	}
}

// Accessed returns the address and the kind of the access that caused the last fault (cr2 and the
// error code), for the receiver of traps.
func (m *Machine) Accessed() (x86.Addr, Access) { return m.accessed, m.access }

// resolve reports whether a receiver handled the fault; regs then hold the continuation.
func (m *Machine) resolve(f *Fault, regs *x86.PtRegs) bool {
	if f.Vector == VectorInvalid && m.warn(regs) {
		return true
	}
	if m.traps != nil && f.Vector != VectorInt3 && f.Vector != VectorDebug {
		mine := m.callFault(regs, f.Vector)
		if m.err != nil {
			return false
		}
		if mine {
			return true
		}
	}
	// The receiver may have moved the fault from a copy to the original's ud2.
	return f.Vector == VectorInvalid && m.warn(regs) || m.fixup(regs, f.Vector)
}

func (m *Machine) callFault(regs *x86.PtRegs, vector int) (mine bool) {
	answer, ok, was := contract.Resume, false, m.receiving
	m.receiving = true
	defer func() { m.receiving = was }()
	defer m.border(&answer, &ok)
	mine = m.traps.Fault(regs, vector)
	ok = true
	return mine
}

func (m *Machine) takeErr() error {
	err := m.err
	m.err = nil
	return err
}

// takeState is room for registers; putState takes it back.
func (m *Machine) takeState() contract.State {
	if n := len(m.spare); n > 0 {
		s := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return s
	}
	return m.engine.NewState()
}

func (m *Machine) putState(s contract.State) { m.spare = append(m.spare, s) }
