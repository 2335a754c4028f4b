package interp

import "math"

func sseFromIntMaker(d *dec) func(c *cpu, o *op) bool {
	if !d.f2 && !d.f3 {
		return nil // cvtpi2ps
	}
	if d.op.size != 8 {
		d.op.size = 4
	}
	if d.f2 {
		d.op.sub = 1
	}
	return opFromInt
}

func opFromInt(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	n := signExtend(v, o.size)
	if o.sub != 0 {
		c.x[o.reg].setLow(8, math.Float64bits(float64(n)))
	} else {
		c.x[o.reg].setLow(4, uint64(math.Float32bits(float32(n))))
	}
	return true
}

// sseToIntMaker: cvttss2si, cvttsd2si (2c), cvtss2si, cvtsd2si (2d).
func sseToIntMaker(d *dec) func(c *cpu, o *op) bool {
	if !d.f2 && !d.f3 {
		return nil
	}
	if d.op.size != 8 {
		d.op.size = 4
	}
	d.op.sub = d.i.Opcode & 1
	if d.f2 {
		return opToInt64
	}
	return opToInt32
}

func opToInt64(c *cpu, o *op) bool { return c.toInt(o, 8) }
func opToInt32(c *cpu, o *op) bool { return c.toInt(o, 4) }

func (c *cpu) toInt(o *op, from uint8) bool {
	v, ok := c.low(o, from)
	if !ok {
		return false
	}
	round := math.Trunc
	if o.sub != 0 {
		round = c.rounding()
	}
	c.setReg(o.reg, o.size, integer(round(toFloat(v, from == 8)), int(8*o.size)))
	return true
}

// integer is a number of some bits. One that does not fit is the smallest.
func integer(f float64, width int) uint64 {
	limit := math.Ldexp(1, width-1)
	if f >= -limit && f < limit {
		return uint64(int64(f))
	}
	return 1 << (width - 1)
}

// sseConvertMaker: conversions between floats (5a), and between floats and integers of 32 bits,
// which come from the low half of the operand where the result is wider (5b, e6).
func sseConvertMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	o.sub = d.i.Opcode
	switch {
	case o.sub == 0x5b && d.f2, o.sub == 0xe6 && d.isMMX():
		return nil
	case o.sub == 0x5a && (d.f2 || d.f3):
		o.size = 4
		if d.f2 {
			o.size = 8
		}
		return opConvert
	case o.sub == 0x5a && !d.size16:
		o.vec = widened(func(v uint64) uint64 { return double(v) })
		return opLowHalf
	case o.sub == 0x5a:
		o.vec = func(_, b xmm) xmm { return xmm{single(b[0]) | single(b[1])<<32, 0} }
		return opPacked
	case o.sub == 0xe6 && d.f3:
		o.vec = widened(func(v uint64) uint64 { return math.Float64bits(float64(int32(v))) })
		return opLowHalf
	case o.sub == 0x5b && d.isMMX():
		return opFromInts
	}
	o.imm = 0 // truncated
	if o.sub == 0x5b && d.size16 && !d.f3 || d.f2 {
		o.imm = 1
	}
	return opToInts
}

// widened converts the two parts of the low half to parts of twice the width.
func widened(fn func(v uint64) uint64) func(a, b xmm) xmm {
	return func(_, b xmm) xmm { return xmm{fn(b[0] & 0xffffffff), fn(b[0] >> 32)} }
}

func opLowHalf(c *cpu, o *op) bool {
	v, ok := c.low(o, 8)
	if ok {
		c.x[o.reg] = o.vec(c.x[o.reg], xmm{v})
	}
	return ok
}

func opFromInts(c *cpu, o *op) bool {
	v, ok := c.vector(o, true)
	if ok {
		c.x[o.reg] = v.each(32, func(x uint64) uint64 { return uint64(math.Float32bits(float32(int32(x)))) })
	}
	return ok
}

// opToInts: of four floats, or of two doubles, whose integers are the low half.
func opToInts(c *cpu, o *op) bool {
	v, ok := c.vector(o, true)
	if !ok {
		return false
	}
	round := math.Trunc
	if o.imm != 0 {
		round = c.rounding()
	}
	if o.sub == 0xe6 {
		of := func(x uint64) uint64 { return integer(round(math.Float64frombits(x)), 32) & 0xffffffff }
		c.x[o.reg] = xmm{of(v[0]) | of(v[1])<<32, 0}
		return true
	}
	c.x[o.reg] = v.each(32, func(x uint64) uint64 { return integer(round(toFloat(x, false)), 32) & 0xffffffff })
	return true
}

func opConvert(c *cpu, o *op) bool {
	v, ok := c.low(o, o.size)
	switch {
	case !ok:
		return false
	case o.size == 4:
		c.x[o.reg].setLow(8, double(v))
	default:
		c.x[o.reg].setLow(4, single(v))
	}
	return true
}

// double converts a float of 32 bits to 64, single back; a NaN keeps its sign and its top bits.
func double(v uint64) uint64 {
	if isNaN32(v) {
		return v&0x80000000<<32 | 0x7ff<<52 | quiet64 | v&0x3fffff<<29
	}
	return math.Float64bits(toFloat(v, false))
}

func single(v uint64) uint64 {
	if isNaN64(v) {
		return v>>32&0x80000000 | 0x7f800000 | quiet32 | v>>29&0x3fffff
	}
	return uint64(math.Float32bits(float32(toFloat(v, true))))
}
