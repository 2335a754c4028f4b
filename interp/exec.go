package interp

import "kprobelab/x86"

// start lets the CPU run from ip until it stops. c.reason says why it did, c.ip
// where.
func (c *cpu) start(ip x86.Addr) {
	c.ip, c.reason, c.event = uint64(ip), reasonNone, event{}
	c.depth++
	defer func() { c.depth-- }()
	c.loop()
}

// loop runs block after block.
func (c *cpu) loop() {
	m := c.m
	inner := c.depth > 1
	for {
		switch {
		case c.reason != reasonNone:
			return
		case inner && c.ip == uint64(m.innerEnd):
			c.reason = reasonReturn
			return
		case m.instrs >= m.stopAt.Load():
			c.reason = reasonTime
			return
		}
		stepping := c.flags&x86.FlagTF != 0
		alone := stepping || c.single
		b := c.blocks.recent[slotOf(c.ip)]
		if b == nil || b.pc != c.ip || alone {
			var ok bool
			if b, ok = c.block(c.ip, alone); !ok {
				c.reason = reasonFault
				return
			}
		}
		c.single = false
		c.running = b
		ran := false
		if m.opt.EveryInstruction {
			ran = c.runCounting(b)
		} else {
			m.instrs += uint64(len(b.ops))
			m.work += b.work
			ran = c.runBlock(b)
		}
		if ran && stepping && c.reason == reasonNone {
			c.trap(1)
		}
	}
}

// runBlock runs a block's instructions. It reports whether the last completed.
func (c *cpu) runBlock(b *block) bool {
	ops := b.ops
	for i := range ops {
		o := &ops[i]
		if !o.exec(c, o) {
			return c.happened(o)
		}
	}
	if b.falls {
		c.ip = b.end
	}
	return true
}

// runCounting is runBlock that counts, and may stop, before each instruction.
func (c *cpu) runCounting(b *block) bool {
	m := c.m
	for i := range b.ops {
		o := &b.ops[i]
		if i > 0 && (c.reason != reasonNone || m.instrs >= m.stopAt.Load()) {
			c.ip = o.ip
			return true
		}
		m.instrs++
		if !o.exec(c, o) {
			return c.happened(o)
		}
	}
	m.work += b.work
	if b.falls {
		c.ip = b.end
	}
	return true
}

// happened deals with what an instruction met instead of completing. It reports
// whether it counts as complete.
func (c *cpu) happened(o *op) bool {
	e := c.event
	switch e.kind {
	case eventTrap:
		if c.reason == reasonNone {
			c.trap(e.vector)
		}
	case eventHalt:
		if c.reason == reasonNone {
			c.reason = reasonHalt
		}
	case eventRestart:
		c.ip, c.single = o.ip, true
	default:
		if c.reason >= reasonExit {
			return false // the run is over, though its block goes on to its end
		}
		if e.addr != afterInstruction || e.access != 0 {
			c.ip = o.ip
		}
		c.reason = reasonFault
	}
	return false
}
