package interp

import (
	"kprobelab/internal/contract"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Start lets the CPU run from ip until it stops.
func (c *cpu) Start(ip x86.Addr) contract.Exit {
	if c.e.b != nil {
		return c.startBooted(ip)
	}
	c.ip, c.reason, c.event = uint64(ip), reasonNone, event{}
	c.depth++
	defer func() { c.depth-- }()
	c.loop()
	return contract.Exit{Why: exits[c.reason], IP: x86.Addr(c.ip), Arg: c.arg}
}

// exits are the reasons' names outside. (Of reasonError the machine has the error.)
var exits = [...]contract.Reason{
	reasonReturn: contract.Returned, reasonHalt: contract.Halted, reasonTime: contract.TimeUp, reasonYield: contract.Yielded,
	reasonSleep: contract.Slept, reasonExit: contract.Exited, reasonFault: contract.Faulted, reasonError: contract.Failed,
}

// loop runs block after block.
func (c *cpu) loop() {
	e := c.e
	inner := c.depth > 1
	for {
		switch {
		case c.reason != reasonNone:
			return
		case inner && c.ip == uint64(e.InnerEnd):
			c.reason = reasonReturn
			return
		case e.Instrs >= e.StopAt.Load():
			c.reason = reasonTime
			return
		}
		stepping := c.flags&x86.FlagTF != 0
		alone := stepping || c.single
		if c.user && c.ip >= uint64(x86.UserEnd) {
			c.miss(c.ip, machine.AccessFetch)
			c.reason = reasonFault
			return
		}
		b := c.blocks.recent[slotOf(c.ip)]
		if b == nil || b.pc != c.ip || alone {
			var ok bool
			if b, ok = c.block(c.ip, alone); !ok {
				c.reason = reasonFault
				return
			}
		}
		c.alone, c.single = c.single, false
		c.running = b
		ran := false
		if e.watch.on() {
			ran = c.runWatching(b)
		} else if e.opt.EveryInstruction {
			ran = c.runCounting(b)
		} else {
			e.Instrs += uint64(len(b.ops))
			e.Work += b.work
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
	e := c.e
	for i := range b.ops {
		o := &b.ops[i]
		if i > 0 && (c.reason != reasonNone || e.Instrs >= e.StopAt.Load()) {
			c.ip = o.ip
			return true
		}
		e.Instrs++
		if !o.exec(c, o) {
			return c.happened(o)
		}
	}
	e.Work += b.work
	if b.falls {
		c.ip = b.end
	}
	return true
}

// happened handles the event of an instruction that did not complete. It reports whether the
// instruction counts as complete.
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
	case eventLeave:
		return true
	case eventEnd:
		c.ip = o.ip
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
