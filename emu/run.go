//go:build cgo && linux && amd64

package emu

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

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

// faultCost is what a fault that the guest survives takes of the budget: as many
// instructions as run in the host's time for it. Without it, an exception table
// that leads back to the fault would run for ever, because an instruction that
// faults on being fetched does not count.
const faultCost = 500

// run lets c execute from ip until the scheduler has to decide something. The
// slice ends when the instruction count is limit; the run fails when it is
// m.budget.
func (m *Machine) run(c *cpu, ip x86.Addr, limit uint64) (outcome, error) {
	if m.runs == maxDepth {
		return 0, engineError("run at "+m.Symbolize(ip), unicorn.UcError(unicorn.ERR_RESOURCE))
	}
	m.runs++
	defer func() { m.runs-- }()
	m.cur, m.curCPU = c, c.n
	for {
		if m.c.work > m.c.allowance {
			return 0, m.overWorked(ip)
		}
		m.stopAt(min(limit, m.budget, m.turnEnd()))
		m.c.budget = C.uint64_t(m.budget)
		if m.expired() { // after stopAt, which undoes what the timer did
			return 0, m.overTime(ip)
		}
		c.start(m, ip)
		if m.err != nil {
			err := m.err
			m.err = nil
			return 0, err
		}
		switch c.c.reason {
		case C.KPL_RETURN:
			return returned, nil
		case C.KPL_YIELD:
			return yielded, nil
		case C.KPL_SLEEP:
			return slept, nil
		case C.KPL_EXIT:
			return exited, nil
		case C.KPL_TIME:
			if m.expired() {
				return 0, m.overTime(x86.Addr(c.c.ip))
			}
			if m.c.work > m.c.allowance {
				return 0, m.overWorked(x86.Addr(c.c.ip))
			}
			if m.b != nil && c.c.depth == 0 && uint64(m.c.instrs) < min(limit, m.budget) {
				next, at, err := m.next(c)
				if err != nil {
					return 0, err
				}
				c, ip = next, at
				continue
			}
			if uint64(m.c.instrs) < m.budget {
				return sliced, nil
			}
			return 0, m.overBudget(x86.Addr(c.c.ip))
		case C.KPL_CROWDED:
			if c.c.depth > 0 {
				return 0, ErrCrowded
			}
			ip = x86.Addr(c.c.ip)
		case C.KPL_FAULT:
			next, err := m.exception(c)
			if err != nil {
				return 0, err
			}
			ip = next
			m.budget -= min(faultCost, m.budget)
			m.c.work += faultCost
			if uint64(m.c.instrs) >= m.budget {
				return 0, m.overBudget(ip)
			}
		case C.KPL_AGAIN:
			ip = x86.Addr(c.c.ip)
			m.drop(c, ip, int(c.c.arg))
		case C.KPL_NO_PAGE:
			return 0, m.noPage(x86.Addr(c.c.ip), uint64(c.c.addr))
		case C.KPL_TRIPLE:
			return 0, m.shutDown(c)
		case C.KPL_HALT:
			if m.b != nil && c.c.depth == 0 {
				next, at, err := m.wait(c)
				if err != nil {
					return 0, err
				}
				c, ip = next, at
				continue
			}
			return 0, fmt.Errorf("%w before %s", ErrHalted, m.Symbolize(x86.Addr(c.c.ip)))
		default:
			return 0, engineError("run at "+m.Symbolize(x86.Addr(c.c.ip)), c.failure)
		}
	}
}

func (m *Machine) overBudget(at x86.Addr) error {
	return &BudgetError{Limit: m.opt.Budget, IP: at, Symbol: m.Symbolize(at)}
}

func (m *Machine) overWorked(at x86.Addr) error {
	return &BudgetError{Limit: m.opt.Budget, Work: true, IP: at, Symbol: m.Symbolize(at)}
}

// exception handles what ended the run, and returns where to go on.
func (m *Machine) exception(c *cpu) (x86.Addr, error) {
	if m.b != nil {
		return m.guestException(c)
	}
	return m.fault(c)
}

// fault handles an exception that ended the run, and returns where to go on. It
// asks the receiver of traps, then the exception table
// (arch/x86/mm/extable.c, fixup_exception); else the exception is an error.
func (m *Machine) fault(c *cpu) (x86.Addr, error) {
	vector, access, page := int(c.c.vector), accessOf(int(c.c.access)), x86.Addr(c.c.addr)
	m.c.extra += C.uint64_t(m.opt.TrapCost)
	st := m.takeState()
	defer m.putState(st)
	C.kpl_save(c.c, st)
	st.regs.ip = c.c.ip // not the engine's: a run inside a callout has put that back
	if c.c.at != 0 {
		st.regs.ip = c.c.at
	}
	if err := c.forgetException(); err != nil {
		return 0, err
	}
	regs := (*x86.PtRegs)(unsafe.Pointer(&st.regs))
	m.last = *regs
	f := &Fault{Vector: vector, Access: access, Addr: page, IP: x86.Addr(regs.IP), Regs: *regs, CPU: c.n, Task: m.Task()}
	if access != AccessNone {
		f.Addr = m.faultAddr(c, regs, page, access)
	}
	f.Symbol = m.Symbolize(f.IP)
	if !m.resolve(f, regs) {
		f.IP, f.Regs, m.last = x86.Addr(regs.IP), *regs, *regs
		f.Symbol = m.Symbolize(f.IP)
		C.kpl_load(c.c, st, 1-c.c.in_callout)
		if m.err != nil {
			return 0, m.takeErr()
		}
		return 0, f
	}
	C.kpl_load(c.c, st, 1-c.c.in_callout)
	return x86.Addr(regs.IP), nil
}

// accessOf is the access that a page's attribute allows.
func accessOf(attr int) Access {
	switch attr {
	case C.KPL_R:
		return AccessRead
	case C.KPL_W:
		return AccessWrite
	case C.KPL_X:
		return AccessFetch
	}
	return AccessNone
}

// resolve reports whether someone took the fault; regs then say where to go on.
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
	answer, ok, was := C.int(0), false, m.receiving
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

// takeState is room for registers in C memory; putState takes it back.
func (m *Machine) takeState() *C.kpl_state {
	c := m.cur
	if n := len(c.spare); n > 0 {
		s := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return s
	}
	return newState()
}

func (m *Machine) putState(s *C.kpl_state) { m.cur.spare = append(m.cur.spare, s) }

func newState() *C.kpl_state {
	return (*C.kpl_state)(C.calloc(1, C.sizeof_kpl_state))
}
