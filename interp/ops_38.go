package interp

import "math/bits"

// escape38 are the opcodes after 0F 38.
var escape38 = tableOf([]rows{
	{0x00, 0x41, sse38Maker},
	{0x10, 0x10, blendByMaker}, {0x14, 0x15, blendByMaker},
	{0x82, 0x82, invpcidMaker},
	{0xf0, 0xf1, movbeMaker},
	{0xf6, 0xf6, adxMaker},
})

func sse38Maker(d *dec) func(c *cpu, o *op) bool {
	if d.isMMX() {
		return nil
	}
	op := d.i.Opcode
	if op == 0x17 {
		return opPtest
	}
	if d.op.vec = packed38[op]; d.op.vec == nil {
		return nil
	}
	if op >= 0x20 && op <= 0x25 || op >= 0x30 && op <= 0x35 {
		// The part of the operand that is read: 8, 4, 2, 4, 2, 8 bytes.
		d.op.size = [...]uint8{8, 4, 2, 8, 4, 8}[op&7]
		return opWiden
	}
	return opPacked
}

func opWiden(c *cpu, o *op) bool {
	v, ok := c.low(o, o.size)
	if ok {
		c.x[o.reg] = o.vec(xmm{}, xmm{v})
	}
	return ok
}

func opPtest(c *cpu, o *op) bool {
	v, ok := c.vector(o, true)
	if !ok {
		return false
	}
	a, f := c.x[o.reg], uint64(0)
	if a[0]&v[0]|a[1]&v[1] == 0 {
		f |= 0x40
	}
	if ^a[0]&v[0]|^a[1]&v[1] == 0 {
		f |= 1
	}
	c.cc.setAll(f)
	return true
}

// movbeMaker: movbe, or crc32 with F2.
func movbeMaker(d *dec) func(c *cpu, o *op) bool {
	if d.f2 {
		o := d.op
		o.sub = o.size
		if d.i.Opcode == 0xf0 {
			o.sub = 1
			if !o.mem {
				o.rm = d.byteReg(o.rm)
			}
		}
		return opCrc32
	}
	if d.i.Opcode == 0xf0 {
		return opMovbeLoad
	}
	return opMovbeStore
}

func opCrc32(c *cpu, o *op) bool {
	v, ok := c.getSized(o, o.sub)
	if !ok {
		return false
	}
	crc := uint32(c.r[o.reg])
	for i := range o.sub {
		crc = crc32c(crc, byte(v>>(8*i)))
	}
	c.r[o.reg] = uint64(crc)
	return true
}

func opMovbeLoad(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.setReg(o.reg, o.size, reverse(v, o.size))
	}
	return ok
}

func opMovbeStore(c *cpu, o *op) bool { return c.put(o, reverse(c.reg(o.reg, o.size), o.size)) }

// adxMaker: adcx with 66, adox with F3.
func adxMaker(d *dec) func(c *cpu, o *op) bool {
	if d.i.REX&8 == 0 {
		d.op.size = 4
	}
	switch {
	case d.f3:
		d.op.sub = 11
	case d.size16:
		d.op.sub = 0
	default:
		return nil
	}
	return opAdx
}

// opAdx adds with CF or OF, and changes no other flag.
func opAdx(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	a, in := c.reg(o.reg, o.size), c.cc.all()>>o.sub&1
	sum, out := bits.Add64(a, v, in)
	if o.size == 4 {
		out = sum >> 32
	}
	c.setReg(o.reg, o.size, sum)
	c.cc.change(1<<o.sub, out<<o.sub)
	return true
}

// vex38 and vex3A have BMI1 and BMI2. The third operand is in VEX.vvvv.
var vex38 = tableOf([]rows{{0xf2, 0xf3, bmiMaker}, {0xf5, 0xf7, bmiMaker}})
var vex3A = tableOf([]rows{{0xf0, 0xf0, bmiMaker}})

func bmiMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	code := d.i.Bytes()
	last := code[d.i.PrefixLen+d.i.VexLen-1]
	o.size = 4
	if d.i.VexLen == 3 && last&0x80 != 0 {
		o.size = 8
	}
	o.sub = ^last >> 3 & 15
	fn := map[string]func(c *cpu, o *op) bool{
		"andn": opAndn, "blsr": opBlsr, "blsi": opBlsi, "blsmsk": opBlsmsk, "bextr": opBextr, "bzhi": opBzhi,
		"sarx": opSarx, "shlx": opShlx, "shrx": opShrx, "rorx": opRorx, "mulx": opMulx, "pdep": opPdep, "pext": opPext,
	}[d.i.Mnemonic()]
	return fn
}

func opAndn(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	v &^= c.reg(o.sub, o.size)
	c.setReg(o.reg, o.size, v)
	c.cc.set(ccLogic, v, 0, 64-8*o.size)
	return true
}

// lowest is blsr, blsi, blsmsk, whose result goes to VEX.vvvv. CF comes from the
// operand: for blsi it says that there was a bit, for the others that there was none.
func (c *cpu) lowest(o *op, fn func(v uint64) uint64, carry func(v uint64) bool) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	r := zeroExtend(fn(v), o.size)
	c.setReg(o.sub, o.size, r)
	c.cc.set(ccBit, r, 0, 64-8*o.size)
	if !carry(v) {
		c.cc.src = 1
	}
	return true
}

func opBlsr(c *cpu, o *op) bool {
	return c.lowest(o, func(v uint64) uint64 { return v & (v - 1) }, func(v uint64) bool { return v == 0 })
}

func opBlsi(c *cpu, o *op) bool {
	return c.lowest(o, func(v uint64) uint64 { return v & -v }, func(v uint64) bool { return v != 0 })
}

func opBlsmsk(c *cpu, o *op) bool {
	return c.lowest(o, func(v uint64) uint64 { return v ^ (v - 1) }, func(v uint64) bool { return v == 0 })
}

func opBextr(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	n := c.r[o.sub]
	from, count := n&0xff, n>>8&0xff
	v >>= from
	if count < 64 {
		v &= 1<<count - 1
	}
	c.setReg(o.reg, o.size, v)
	c.cc.set(ccLogic, v, 0, 64-8*o.size)
	return true
}

func opBzhi(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	n := c.r[o.sub] & 0xff
	over := n >= 8*uint64(o.size)
	if !over {
		v &= 1<<n - 1
	}
	c.setReg(o.reg, o.size, v)
	c.cc.set(ccBit, v, 0, 64-8*o.size)
	if !over {
		c.cc.src = 1
	}
	return true
}

func (c *cpu) plainShift(o *op, fn func(v, n uint64) uint64) bool {
	v, ok := c.get(o)
	if ok {
		c.setReg(o.reg, o.size, fn(v, c.r[o.sub]&uint64(countMask(o.size))))
	}
	return ok
}

func opShlx(c *cpu, o *op) bool { return c.plainShift(o, left) }
func opShrx(c *cpu, o *op) bool { return c.plainShift(o, right) }

func opSarx(c *cpu, o *op) bool {
	return c.plainShift(o, func(v, n uint64) uint64 { return uint64(signExtend(v, o.size) >> n) })
}

func opRorx(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		n := uint8(o.imm) & countMask(o.size)
		c.setReg(o.reg, o.size, rotate(v, 8*o.size-n, o.size))
	}
	return ok
}

func opMulx(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	hi, lo := bits.Mul64(v, c.reg(rdx, o.size))
	if o.size == 4 {
		hi = lo >> 32
	}
	c.setReg(o.sub, o.size, lo)
	c.setReg(o.reg, o.size, hi)
	return true
}

func opPdep(c *cpu, o *op) bool {
	mask, ok := c.get(o)
	if !ok {
		return false
	}
	v, r := c.reg(o.sub, o.size), uint64(0)
	for ; mask != 0; mask &= mask - 1 {
		r |= mask & -mask & -(v & 1)
		v >>= 1
	}
	c.setReg(o.reg, o.size, r)
	return true
}

func opPext(c *cpu, o *op) bool {
	mask, ok := c.get(o)
	if !ok {
		return false
	}
	v, r, n := c.reg(o.sub, o.size), uint64(0), 0
	for ; mask != 0; mask &= mask - 1 {
		if v&mask&-mask != 0 {
			r |= 1 << n
		}
		n++
	}
	c.setReg(o.reg, o.size, r)
	return true
}
