package interp

// The ports of the machine's hypercalls. Guest code makes one by writing to its
// port (out %al, $port). They are those of emu/ports.h, which tells more.
const (
	portCallout = 0xe0
	portYield   = 0xe1
	portSleep   = 0xe2
	portExit    = 0xe3
	portConsole = 0xe4
	portClock   = 0xe5
	portTask    = 0xe6
	portCPU     = 0xe7
	portReturn  = 0xe8
)

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
	c.setReg(rax, o.size, 0)
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
	m := c.m
	switch o.port(c) {
	case portCallout:
		c.ip = o.next
		m.calloutHere(c)
	case portYield:
		if c.depth == 1 { // deeper is a handler, with preemption off
			c.reason = reasonYield
		}
	case portSleep:
		c.reason, c.arg = reasonSleep, c.r[rdi]
	case portExit:
		c.reason = reasonExit
	case portReturn:
		if c.depth == 1 && c.running.pc == uint64(m.outerEnd) {
			m.instrs -= uint64(len(c.running.ops)) // the stub is not the guest's
			if m.opt.EveryInstruction {
				m.instrs = m.instrs + uint64(len(c.running.ops)) - 1
			}
			c.reason = reasonReturn
		}
	case portConsole:
		m.console.put(m.curTask, byte(c.r[rax]))
	case portClock:
		c.r[rax] = m.now()
	case portTask:
		c.r[rax] = uint64(m.curTask)
	case portCPU:
		c.r[rax] = uint64(c.n)
	}
	return true
}
