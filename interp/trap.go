package interp

import (
	"fmt"
	"runtime/debug"
	"unsafe"

	"kprobelab/machine"
	"kprobelab/x86"
)

// hostCall is a call of a receiver or handler: of traps with a vector, or of the
// function of a stub.
type hostCall struct {
	vector int
	regs   *x86.PtRegs
	fn     func(frame x86.Addr, regs *x86.PtRegs)
	frame  x86.Addr
}

func (h *hostCall) call(t x86.Traps) bool {
	switch {
	case h.fn != nil:
		h.fn(h.frame, h.regs)
		return true
	case h.vector == machine.VectorInt3:
		return t.Int3(h.regs)
	case h.vector == machine.VectorDebug:
		return t.Debug(h.regs)
	}
	return t.Fault(h.regs, h.vector)
}

// host makes the call, which may run guest code on this CPU. It reports what was
// answered, and false where the call did not return. A panic becomes an error of
// the run. A handler that ends its goroutine (t.FailNow does) closes the machine,
// because the run never returns.
func (m *Machine) host(c *cpu, h hostCall) (mine bool) {
	reason, running, single := c.reason, c.running, c.single
	c.single = false
	m.inside.Add(1)
	returned := false
	defer func() {
		m.inside.Add(-1)
		if returned {
			return
		}
		mine = false
		if p := recover(); p != nil {
			m.fail(fmt.Errorf("%w: %v\n%s", machine.ErrHandler, p, debug.Stack()))
			return
		}
		m.closed = true
	}()
	mine = h.call(m.traps)
	returned = true
	c.reason, c.running, c.single = reason, running, single
	return mine
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
	regs := c.takeFrame()
	defer c.putFrame(regs)
	c.regs(regs)
	m.crossings++
	mine := m.host(c, hostCall{vector: vector, regs: regs})
	m.addWork(workTrap)
	if m.err != nil || m.closed {
		c.reason = reasonError
		return
	}
	c.setRegs(regs)
	c.ip = regs.IP
	if !mine {
		c.stopFault(vector)
	}
}

// takeFrame is room for registers; putFrame takes it back.
func (c *cpu) takeFrame() *x86.PtRegs {
	if n := len(c.frames); n > 0 {
		f := c.frames[n-1]
		c.frames = c.frames[:n-1]
		return f
	}
	return new(x86.PtRegs)
}

func (c *cpu) putFrame(f *x86.PtRegs) { c.frames = append(c.frames, f) }

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
		regs, copied := m.frame(c, frame)
		m.crossings++
		m.host(c, hostCall{fn: fn, frame: frame, regs: regs})
		if copied {
			m.copyIn(frame, bytesOf(regs)[:])
			c.putFrame(regs)
		}
		m.addWork(workTrap)
	}
	c.state = at
	if m.err != nil {
		c.reason = reasonError
	}
}

// frame is a frame in guest memory, in place where it is in one page, and aligned;
// else a copy.
func (m *Machine) frame(c *cpu, at x86.Addr) (regs *x86.PtRegs, copied bool) {
	if off := at % PageSize; off%8 == 0 && off+x86.PtRegsSize <= PageSize {
		return (*x86.PtRegs)(unsafe.Pointer(&m.page(at, 0)[off])), false
	}
	regs = c.takeFrame()
	m.copyOut(at, bytesOf(regs)[:])
	return regs, true
}

func bytesOf(regs *x86.PtRegs) *[x86.PtRegsSize]byte {
	return (*[x86.PtRegsSize]byte)(unsafe.Pointer(regs))
}
