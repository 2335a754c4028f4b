package interp

import (
	"encoding/binary"

	"kprobelab/machine"
)

// sse0F are the rows of SSE and SSE2 after 0F.
var sse0F = []rows{
	{0x10, 0x11, sseMoveMaker}, {0x28, 0x29, sseMoveMaker}, {0x2b, 0x2b, sseMoveMaker},
	{0x6f, 0x6f, sseMoveMaker}, {0x7f, 0x7f, sseMoveMaker}, {0xe7, 0xe7, sseMoveMaker}, {0xf0, 0xf0, sseMoveMaker},
	{0x12, 0x13, sseHalfMaker}, {0x16, 0x17, sseHalfMaker},
	{0x7c, 0x7d, sseNeighboursMaker}, {0xd0, 0xd0, sseSubAddMaker}, {0xf7, 0xf7, sseMaskedMaker},
	{0x14, 0x15, ssePackedMaker}, {0x54, 0x57, ssePackedMaker},
	{0x60, 0x6d, ssePackedMaker}, {0x74, 0x76, ssePackedMaker},
	{0xd1, 0xd5, ssePackedMaker}, {0xd8, 0xe5, ssePackedMaker}, {0xe8, 0xef, ssePackedMaker},
	{0xf1, 0xf6, ssePackedMaker}, {0xf8, 0xfe, ssePackedMaker},
	{0x6e, 0x6e, sseFromGeneralMaker}, {0x7e, 0x7e, sseToGeneralMaker}, {0xd6, 0xd6, sseStoreLowMaker},
	{0x70, 0x70, sseShuffleMaker}, {0xc6, 0xc6, sseShuffleMaker},
	{0x71, 0x73, sseShiftMaker},
	{0x50, 0x50, sseSignsMaker}, {0xd7, 0xd7, sseSignsMaker},
	{0xc4, 0xc5, sseWordMaker},
	{0x51, 0x53, sseFloatMaker}, {0x58, 0x59, sseFloatMaker}, {0x5c, 0x5f, sseFloatMaker}, {0xc2, 0xc2, sseFloatMaker},
	{0x2a, 0x2a, sseFromIntMaker}, {0x2c, 0x2d, sseToIntMaker}, {0x2e, 0x2f, sseCompareMaker}, {0x5a, 0x5b, sseConvertMaker}, {0xe6, 0xe6, sseConvertMaker},
}

// vector reads the ModRM operand as a vector; aligned as SSE wants it.
func (c *cpu) vector(o *op, aligned bool) (v xmm, ok bool) {
	if !o.mem {
		return c.x[o.rm], true
	}
	a := c.ea(o)
	if aligned && a&15 != 0 {
		return v, c.fault(machine.VectorGP)
	}
	lo, ok := c.read(a, 8)
	if !ok {
		return v, false
	}
	hi, ok := c.read(a+8, 8)
	return xmm{lo, hi}, ok
}

func (c *cpu) putVector(o *op, v xmm, aligned bool) bool {
	if !o.mem {
		c.x[o.rm] = v
		return true
	}
	a := c.ea(o)
	if aligned && a&15 != 0 {
		return c.fault(machine.VectorGP)
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], v[0])
	binary.LittleEndian.PutUint64(b[8:], v[1])
	return c.writeBytes(a, b[:])
}

// low reads the low part of the ModRM operand, of size bytes.
func (c *cpu) low(o *op, size uint8) (uint64, bool) {
	if o.mem {
		return c.read(c.ea(o), size)
	}
	return zeroExtend(c.x[o.rm][0], size), true
}

// isMMX: without a prefix, the integer instructions have MMX registers, which are
// not emulated.
func (d *dec) isMMX() bool { return !d.size16 && !d.f2 && !d.f3 }

// sseMoveMaker: movups, movaps, movdqa, movdqu, movss, movsd, movnt…, lddqu.
func sseMoveMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	op := d.i.Opcode
	if op >= 0x6f && d.isMMX() {
		return nil
	}
	store := op == 0x11 || op == 0x29 || op == 0x2b || op == 0x7f || op == 0xe7
	if op < 0x2c && (d.f2 || d.f3) {
		o.size = 4
		if d.f2 {
			o.size = 8
		}
		if store {
			return opStoreScalar
		}
		return opLoadScalar
	}
	if op == 0x28 || op == 0x29 || op == 0x2b || op == 0xe7 || (op == 0x6f || op == 0x7f) && !d.f3 {
		o.sub = 1
	}
	if store {
		return opStoreVector
	}
	return opLoadVector
}

func opStoreVector(c *cpu, o *op) bool { return c.putVector(o, c.x[o.reg], o.sub != 0) }

func opLoadVector(c *cpu, o *op) bool {
	v, ok := c.vector(o, o.sub != 0)
	if ok {
		c.x[o.reg] = v
	}
	return ok
}

// opLoadScalar clears the rest of the register where it loads from memory.
func opLoadScalar(c *cpu, o *op) bool {
	v, ok := c.low(o, o.size)
	switch {
	case !ok:
		return false
	case o.mem:
		c.x[o.reg] = xmm{v, 0}
	default:
		c.x[o.reg].setLow(o.size, v)
	}
	return true
}

// setLow changes the low 4 or 8 bytes.
func (v *xmm) setLow(size uint8, x uint64) {
	if size == 8 {
		v[0] = x
	} else {
		v[0] = v[0]>>32<<32 | uint64(uint32(x))
	}
}

func opStoreScalar(c *cpu, o *op) bool {
	if o.mem {
		return c.write(c.ea(o), o.size, c.x[o.reg][0])
	}
	c.x[o.rm].setLow(o.size, c.x[o.reg][0])
	return true
}

// sseHalfMaker: movlps, movhlps, movhps, movlhps and their kin of SSE2.
func sseHalfMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	if d.f2 || d.f3 {
		return sseDoubleMaker(d)
	}
	o.sub = d.i.Opcode >> 2 & 1 // the half of reg
	if d.i.Opcode&1 != 0 {
		return opStoreHalf
	}
	return opLoadHalf
}

func opLoadHalf(c *cpu, o *op) bool {
	if !o.mem {
		c.x[o.reg][o.sub] = c.x[o.rm][1-o.sub]
		return true
	}
	v, ok := c.read(c.ea(o), 8)
	if ok {
		c.x[o.reg][o.sub] = v
	}
	return ok
}

func opStoreHalf(c *cpu, o *op) bool { return c.write(c.ea(o), 8, c.x[o.reg][o.sub]) }

func ssePackedMaker(d *dec) func(c *cpu, o *op) bool {
	op := d.i.Opcode
	d.op.vec = packed[op]
	switch {
	case op < 0x60 && !d.size16: // of floats; logic does not care
		if op < 0x50 {
			d.op.vec = unpack(32, op == 0x15)
		}
	case d.isMMX(), d.f2, d.f3, d.op.vec == nil:
		return nil
	}
	return opPacked
}

func opPacked(c *cpu, o *op) bool {
	v, ok := c.vector(o, true)
	if ok {
		c.x[o.reg] = o.vec(c.x[o.reg], v)
	}
	return ok
}

func sseFromGeneralMaker(d *dec) func(c *cpu, o *op) bool {
	if d.isMMX() {
		return nil
	}
	if d.op.size != 8 {
		d.op.size = 4
	}
	return opFromGeneral
}

func opFromGeneral(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.x[o.reg] = xmm{v, 0}
	}
	return ok
}

func sseToGeneralMaker(d *dec) func(c *cpu, o *op) bool {
	switch {
	case d.f3:
		return opLoadLow
	case d.isMMX():
		return nil
	case d.op.size != 8:
		d.op.size = 4
	}
	return opToGeneral
}

func opToGeneral(c *cpu, o *op) bool { return c.put(o, c.x[o.reg][0]) }

// opLoadLow is movq to a vector register.
func opLoadLow(c *cpu, o *op) bool {
	v, ok := c.low(o, 8)
	if ok {
		c.x[o.reg] = xmm{v, 0}
	}
	return ok
}

func sseStoreLowMaker(d *dec) func(c *cpu, o *op) bool {
	if d.f2 || d.f3 {
		return nil // movq2dq, movdq2q
	}
	return opStoreLow
}

func opStoreLow(c *cpu, o *op) bool {
	if o.mem {
		return c.write(c.ea(o), 8, c.x[o.reg][0])
	}
	c.x[o.rm] = xmm{c.x[o.reg][0], 0}
	return true
}

// sseShuffleMaker: pshufd, pshufhw, pshuflw, shufps, shufpd.
func sseShuffleMaker(d *dec) func(c *cpu, o *op) bool {
	n := d.op.imm
	pick := func(src *xmm, width, base, i int) uint64 { return src.lane(base+int(n>>(2*i)&3), width) }
	switch {
	case d.i.Opcode == 0xc6 && d.size16:
		d.op.vec = func(a, b xmm) xmm { return xmm{a[n&1], b[n>>1&1]} }
	case d.i.Opcode == 0xc6:
		d.op.vec = func(a, b xmm) (v xmm) {
			for i := range 4 {
				src := &a
				if i > 1 {
					src = &b
				}
				v.setLane(i, 32, pick(src, 32, 0, i))
			}
			return v
		}
	case d.isMMX():
		return nil
	case d.f2, d.f3:
		base := 0
		if d.f3 {
			base = 4
		}
		d.op.vec = func(_, b xmm) xmm {
			v := b
			for i := range 4 {
				v.setLane(base+i, 16, pick(&b, 16, base, i))
			}
			return v
		}
	default:
		d.op.vec = func(_, b xmm) (v xmm) {
			for i := range 4 {
				v.setLane(i, 32, pick(&b, 32, 0, i))
			}
			return v
		}
	}
	return opPacked
}

// sseShiftMaker: shifts by an immediate.
func sseShiftMaker(d *dec) func(c *cpu, o *op) bool {
	if d.isMMX() {
		return nil
	}
	reg := d.i.ModRM >> 3 & 7
	switch {
	case d.i.Opcode == 0x73 && reg == 3:
		d.op.vec = shiftBytesRight
	case d.i.Opcode == 0x73 && reg == 7:
		d.op.vec = shiftBytesLeft
	case reg == 2, reg == 4, reg == 6:
		// psrl, psra, psll by a vector are at 0xd1, 0xe1, 0xf1.
		d.op.vec = packed[0xd0+(reg-2)<<3+d.i.Opcode-0x70]
	}
	if d.op.vec == nil {
		return nil
	}
	return opShiftVector
}

func opShiftVector(c *cpu, o *op) bool {
	c.x[o.rm] = o.vec(c.x[o.rm], xmm{o.imm & 0xff})
	return true
}

// sseSignsMaker: movmskps, movmskpd, pmovmskb.
func sseSignsMaker(d *dec) func(c *cpu, o *op) bool {
	switch {
	case d.i.Opcode == 0xd7 && d.isMMX():
		return nil
	case d.i.Opcode == 0xd7:
		d.op.sub = 8
	case d.size16:
		d.op.sub = 64
	default:
		d.op.sub = 32
	}
	return opSigns
}

func opSigns(c *cpu, o *op) bool {
	c.r[o.reg] = c.x[o.rm].signs(int(o.sub))
	return true
}

// sseWordMaker: pinsrw, pextrw.
func sseWordMaker(d *dec) func(c *cpu, o *op) bool {
	if d.isMMX() {
		return nil
	}
	if d.i.Opcode == 0xc4 {
		return opInsertWord
	}
	return opExtractWord
}

func opInsertWord(c *cpu, o *op) bool {
	v, ok := c.getSized(o, 2)
	if ok {
		c.x[o.reg].setLane(int(o.imm&7), 16, v)
	}
	return ok
}

func opExtractWord(c *cpu, o *op) bool {
	c.r[o.reg] = c.x[o.rm].lane(int(o.imm&7), 16)
	return true
}
