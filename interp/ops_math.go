package interp

import (
	"math/bits"

	"kprobelab/machine"
	"kprobelab/x86"
)

// incDecMaker: opcodes 0xfe and 0xff, /0 and /1.
func incDecMaker(d *dec) func(c *cpu, o *op) bool {
	d.bytesIfEven()
	switch d.i.ModRM >> 3 & 7 {
	case 0:
		return opInc
	case 1:
		return opDec
	}
	return opInvalid
}

func opInc(c *cpu, o *op) bool { return c.step(o, ccInc, 1) }
func opDec(c *cpu, o *op) bool { return c.step(o, ccDec, ^uint64(0)) }

func (c *cpu) step(o *op, kind ccKind, by uint64) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	was, cf := c.cc, uint64(0)
	if c.cc.cf() {
		cf = 1
	}
	v += by
	c.cc.set(kind, v, 0, 64-8*o.size)
	c.cc.src = cf
	return c.update(o, &was, a, v)
}

// unaryMaker: test, not, neg, mul, imul, div, idiv.
func unaryMaker(d *dec) func(c *cpu, o *op) bool {
	d.bytesIfEven()
	return [...]func(c *cpu, o *op) bool{opTestImm, opTestImm, opNot, opNeg, opMul, opImul, opDiv, opIdiv}[d.i.ModRM>>3&7]
}

func opNot(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	was := c.cc
	return c.update(o, &was, a, ^v)
}

func opNeg(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	was := c.cc
	return c.update(o, &was, a, c.alu(aluSub, 0, v, o.size))
}

func signExtend(v uint64, size uint8) int64 {
	sh := 64 - 8*size
	return int64(v<<sh) >> sh
}

func zeroExtend(v uint64, size uint8) uint64 {
	sh := 64 - 8*size
	return v << sh >> sh
}

// product stores a product in the registers of mul and imul.
func (c *cpu) product(o *op, hi, lo uint64) {
	if o.size == 1 {
		c.setReg(rax, 2, lo)
		return
	}
	c.setReg(rax, o.size, lo)
	c.setReg(rdx, o.size, hi)
}

func opMul(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	hi, lo := bits.Mul64(v, c.reg(rax, o.size))
	if o.size < 8 {
		hi = lo >> (8 * o.size)
	}
	c.product(o, hi, lo)
	c.cc.set(ccMul, lo, 0, 64-8*o.size)
	c.cc.src = hi
	return true
}

// signedProduct of two operands; over is 1 if it does not fit.
func signedProduct(a, b int64, size uint8) (hi, lo uint64, over uint64) {
	if size < 8 {
		p := a * b
		if signExtend(uint64(p), size) != p {
			over = 1
		}
		return uint64(p >> (8 * size)), uint64(p), over
	}
	hi, lo = bits.Mul64(uint64(a), uint64(b))
	if a < 0 {
		hi -= uint64(b)
	}
	if b < 0 {
		hi -= uint64(a)
	}
	if hi != uint64(int64(lo)>>63) {
		over = 1
	}
	return hi, lo, over
}

func opImul(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	hi, lo, over := signedProduct(signExtend(v, o.size), signExtend(c.r[rax], o.size), o.size)
	c.product(o, hi, lo)
	c.cc.set(ccMul, lo, 0, 64-8*o.size)
	c.cc.src = over
	return true
}

func opImul2(c *cpu, o *op) bool { return c.imulTo(o, c.reg(o.reg, o.size)) }
func opImul3(c *cpu, o *op) bool { return c.imulTo(o, o.imm) }

func (c *cpu) imulTo(o *op, by uint64) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	_, lo, over := signedProduct(signExtend(v, o.size), signExtend(by, o.size), o.size)
	c.setReg(o.reg, o.size, lo)
	c.cc.set(ccMul, lo, 0, 64-8*o.size)
	c.cc.src = over
	return true
}

// dividend is rdx:rax, or ax for bytes.
func (c *cpu) dividend(size uint8) (hi, lo uint64) {
	if size == 1 {
		return c.r[rax] >> 8 & 0xff, c.r[rax] & 0xff
	}
	return c.reg(rdx, size), c.reg(rax, size)
}

func (c *cpu) quotient(size uint8, q, r uint64) {
	if size == 1 {
		c.setReg(rax, 2, q&0xff|r&0xff<<8)
		return
	}
	c.setReg(rax, size, q)
	c.setReg(rdx, size, r)
}

func opDiv(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	hi, lo := c.dividend(o.size)
	if v <= hi { // it would not fit, or v is 0
		return c.fault(machine.VectorDivide)
	}
	var q, r uint64
	if o.size == 8 {
		q, r = bits.Div64(hi, lo, v)
	} else {
		n := hi<<(8*o.size) | lo
		q, r = n/v, n%v
	}
	c.quotient(o.size, q, r)
	return true
}

func opIdiv(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	hi, lo := c.dividend(o.size)
	by := signExtend(v, o.size)
	if by == 0 {
		return c.fault(machine.VectorDivide)
	}
	if o.size < 8 {
		n := signExtend(hi, o.size)<<(8*o.size) | int64(lo)
		q, r := n/by, n%by
		if signExtend(uint64(q), o.size) != q {
			return c.fault(machine.VectorDivide)
		}
		c.quotient(o.size, uint64(q), uint64(r))
		return true
	}
	q, r, fits := divide128(hi, lo, v)
	if !fits {
		return c.fault(machine.VectorDivide)
	}
	c.quotient(8, q, r)
	return true
}

// divide128 divides a signed number of 128 bits by a signed number of 64 bits.
func divide128(hi, lo, by uint64) (q, r uint64, fits bool) {
	negative, byNegative := int64(hi) < 0, int64(by) < 0
	if negative {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	if byNegative {
		by = -by
	}
	if by <= hi {
		return 0, 0, false
	}
	q, r = bits.Div64(hi, lo, by)
	if negative != byNegative {
		if q > 1<<63 {
			return 0, 0, false
		}
		q = -q
	} else if q >= 1<<63 {
		return 0, 0, false
	}
	if negative {
		r = -r
	}
	return q, r, true
}

// Shifts and rotations, by their number in ModRM.reg.
const (
	shRol = iota
	shRor
	shRcl
	shRcr
	shShl
	shShr
	shSal
	shSar
)

func shiftMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	o.sub = d.i.ModRM >> 3 & 7
	d.bytesIfEven()
	switch {
	case d.i.Opcode >= 0xd2:
		return opShiftCL
	case d.i.Opcode >= 0xd0:
		o.imm = 1
	}
	return opShift
}

func opShift(c *cpu, o *op) bool   { return c.shift(o, uint8(o.imm)) }
func opShiftCL(c *cpu, o *op) bool { return c.shift(o, uint8(c.r[rcx])) }

func (c *cpu) shift(o *op, n uint8) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	n &= countMask(o.size)
	was := c.cc
	return c.update(o, &was, a, c.shifted(o.sub, v, n, o.size))
}

// countMask: a count has 5 bits, or 6 for operands of 64.
func countMask(size uint8) uint8 {
	if size == 8 {
		return 63
	}
	return 31
}

// shifted computes a shift or rotation and sets the flags, unless n is 0.
func (c *cpu) shifted(sub uint8, v uint64, n, size uint8) uint64 {
	if n == 0 {
		return v
	}
	sh := 64 - 8*size
	switch sub {
	case shShl, shSal:
		c.cc.set(ccShl, v<<n, v<<(n-1), sh)
		return v << n
	case shShr:
		c.cc.set(ccSar, v>>n, v>>(n-1), sh)
		return v >> n
	case shSar:
		s := signExtend(v, size)
		c.cc.set(ccSar, uint64(s>>n), uint64(s>>(n-1)), sh)
		return uint64(s >> n)
	case shRol:
		v = rotate(v, n, size)
		c.rotated(v&1, v>>(8*size-1)&1)
		return v
	case shRor:
		v = rotate(v, 8*size-n%(8*size), size)
		top := v >> (8*size - 1) & 1
		c.rotated(top, v>>(8*size-2)&1)
		return v
	}
	return c.rotateCarry(sub, v, n, size)
}

// rotate rotates to the left.
func rotate(v uint64, n, size uint8) uint64 {
	w := 8 * size
	n %= w
	return zeroExtend(v<<n|v>>(w-n), size)
}

// rotated sets CF, and OF to whether CF and the other bit differ.
func (c *cpu) rotated(cf, other uint64) {
	c.cc.change(x86.FlagCF|x86.FlagOF, cf|(cf^other)<<11)
}

// rotateCarry rotates through CF.
func (c *cpu) rotateCarry(sub uint8, v uint64, n, size uint8) uint64 {
	w := 8 * size
	if w < 32 {
		if n %= w + 1; n == 0 {
			return v
		}
	}
	in, was := c.cc.all()&1, v
	var out uint64
	if sub == shRcl {
		v = v<<n | in<<(n-1)
		if n > 1 {
			v |= was >> (w + 1 - n)
		}
		out = was >> (w - n) & 1
	} else {
		v = v>>n | in<<(w-n)
		if n > 1 {
			v |= was << (w + 1 - n)
		}
		out = was >> (n - 1) & 1
	}
	v = zeroExtend(v, size)
	c.cc.change(x86.FlagCF|x86.FlagOF, out|(was^v)>>(w-1)&1<<11)
	return v
}

// shld and shrd. With 16 bits and a count above them, the bits that come in from the other register
// are followed by the first register's bits (as on Intel's processors).
func doubleShift(right bool) func(d *dec) func(c *cpu, o *op) bool {
	return func(d *dec) func(c *cpu, o *op) bool {
		if right {
			d.op.sub = 1
		}
		if d.i.ImmLen == 0 {
			return opDoubleShiftCL
		}
		return opDoubleShift
	}
}

func opDoubleShift(c *cpu, o *op) bool   { return c.doubleShift(o, uint8(o.imm)) }
func opDoubleShiftCL(c *cpu, o *op) bool { return c.doubleShift(o, uint8(c.r[rcx])) }

func (c *cpu) doubleShift(o *op, n uint8) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	was := c.cc
	n &= countMask(o.size)
	if n == 0 {
		return c.update(o, &was, a, v)
	}
	in, w, sh := c.reg(o.reg, o.size), 8*o.size, 64-8*o.size
	var before, after uint64
	if o.sub == 0 {
		before, after = shldOnce(v, in, n-1, w), shldOnce(v, in, n, w)
		c.cc.set(ccShl, after, before, sh)
	} else {
		before, after = shrdOnce(v, in, n-1, w), shrdOnce(v, in, n, w)
		c.cc.set(ccSar, after, before, sh)
	}
	return c.update(o, &was, a, after)
}

func shldOnce(v, in uint64, n, w uint8) uint64 {
	if w == 16 {
		x := v<<48 | in<<32 | v<<16 // 16 bits of each
		return x << n >> 48
	}
	return zeroExtend(v<<n|in>>(w-n), w/8)
}

func shrdOnce(v, in uint64, n, w uint8) uint64 {
	if w == 16 {
		x := v<<32 | in<<16 | v
		return x >> n & 0xffff
	}
	return zeroExtend(v>>n|in<<(w-n), w/8)
}
