package interp

import "kprobelab/machine"

func jccMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.sub = d.i.Opcode & 15
	switch d.op.sub {
	case 4:
		return opJz
	case 5:
		return opJnz
	}
	return opJcc
}

func opJz(c *cpu, o *op) bool {
	if c.cc.zf() {
		c.ip = o.imm
	} else {
		c.ip = o.next
	}
	return true
}

func opJnz(c *cpu, o *op) bool {
	if c.cc.zf() {
		c.ip = o.next
	} else {
		c.ip = o.imm
	}
	return true
}

func opJcc(c *cpu, o *op) bool {
	if c.cc.holds(o.sub) {
		c.ip = o.imm
	} else {
		c.ip = o.next
	}
	return true
}

func opJmp(c *cpu, o *op) bool {
	c.ip = o.imm
	return true
}

func opCall(c *cpu, o *op) bool {
	if !c.push(o.next, 8) {
		return false
	}
	c.ip = o.imm
	return true
}

func opRet(c *cpu, o *op) bool {
	v, ok := c.read(c.r[rsp], 8)
	if !ok {
		return false
	}
	c.r[rsp] += 8 + o.imm&0xffff
	c.ip = v
	return true
}

// loopMaker: loopne, loope, loop, jrcxz. The counter is ecx with 67.
func loopMaker(d *dec) func(c *cpu, o *op) bool {
	d.last = true
	d.op.sub = d.i.Opcode & 3
	d.op.size = 8
	if d.op.odd&oddA32 != 0 {
		d.op.size = 4
	}
	return opLoop
}

func opLoop(c *cpu, o *op) bool {
	c.ip = o.next
	n := c.reg(rcx, o.size)
	if o.sub == 3 {
		if n == 0 {
			c.ip = o.imm
		}
		return true
	}
	n--
	c.setReg(rcx, o.size, n)
	if c.reg(rcx, o.size) != 0 && (o.sub == 2 || c.cc.zf() == (o.sub == 1)) {
		c.ip = o.imm
	}
	return true
}

// groupFFMaker: inc, dec, call, far call, jmp, far jmp, push.
func groupFFMaker(d *dec) func(c *cpu, o *op) bool {
	switch d.i.ModRM >> 3 & 7 {
	case 0, 1:
		return incDecMaker(d)
	case 2:
		d.op.size, d.last = 8, true
		return opCallRM
	case 4:
		d.op.size, d.last = 8, true
		return opJmpRM
	case 3, 5:
		d.last = true
		return opFar
	case 6:
		d.size64()
		return opPushRM
	}
	return opInvalid
}

func opCallRM(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok || !c.push(o.next, 8) {
		return false
	}
	c.ip = v
	return true
}

func opJmpRM(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.ip = v
	}
	return ok
}

func opPushRM(c *cpu, o *op) bool {
	v, ok := c.get(o)
	return ok && c.push(v, o.size)
}

// opFar is a far call or jump.
func opFar(c *cpu, o *op) bool {
	a := c.ea(o)
	if _, ok := c.read(a, o.size); !ok {
		return false
	}
	sel, ok := c.read(a+uint64(o.size), 2)
	if ok && c.e.b != nil {
		return c.farOp(o, uint16(sel))
	}
	return ok && c.noSegment(uint16(sel))
}

// opFarReturn is retf and iret; sub is the number of words that they pop.
func opFarReturn(c *cpu, o *op) bool {
	if c.e.b != nil {
		return c.farReturnBooted(o)
	}
	var sel uint64
	for n := range uint64(o.sub) {
		v, ok := c.read(c.r[rsp]+n*uint64(o.size), o.size)
		if !ok {
			return false
		}
		if n == 1 {
			sel = v
		}
	}
	return c.noSegment(uint16(sel))
}

func farReturn(words uint8) maker {
	return func(d *dec) func(c *cpu, o *op) bool {
		d.last, d.op.sub = true, words
		return opFarReturn
	}
}

// noSegment is a transfer to another segment.
func (c *cpu) noSegment(sel uint16) bool {
	if sel&^3 == 0 {
		return c.fault(machine.VectorGP)
	}
	return c.descriptor(sel)
}

func opInt3(c *cpu, o *op) bool {
	c.ip = o.next
	c.event = event{kind: eventTrap, vector: machine.VectorInt3}
	return false
}

func opInt1(c *cpu, o *op) bool {
	c.ip = o.next
	c.event = event{kind: eventTrap, vector: machine.VectorDebug}
	return false
}

// opInt: there is no interrupt descriptor table, so it is a fault of its vector,
// as the engine reports it.
func opInt(c *cpu, o *op) bool {
	v := int(o.imm & 0xff)
	c.ip = o.next
	if v == machine.VectorInt3 || v == machine.VectorDebug {
		c.event = event{kind: eventTrap, vector: v}
		return false
	}
	c.event = event{kind: eventFault, vector: v, addr: afterInstruction}
	return false
}

// afterInstruction marks a fault whose frame has the next instruction's address.
const afterInstruction = 1

func opHlt(c *cpu, o *op) bool {
	c.ip = o.next
	c.event = event{kind: eventHalt}
	return false
}
