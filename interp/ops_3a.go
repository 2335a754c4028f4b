package interp

import "math"

// escape3A are the opcodes after 0F 3A.
var escape3A = tableOf([]rows{
	{0x08, 0x0b, roundMaker},
	{0x0c, 0x0e, blendMaker},
	{0x0f, 0x0f, palignrMaker},
	{0x14, 0x17, extractMaker},
	{0x20, 0x20, insertMaker}, {0x22, 0x22, insertMaker},
	{0x21, 0x21, insertFloatMaker},
	{0x40, 0x41, dotMaker}, {0x42, 0x42, sumsOfDifferencesMaker},
	{0x60, 0x63, compareStringsMaker},
})

// The rounding modes, by the numbers of MXCSR and immediates: to nearest, down, up, towards zero.
var roundings = [...]func(float64) float64{math.RoundToEven, math.Floor, math.Ceil, math.Trunc}

// rounding returns the rounding mode of MXCSR.
func (c *cpu) rounding() func(float64) float64 { return roundings[c.mxcsr>>13&3] }

// roundMaker: roundps, roundpd, roundss, roundsd.
func roundMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	wide := d.i.Opcode&1 != 0
	o.size = 4
	if wide {
		o.size = 8
	}
	if d.i.Opcode >= 0x0a {
		return opRoundScalar
	}
	return opRoundPacked
}

func (o *op) round(c *cpu) func(float64) float64 {
	const byMXCSR = 4
	if o.imm&byMXCSR != 0 {
		return c.rounding()
	}
	return roundings[o.imm&3]
}

func roundBits(wide bool, round func(float64) float64) func(v uint64) uint64 {
	if wide {
		one := float64Op(func(_, y float64) float64 { return round(y) })
		return func(v uint64) uint64 { return one(v, v) }
	}
	one := float32Op(func(_, y float32) float32 { return float32(round(float64(y))) })
	return func(v uint64) uint64 { return one(v, v) }
}

func opRoundScalar(c *cpu, o *op) bool {
	v, ok := c.low(o, o.size)
	if ok {
		c.x[o.reg].setLow(o.size, roundBits(o.size == 8, o.round(c))(v))
	}
	return ok
}

func opRoundPacked(c *cpu, o *op) bool {
	v, ok := c.vector(o, true)
	if ok {
		c.x[o.reg] = v.each(int(o.size)*8, roundBits(o.size == 8, o.round(c)))
	}
	return ok
}

// each applies fn to each part.
func (v xmm) each(width int, fn func(x uint64) uint64) xmm {
	if width == 64 {
		return xmm{fn(v[0]), fn(v[1])}
	}
	for i := range 128 / width {
		v.setLane(i, width, fn(v.lane(i, width)))
	}
	return v
}

// blendMaker: blendps, blendpd, pblendw.
func blendMaker(d *dec) func(c *cpu, o *op) bool {
	width := [...]int{32, 64, 16}[d.i.Opcode-0x0c]
	n := d.op.imm
	d.op.vec = func(a, b xmm) xmm { return blend(a, b, width, func(i int) bool { return n>>i&1 != 0 }) }
	return opPacked
}

// blend takes the wanted parts of b, and the other parts of a.
func blend(a, b xmm, width int, wanted func(i int) bool) xmm {
	if width == 64 {
		for i := range a {
			if wanted(i) {
				a[i] = b[i]
			}
		}
		return a
	}
	for i := range 128 / width {
		if wanted(i) {
			a.setLane(i, width, b.lane(i, width))
		}
	}
	return a
}

// blendByMaker: pblendvb, blendvps, blendvpd, which take parts where xmm0 has the top bit.
func blendByMaker(d *dec) func(c *cpu, o *op) bool {
	if !d.size16 {
		return nil
	}
	d.op.sub = map[byte]uint8{0x10: 8, 0x14: 32, 0x15: 64}[d.i.Opcode]
	return opBlendBy
}

func opBlendBy(c *cpu, o *op) bool {
	v, ok := c.vector(o, true)
	if ok {
		wanted := c.x[0].signs(int(o.sub))
		c.x[o.reg] = blend(c.x[o.reg], v, int(o.sub), func(i int) bool { return wanted>>i&1 != 0 })
	}
	return ok
}

// insertFloatMaker: insertps.
func insertFloatMaker(d *dec) func(c *cpu, o *op) bool {
	if d.op.mem {
		d.op.imm &= 0x3f
	}
	return opInsertFloat
}

func opInsertFloat(c *cpu, o *op) bool {
	v, ok := c.low(o, 4)
	if !ok {
		return false
	}
	if !o.mem {
		v = c.x[o.rm].lane(int(o.imm>>6&3), 32)
	}
	x := &c.x[o.reg]
	x.setLane(int(o.imm>>4&3), 32, v)
	for i := range 4 {
		if o.imm>>i&1 != 0 {
			x.setLane(i, 32, 0)
		}
	}
	return true
}

// dotMaker: dpps, dppd. Neighbours are added first. The order of the operands decides which of two NaNs is the sum: AMD's
// processors make one sum for all parts; Intel's make one for each, of which the pseudocode (SDM Vol. 2) says nothing. The
// orders were measured on an EPYC and on a Xeon.
func dotMaker(d *dec) func(c *cpu, o *op) bool {
	n, k, width := d.op.imm, 0, 32
	if d.i.Opcode == 0x41 {
		k, width = 1, 64
	}
	mul, add := floatOps[0x59][k], floatOps[0x58][k]
	parts := 128 / width
	sum := func(p *[4]uint64, _ int) uint64 {
		if parts == 2 {
			return add(p[0], p[1])
		}
		return add(add(p[0], p[1]), add(p[2], p[3]))
	}
	if !d.c.has.Reads.AMD {
		sum = func(p *[4]uint64, i int) uint64 {
			if parts == 2 {
				return add(p[i], p[i^1])
			}
			return add(add(p[i^1], p[i]), add(p[i^3], p[i^2]))
		}
	}
	d.op.vec = func(a, b xmm) (v xmm) {
		var p [4]uint64
		for i := range parts {
			if n>>(4+i)&1 != 0 {
				p[i] = mul(a.part(i, width), b.part(i, width))
			}
		}
		for i := range parts {
			if n>>i&1 != 0 {
				v.setPart(i, width, sum(&p, i))
			}
		}
		return v
	}
	return opPacked
}

// part and setPart are lane and setLane for whole halves, too.
func (v *xmm) part(i, width int) uint64 {
	if width == 64 {
		return v[i]
	}
	return v.lane(i, width)
}

func (v *xmm) setPart(i, width int, x uint64) {
	if width == 64 {
		v[i] = x
		return
	}
	v.setLane(i, width, x)
}

// sumsOfDifferencesMaker: mpsadbw.
func sumsOfDifferencesMaker(d *dec) func(c *cpu, o *op) bool {
	from, to := int(d.op.imm>>2&1)*4, int(d.op.imm&3)*4
	d.op.vec = func(a, b xmm) (v xmm) {
		for i := range 8 {
			sum := int64(0)
			for j := range 4 {
				n := int64(a.lane(from+i+j, 8)) - int64(b.lane(to+j, 8))
				sum += max(n, -n)
			}
			v.setLane(i, 16, uint64(sum))
		}
		return v
	}
	return opPacked
}

func palignrMaker(d *dec) func(c *cpu, o *op) bool {
	if d.isMMX() {
		return nil
	}
	n := d.op.imm & 0xff
	d.op.vec = func(a, b xmm) xmm {
		if n >= 16 {
			return shiftBytesRight(a, xmm{n - 16})
		}
		lo, hi := shiftBytesRight(b, xmm{n}), shiftBytesLeft(a, xmm{16 - n})
		return xmm{lo[0] | hi[0], lo[1] | hi[1]}
	}
	return opPacked
}

// extractMaker: pextrb, pextrw, pextrd, pextrq, extractps.
func extractMaker(d *dec) func(c *cpu, o *op) bool {
	wide := d.op.size == 8
	switch d.i.Opcode {
	case 0x14:
		d.op.sub = 8
	case 0x15:
		d.op.sub = 16
	default:
		d.op.sub = 32
		if wide && d.i.Opcode == 0x16 {
			d.op.sub = 64
		}
	}
	return opExtract
}

func opExtract(c *cpu, o *op) bool {
	w := int(o.sub)
	v := c.x[o.reg][o.imm&1]
	if w < 64 {
		v = c.x[o.reg].lane(int(o.imm)&(128/w-1), w)
	}
	if o.mem {
		return c.write(c.ea(o), o.sub/8, v)
	}
	c.r[o.rm] = v
	return true
}

// insertMaker: pinsrb, pinsrd, pinsrq.
func insertMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.sub = 32
	if d.op.size == 8 {
		d.op.sub = 64
	}
	if d.i.Opcode == 0x20 {
		d.op.sub = 8
	}
	return opInsert
}

func opInsert(c *cpu, o *op) bool {
	v, ok := c.getSized(o, o.sub/8)
	if !ok {
		return false
	}
	if o.sub == 64 {
		c.x[o.reg][o.imm&1] = v
	} else {
		c.x[o.reg].setLane(int(o.imm)&(128/int(o.sub)-1), int(o.sub), v)
	}
	return true
}
