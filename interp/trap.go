package interp

import (
	"unsafe"

	"kprobelab/internal/contract"
	"kprobelab/machine"
	"kprobelab/x86"
)

// host makes a call of the host, which may run guest code on this CPU. It returns the host's
// answer.
func (c *cpu) host(call func(h *machine.Host) contract.HostAnswer) contract.HostAnswer {
	reason, running, single := c.reason, c.running, c.single
	c.single = false
	c.e.Crossings++
	c.e.inside.Add(1)
	defer c.e.inside.Add(-1) // also where a handler ends its goroutine
	answer := call(c.e.host)
	c.reason, c.running, c.single = reason, running, single
	c.e.addWork(contract.WorkTrap)
	return answer
}

// trap is int3 or #DB, with ip past it.
func (c *cpu) trap(vector int) {
	e := c.e
	if e.b != nil && !e.b.beforeTrap(c, vector) {
		return
	}
	e.Extra += e.opt.TrapCost
	e.addWork(contract.WorkTrap)
	if vector == machine.VectorInt3 && c.answered() {
		return
	}
	regs := c.takeFrame()
	defer c.putFrame(regs)
	c.regs(regs)
	answer := c.host(func(h *machine.Host) contract.HostAnswer { return h.Trap(vector, regs) })
	if answer == contract.Stop {
		c.reason = reasonError
		return
	}
	c.setRegs(regs)
	c.ip = regs.IP
	if answer == contract.NotMine {
		if vector == machine.VectorDebug && e.b != nil {
			c.noteDebug(dr6Step)
		}
		c.reason = reasonFault
		c.event = event{kind: eventFault, vector: vector, addr: afterInstruction}
	}
}

// answered goes on from an int3 that was answered.
func (c *cpu) answered() bool {
	a := &c.answer
	if a.State != contract.Given || c.ip-1 != uint64(a.At) {
		return false
	}
	a.State = contract.Met
	c.ip = uint64(a.To)
	c.setEflags(c.eflags() | a.Flags)
	return true
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

// callout calls the function of the stub that the running block is, with the frame
// that rdi points to.
func (c *cpu) callout() {
	stub, at := x86.Addr(c.running.pc), x86.Addr(c.r[rdi])
	before := c.state
	if c.e.b != nil {
		c.e.b.beforeCall()
	}
	regs, copied := c.frameAt(at)
	answer := c.host(func(h *machine.Host) contract.HostAnswer { return h.Callout(stub, at, regs) })
	if copied {
		c.e.copyIn(at, bytesOf(regs)[:])
		c.putFrame(regs)
	}
	c.state = before
	if answer == contract.Stop {
		c.reason = reasonError
	}
}

// frameAt returns a frame in writable guest memory: in place if it is aligned and within one page,
// else a copy. It is nil without such memory.
func (c *cpu) frameAt(at x86.Addr) (regs *x86.PtRegs, copied bool) {
	e := c.e
	if e.page(at, attrW) == nil || e.page(at+x86.PtRegsSize-1, attrW) == nil {
		return nil, false
	}
	e.Touch(at, x86.PtRegsSize)
	if off := at % pageSize; off%8 == 0 && off+x86.PtRegsSize <= pageSize {
		return (*x86.PtRegs)(unsafe.Pointer(&e.page(at, 0)[off])), false
	}
	regs = c.takeFrame()
	e.copyOut(at, bytesOf(regs)[:])
	return regs, true
}

func bytesOf(regs *x86.PtRegs) *[x86.PtRegsSize]byte {
	return (*[x86.PtRegsSize]byte)(unsafe.Pointer(regs))
}

// Fault gives handle the exception of the run that has ended.
func (c *cpu) Fault(handle func(f *machine.Fault, regs *x86.PtRegs)) (x86.Addr, error) {
	f := &machine.Fault{Vector: c.event.vector, Access: c.event.access, Missing: c.missing}
	if f.Access != machine.AccessNone {
		f.Addr = x86.Addr(c.event.addr)
	}
	c.missing = ""
	regs := c.takeFrame()
	defer c.putFrame(regs)
	c.regs(regs)
	c.e.inside.Add(1)
	defer c.e.inside.Add(-1)
	handle(f, regs)
	c.setRegs(regs)
	c.ip = regs.IP
	return x86.Addr(regs.IP), nil
}
