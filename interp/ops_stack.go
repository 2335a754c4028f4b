package interp

// stackSized makes 32-bit operands 64-bit.
func stackSized(fn func(c *cpu, o *op) bool) maker {
	return func(d *dec) func(c *cpu, o *op) bool {
		d.size64()
		return fn
	}
}

func pushMaker(d *dec) func(c *cpu, o *op) bool {
	d.size64()
	if d.op.size == 8 {
		return opPush64
	}
	return opPushReg
}

func opPush64(c *cpu, o *op) bool {
	sp := c.r[rsp] - 8
	if !c.write(sp, 8, c.r[o.rm]) {
		return false
	}
	c.r[rsp] = sp
	return true
}

func opPushReg(c *cpu, o *op) bool { return c.push(c.reg(o.rm, o.size), o.size) }

func pushImmMaker(d *dec) func(c *cpu, o *op) bool {
	d.size64()
	return opPushImm
}

func opPushImm(c *cpu, o *op) bool { return c.push(o.imm, o.size) }

func popMaker(d *dec) func(c *cpu, o *op) bool {
	d.size64()
	return opPopReg
}

func opPopReg(c *cpu, o *op) bool {
	v, ok := c.read(c.r[rsp], o.size)
	if !ok {
		return false
	}
	c.r[rsp] += uint64(o.size)
	c.setReg(o.rm, o.size, v)
	return true
}

func popRMMaker(d *dec) func(c *cpu, o *op) bool {
	d.size64()
	return opPopRM
}

// opPopRM: an address with rsp uses rsp after the pop.
func opPopRM(c *cpu, o *op) bool {
	v, ok := c.read(c.r[rsp], o.size)
	if !ok {
		return false
	}
	c.r[rsp] += uint64(o.size)
	if !c.put(o, v) {
		c.r[rsp] -= uint64(o.size)
		return false
	}
	return true
}

func opPushf(c *cpu, o *op) bool { return c.push(c.eflags()&^uint64(flagRF), o.size) }

func popfMaker(d *dec) func(c *cpu, o *op) bool {
	d.size64()
	d.last = true
	return opPopf
}

func opPopf(c *cpu, o *op) bool {
	v, ok := c.read(c.r[rsp], o.size)
	if !ok {
		return false
	}
	mask := uint64(popfMask)
	if o.size == 2 {
		mask &= 0xffff
	}
	if c.user {
		mask &^= 1<<9 | flagIOPL
	}
	c.setEflags(c.eflags()&^mask | v&mask)
	c.r[rsp] += uint64(o.size)
	c.ip = o.next
	c.followAC()
	return true
}

// opEnter makes a frame, and copies the enclosing frames' addresses.
func opEnter(c *cpu, o *op) bool {
	size, level := uint64(o.size), o.imm>>16&0x1f
	frame := c.r[rsp] - size
	if !c.write(frame, o.size, c.r[rbp]) {
		return false
	}
	for i := uint64(1); i < level; i++ {
		v, ok := c.read(c.r[rbp]-size*i, o.size)
		if !ok || !c.write(frame-size*i, o.size, v) {
			return false
		}
	}
	if level > 0 && !c.write(frame-size*level, o.size, frame) {
		return false
	}
	c.r[rbp] = frame
	c.r[rsp] = frame - o.imm&0xffff - size*level
	return true
}

func opLeave(c *cpu, o *op) bool {
	v, ok := c.read(c.r[rbp], o.size)
	if !ok {
		return false
	}
	c.r[rsp] = c.r[rbp] + uint64(o.size)
	c.setReg(rbp, o.size, v)
	return true
}
