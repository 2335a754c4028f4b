package interp

// Which string instruction.
const (
	movs = iota
	cmps
	stos
	lods
	scas
	ins
	outs
)

func stringMaker(kind uint8) maker {
	return func(d *dec) func(c *cpu, o *op) bool {
		d.bytesIfEven()
		d.op.sub = kind
		if d.f2 || d.f3 {
			d.last = true
			return opRepeat
		}
		return opString
	}
}

// opString is one iteration.
func opString(c *cpu, o *op) bool {
	seg := c.segment(o)
	mask := ^uint64(0)
	if o.odd&oddA32 != 0 {
		mask = 1<<32 - 1
	}
	from, to := c.r[rsi]&mask+seg, c.r[rdi]&mask
	var v, w uint64
	ok := true
	switch o.sub {
	case movs:
		if v, ok = c.read(from, o.size); ok {
			ok = c.write(to, o.size, v)
		}
	case cmps:
		if w, ok = c.read(to, o.size); ok {
			if v, ok = c.read(from, o.size); ok {
				c.alu(aluCmp, v, w, o.size)
			}
		}
	case stos:
		ok = c.write(to, o.size, c.reg(rax, o.size))
	case lods:
		if v, ok = c.read(from, o.size); ok {
			c.setReg(rax, o.size, v)
		}
	case ins: // every port reads as zero, and loses what is written
		ok = c.write(to, min(o.size, 4), 0)
	case outs:
		if v, ok = c.read(from, min(o.size, 4)); ok && c.reason < reasonExit {
			c.hypercall(uint16(c.r[rdx]), min(o.size, 4), v)
		}
	case scas:
		if v, ok = c.read(to, o.size); ok {
			c.alu(aluCmp, c.reg(rax, o.size), v, o.size)
		}
	}
	if !ok {
		return false
	}
	by := uint64(o.size)
	if o.sub >= ins {
		by = min(by, 4)
	}
	if c.flags&(1<<10) != 0 {
		by = -by
	}
	if o.sub != stos && o.sub != scas && o.sub != ins {
		c.r[rsi] = c.advance(c.r[rsi], by, mask)
	}
	if o.sub != lods && o.sub != outs {
		c.r[rdi] = c.advance(c.r[rdi], by, mask)
	}
	return true
}

func (c *cpu) advance(r, by, mask uint64) uint64 { return (r + by) & mask }

// opRepeat is a string instruction with rep. Each iteration is a block of its own,
// and so is the look at the counter that finds it used up; the first is part of
// the block that the instruction ends.
func opRepeat(c *cpu, o *op) bool {
	size := uint8(8)
	if o.odd&oddA32 != 0 {
		size = 4
	}
	n := c.reg(rcx, size)
	e := c.e
	alone := c.flags&(1<<8) != 0 || c.running.stepped
	c.resumed = none
	for {
		if n == 0 {
			c.ip = o.next
			return true
		}
		if !opString(c, o) {
			return false
		}
		n--
		c.setReg(rcx, size, n)
		if o.sub == cmps || o.sub == scas {
			if c.cc.zf() != (o.rep == 0xf3) {
				c.ip = o.next
				return true
			}
		}
		if alone {
			// After sti, all iterations come before an interrupt would.
			c.ip, c.single, c.resumed = o.ip, c.flags&(1<<8) == 0, o.ip
			if n == 0 {
				c.ip, c.single, c.resumed = o.next, false, none
			}
			return true
		}
		c.ip = o.ip
		if n == 0 && c.met() { // a receiver of the last hit finds the instruction complete
			c.ip = o.next
			return true
		}
		if c.reason != reasonNone || c.running.dead || c.met() || e.Instrs >= e.StopAt.Load() {
			c.resumed = o.ip
			return true
		}
		e.Instrs++
	}
}
