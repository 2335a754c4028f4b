package interp

import "kprobelab/internal/contract"

// portNumber: opcodes 0xec to 0xef have it in dx, in sub.
func portOperands(d *dec) {
	d.op.rm = rax
	d.bytesIfEven()
	if d.op.size == 8 {
		d.op.size = 4
	}
	if d.i.ImmLen == 0 {
		d.op.sub = 1
	}
}

func (o *op) port(c *cpu) uint16 {
	if o.sub != 0 {
		return uint16(c.r[rdx])
	}
	return uint16(o.imm & 0xff)
}

func inMaker(d *dec) func(c *cpu, o *op) bool {
	portOperands(d)
	return opIn
}

// opIn: every port reads as zero.
func opIn(c *cpu, o *op) bool {
	v := uint64(0)
	if c.e.b != nil {
		v = c.portIn(o.port(c), o.size)
	}
	c.setReg(rax, o.size, v)
	return true
}

func outMaker(d *dec) func(c *cpu, o *op) bool {
	portOperands(d)
	return opOut
}

// opOut is a hypercall, or is lost. One that ends the run does so before the next
// block, as the rest of its own is run still.
func opOut(c *cpu, o *op) bool {
	if c.reason >= reasonExit {
		return true
	}
	e := c.e
	if e.b != nil && c.user { // a program that may use ports makes no hypercall
		c.portOut(o.port(c), o.size, c.r[rax])
		return true
	}
	switch port := o.port(c); port {
	case contract.PortCallout:
		c.ip = o.next
		c.callout()
	case contract.PortReturn:
		if c.depth == 1 && c.running.pc == uint64(e.OuterEnd) {
			e.Instrs -= uint64(len(c.running.ops)) // the stub is not the guest's
			if e.opt.EveryInstruction {
				e.Instrs = e.Instrs + uint64(len(c.running.ops)) - 1
			}
			c.reason = reasonReturn
		}
	default:
		c.hypercall(port, o.size, c.reg(rax, o.size))
	}
	return true
}

// hypercall acts on what out or outs wrote to a port.
func (c *cpu) hypercall(port uint16, size uint8, v uint64) {
	e := c.e
	switch port {
	case contract.PortYield:
		if c.depth == 1 { // deeper is a handler, with preemption off
			c.reason = reasonYield
		}
	case contract.PortSleep:
		c.reason, c.arg = reasonSleep, c.r[rdi]
	case contract.PortExit:
		c.reason = reasonExit
	case contract.PortConsole:
		e.console.put(int(e.Task), byte(v))
	case contract.PortClock:
		c.r[rax] = e.Now()
	case contract.PortTask:
		c.r[rax] = uint64(e.Task)
	case contract.PortCPU:
		c.r[rax] = uint64(c.n)
	default:
		if e.b != nil {
			c.portOut(port, size, v)
		}
	}
}
