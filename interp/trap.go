package interp

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"unsafe"

	"kprobelab/machine"
	"kprobelab/x86"
)

// outside calls a receiver or handler, which may run guest code on this CPU. It
// reports whether it returned. A panic becomes an error of the run. A handler that
// ends its goroutine (t.FailNow does) closes the machine, because the run never
// returns.
func (m *Machine) host(c *cpu, fn func()) (ok bool) {
	reason, running, single := c.reason, c.running, c.single
	c.single = false
	m.inside.Add(1)
	returned := false
	defer func() {
		m.inside.Add(-1)
		if returned {
			return
		}
		if p := recover(); p != nil {
			m.fail(fmt.Errorf("%w: %v\n%s", machine.ErrHandler, p, debug.Stack()))
			return
		}
		m.closed = true
	}()
	fn()
	returned = true
	c.reason, c.running, c.single = reason, running, single
	return true
}

// fail records the first error of the run that is about to end.
func (m *Machine) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// trap is int3 or #DB, with ip past it. It reports whether the CPU goes on.
func (c *cpu) trap(vector int) {
	m := c.m
	m.extra += m.opt.TrapCost
	m.addWork(workTrap)
	if vector == machine.VectorInt3 && (c.answered() || c.throughGate()) {
		return
	}
	if m.traps == nil {
		c.stopFault(vector)
		return
	}
	var regs x86.PtRegs
	c.regs(&regs)
	mine := false
	m.crossings++
	returned := m.host(c, func() {
		if vector == machine.VectorInt3 {
			mine = m.traps.Int3(&regs)
		} else {
			mine = m.traps.Debug(&regs)
		}
	})
	m.addWork(workTrap)
	if m.err != nil || !returned {
		c.reason = reasonError
		return
	}
	c.setRegs(&regs)
	c.ip = regs.IP
	if !mine {
		c.stopFault(vector)
	}
}

func (c *cpu) stopFault(vector int) {
	c.reason = reasonFault
	c.event = event{kind: eventFault, vector: vector, addr: afterInstruction}
}

// calloutHere calls the function of the stub that the running block is, with the
// frame that rdi points to.
func (m *Machine) calloutHere(c *cpu) {
	stub, frame := x86.Addr(c.running.pc), x86.Addr(c.r[rdi])
	fn := m.stubs.at(stub)
	at := c.state
	switch {
	case fn == nil:
		m.fail(fmt.Errorf("callout at %s, where no stub is", m.Symbolize(stub)))
	case m.mapped(frame, x86.PtRegsSize, attrW) != nil:
		m.fail(fmt.Errorf("callout %s with a frame at %s, which is no writable memory", m.Symbolize(stub), frame))
	default:
		m.touch(frame, x86.PtRegsSize)
		regs, back := m.frame(frame)
		m.crossings++
		m.host(c, func() { fn(frame, regs) })
		back()
		m.addWork(workTrap)
	}
	c.state = at
	if m.err != nil {
		c.reason = reasonError
	}
}

// frame is a frame in guest memory, in place where it is in one page, and aligned;
// else a copy that back writes back.
func (m *Machine) frame(at x86.Addr) (regs *x86.PtRegs, back func()) {
	if off := at % PageSize; off%8 == 0 && off+x86.PtRegsSize <= PageSize {
		return (*x86.PtRegs)(unsafe.Pointer(&m.page(at, 0)[off])), func() {}
	}
	var b [x86.PtRegsSize]byte
	m.copyOut(at, b[:])
	regs = &x86.PtRegs{}
	words := (*[x86.PtRegsSize / 8]uint64)(unsafe.Pointer(regs))
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return regs, func() {
		for i, w := range words {
			binary.LittleEndian.PutUint64(b[8*i:], w)
		}
		m.copyIn(at, b[:])
	}
}
