package machine

import (
	"fmt"
	"runtime/debug"

	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// Host is the machine, as its engine sees it.
type Host struct{ m *Machine }

// Machine is the machine itself.
func (h *Host) Machine() *Machine { return h.m }

// Source is its image.
func (h *Host) Source() Source { return h.m.src }

// Options are its options, filled in.
func (h *Host) Options() *Options { return &h.m.opt }

// Task is the number of the running task.
func (h *Host) Task() int { return h.m.curTask }

// border is deferred where an engine has called. A panic of a handler becomes an
// error of the run. A handler that ends its goroutine (t.FailNow does) closes
// the machine, because the run can never return.
func (m *Machine) border(answer *contract.HostAnswer, returned *bool) {
	if *returned {
		return
	}
	if p := recover(); p != nil {
		m.fail(fmt.Errorf("%w: %v\n%s", ErrHandler, p, debug.Stack()))
		*answer = contract.Stop
		return
	}
	m.closed = true
}

// fail records the first error of the run that is about to end.
func (m *Machine) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// Trap gives int3 or #DB, with ip past it, to the receiver of traps.
func (h *Host) Trap(vector int, regs *x86.PtRegs) (answer contract.HostAnswer) {
	m, returned := h.m, false
	if m.traps == nil {
		return contract.NotMine
	}
	defer m.border(&answer, &returned)
	var mine bool
	if vector == VectorInt3 {
		mine = m.traps.Int3(regs)
	} else {
		mine = m.traps.Debug(regs)
	}
	returned = true
	switch {
	case m.err != nil:
		return contract.Stop
	case !mine:
		return contract.NotMine
	}
	return contract.Resume
}

// Callout calls the function of a stub. regs is the frame, nil where there is no
// writable memory.
func (h *Host) Callout(stub, frame x86.Addr, regs *x86.PtRegs) (answer contract.HostAnswer) {
	m, returned := h.m, false
	defer m.border(&answer, &returned)
	switch fn := m.stubs.at(stub); {
	case fn == nil:
		m.fail(fmt.Errorf("callout at %s, where no stub is", m.Symbolize(stub)))
	case regs == nil:
		m.fail(fmt.Errorf("callout %s with a frame at %s, which is no writable memory", m.Symbolize(stub), frame))
	default:
		fn(frame, regs)
	}
	returned = true
	if m.err != nil {
		return contract.Stop
	}
	return contract.Resume
}

// Fault gives an exception to the receiver of traps, outside of any run. It
// reports whether the receiver has taken it, and the error that ends the run.
func (h *Host) Fault(regs *x86.PtRegs, vector int) (mine bool, err error) {
	if h.m.traps == nil {
		return false, nil
	}
	mine = h.m.callFault(regs, vector)
	return mine, h.m.takeErr()
}

// Call calls fn as Trap calls a receiver: a panic is an error of the run.
func (h *Host) Call(fn func() contract.HostAnswer) (answer contract.HostAnswer) {
	m, returned := h.m, false
	defer m.border(&answer, &returned)
	answer = fn()
	returned = true
	if m.err != nil {
		return contract.Stop
	}
	return answer
}
