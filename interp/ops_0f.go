package interp

import (
	"encoding/binary"
	"math/bits"

	"kprobelab/machine"
)

// escape0F are the opcodes after 0F.
var escape0F = tableOf(append([]rows{
	{0x00, 0x00, group00Maker}, {0x01, 0x01, group01Maker},
	{0x02, 0x03, larMaker},
	{0x05, 0x05, syscallMaker}, {0x07, 0x07, sysretMaker}, {0x34, 0x34, ends(opInvalidLater)},
	{0x06, 0x06, ends(opClts)},
	{0x08, 0x09, as(opNop)},
	{0x0b, 0x0b, ends(opInvalid)}, {0xb9, 0xb9, ends(opInvalid)}, {0xff, 0xff, ends(opInvalid)},
	{0x0d, 0x0d, as(opNop)}, {0x18, 0x1f, hintMaker},
	{0x20, 0x20, movControlMaker}, {0x22, 0x22, movControlMaker},
	{0x21, 0x21, movDebugMaker}, {0x23, 0x23, movDebugMaker},
	{0x30, 0x30, as(opWrmsr)}, {0x31, 0x31, as(opRdtsc)}, {0x32, 0x32, as(opRdmsr)}, {0x33, 0x33, as(opRdpmc)},
	{0x40, 0x4f, conditional(opCmov)},
	{0x77, 0x77, emmsMaker},
	{0x80, 0x8f, jccMaker},
	{0x90, 0x9f, setccMaker},
	{0xa0, 0xa0, pushSegMaker}, {0xa8, 0xa8, pushSegMaker},
	{0xa1, 0xa1, popSegMaker}, {0xa9, 0xa9, popSegMaker},
	{0xa2, 0xa2, as(opCpuid)},
	{0xa3, 0xa3, bitMaker}, {0xab, 0xab, bitMaker}, {0xb3, 0xb3, bitMaker}, {0xbb, 0xbb, bitMaker}, {0xba, 0xba, bitMaker},
	{0xa4, 0xa5, doubleShift(false)}, {0xac, 0xad, doubleShift(true)},
	{0xae, 0xae, groupAEMaker},
	{0xaf, 0xaf, as(opImul2)},
	{0xb0, 0xb1, sized(opCmpxchg)}, {0xc0, 0xc1, sized(opXadd)},
	{0xb6, 0xb6, extendMaker}, {0xb7, 0xb7, extendMaker}, {0xbe, 0xbe, extendMaker}, {0xbf, 0xbf, extendMaker},
	{0xb8, 0xb8, as(opPopcnt)},
	{0xbc, 0xbd, scanMaker},
	{0xc3, 0xc3, as(opStore)},
	{0xb2, 0xb2, farPointerMaker}, {0xb4, 0xb5, farPointerMaker},
	{0xc7, 0xc7, groupC7Maker},
	{0xc8, 0xcf, as(opBswap)},
}, sse0F...))

// hintMaker: nop, prefetch, endbr64. MPX itself is not executed.
func hintMaker(d *dec) func(c *cpu, o *op) bool {
	if d.i.Extension() == "MPX" {
		return nil
	}
	return opNop
}

func conditional(fn func(c *cpu, o *op) bool) maker {
	return func(d *dec) func(c *cpu, o *op) bool {
		d.op.sub = d.i.Opcode & 15
		return fn
	}
}

// opCmov reads its operand and writes its register, whatever the condition.
func opCmov(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	if !c.cc.holds(o.sub) {
		v = c.reg(o.reg, o.size)
	}
	c.setReg(o.reg, o.size, v)
	return true
}

func setccMaker(d *dec) func(c *cpu, o *op) bool {
	d.bytes()
	d.op.sub = d.i.Opcode & 15
	return opSetcc
}

func opSetcc(c *cpu, o *op) bool {
	v := uint64(0)
	if c.cc.holds(o.sub) {
		v = 1
	}
	return c.put(o, v)
}

func extendMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	o.sub = 1
	if d.i.Opcode&1 != 0 {
		o.sub = 2
	}
	if o.sub == 1 && !o.mem {
		o.rm = d.byteReg(o.rm)
	}
	if d.i.Opcode >= 0xbe {
		return opMovsx
	}
	return opMovzx
}

func opMovzx(c *cpu, o *op) bool {
	v, ok := c.getSized(o, o.sub)
	if ok {
		c.setReg(o.reg, o.size, v)
	}
	return ok
}

func opMovsx(c *cpu, o *op) bool {
	v, ok := c.getSized(o, o.sub)
	if ok {
		c.setReg(o.reg, o.size, uint64(signExtend(v, o.sub)))
	}
	return ok
}

// Bit operations, by their place in the opcode: bt, bts, btr, btc.
func bitMaker(d *dec) func(c *cpu, o *op) bool {
	if d.i.Opcode == 0xba {
		d.op.sub = d.i.ModRM >> 3 & 3
		return opBitImm
	}
	d.op.sub = d.i.Opcode >> 3 & 3
	return opBitReg
}

func opBitImm(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	return ok && c.bit(o, v, a, uint8(o.imm))
}

// opBitReg: with memory, the register selects a bit of the whole bit string, beyond one word.
func opBitReg(c *cpu, o *op) bool {
	n := c.reg(o.reg, o.size)
	if !o.mem {
		return c.bit(o, c.reg(o.rm, o.size), 0, uint8(n))
	}
	words := signExtend(n, o.size) >> bits.TrailingZeros8(o.size) >> 3
	a := c.ea(o)
	if seg := c.segment(o); o.odd&oddA32 != 0 {
		a = uint64(uint32(a-seg+uint64(words)*uint64(o.size))) + seg
	} else {
		a += uint64(words) * uint64(o.size)
	}
	v, ok := c.read(a, o.size)
	return ok && c.bit(o, v, a, uint8(n))
}

// bit sets CF to a bit, and changes the bit.
func (c *cpu) bit(o *op, v, a uint64, n uint8) bool {
	n &= 8*o.size - 1
	w := uint64(1) << n
	cf := v >> n & 1
	switch o.sub {
	case 1:
		v |= w
	case 2:
		v &^= w
	case 3:
		v ^= w
	}
	if o.sub != 0 {
		if o.mem {
			if !c.write(a, o.size, v) {
				return false
			}
		} else {
			c.setReg(o.rm, o.size, v)
		}
	}
	c.cc.change(1, cf)
	return true
}

// scanMaker: bsf and bsr; tzcnt and lzcnt in models that have them.
func scanMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.sub = d.i.Opcode & 1
	if d.f3 && (d.op.sub == 0 && d.c.has.BMI1 || d.op.sub == 1 && d.c.has.LZCNT) {
		return opCountZeros
	}
	return opBitScan
}

// opBitScan: without a bit, the register keeps its value.
func opBitScan(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	n := c.reg(o.reg, o.size)
	if v != 0 {
		if n = uint64(bits.TrailingZeros64(v)); o.sub == 1 {
			n = uint64(63 - bits.LeadingZeros64(v))
		}
	}
	c.setReg(o.reg, o.size, n)
	c.cc.set(ccLogic, v, 0, 64-8*o.size)
	return true
}

func opCountZeros(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	w := 8 * int(o.size)
	n := min(bits.TrailingZeros64(v), w)
	if o.sub == 1 {
		n = bits.LeadingZeros64(v) - (64 - w)
	}
	c.setReg(o.reg, o.size, uint64(n))
	c.cc.set(ccBit, uint64(n), v, 64-8*o.size)
	return true
}

func opPopcnt(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	c.setReg(o.reg, o.size, uint64(bits.OnesCount64(v)))
	c.cc.set(ccPop, v, 0, 64-8*o.size)
	return true
}

// opBswap of 16 bits is undefined; processors make zero of them.
func opBswap(c *cpu, o *op) bool {
	switch o.size {
	case 8:
		c.r[o.rm] = bits.ReverseBytes64(c.r[o.rm])
	case 4:
		c.r[o.rm] = uint64(bits.ReverseBytes32(uint32(c.r[o.rm])))
	default:
		c.setReg(o.rm, 2, 0)
	}
	return true
}

// opCmpxchg writes memory even where the comparison fails.
func opCmpxchg(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	acc, w := c.reg(rax, o.size), c.reg(o.reg, o.size)
	if acc != v {
		w = v
	}
	if o.mem {
		if !c.write(a, o.size, w) {
			return false
		}
	} else if acc == v {
		c.setReg(o.rm, o.size, w)
	}
	if acc != v {
		c.setReg(rax, o.size, v)
	}
	c.alu(aluCmp, acc, v, o.size)
	return true
}

func opXadd(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	was, w := c.cc, c.reg(o.reg, o.size)
	sum := c.alu(aluAdd, v, w, o.size)
	if o.mem {
		if !c.write(a, o.size, sum) {
			c.cc = was
			return false
		}
		c.setReg(o.reg, o.size, v)
		return true
	}
	c.setReg(o.reg, o.size, v)
	c.setReg(o.rm, o.size, sum)
	return true
}

// groupC7Maker: cmpxchg8b, cmpxchg16b, rdrand, rdseed, rdpid.
func groupC7Maker(d *dec) func(c *cpu, o *op) bool {
	if d.op.mem && d.i.ModRM>>3&7 == 1 {
		if d.op.size == 8 {
			d.work += 30
			return opCmpxchg16b
		}
		return opCmpxchg8b
	}
	switch d.i.Mnemonic() {
	case "rdrand", "rdseed":
		return opRdrand
	}
	return nil
}

// opRdrand draws numbers that repeat from run to run.
func opRdrand(c *cpu, o *op) bool {
	c.setReg(o.rm, o.size, c.e.entropy.Uint64())
	c.cc.setAll(1)
	return true
}

func opCmpxchg8b(c *cpu, o *op) bool {
	a := c.ea(o)
	v, ok := c.read(a, 8)
	if !ok {
		return false
	}
	acc := c.reg(rdx, 4)<<32 | c.reg(rax, 4)
	w := c.reg(rcx, 4)<<32 | c.reg(rbx, 4)
	if acc != v {
		w = v
	}
	if !c.write(a, 8, w) {
		return false
	}
	if acc != v {
		c.setReg(rax, 4, v)
		c.setReg(rdx, 4, v>>32)
	}
	c.setZF(acc == v)
	return true
}

func (c *cpu) setZF(on bool) {
	f := uint64(0)
	if on {
		f = 1 << 6
	}
	c.cc.change(1<<6, f)
}

func opCmpxchg16b(c *cpu, o *op) bool {
	a := c.ea(o)
	if a&15 != 0 {
		return c.fault(machine.VectorGP)
	}
	var b [16]byte
	if !c.readBytes(a, b[:]) {
		return false
	}
	lo, hi := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	same := lo == c.r[rax] && hi == c.r[rdx]
	if same {
		binary.LittleEndian.PutUint64(b[:], c.r[rbx])
		binary.LittleEndian.PutUint64(b[8:], c.r[rcx])
	}
	if !c.writeBytes(a, b[:]) {
		return false
	}
	if !same {
		c.r[rax], c.r[rdx] = lo, hi
	}
	c.setZF(same)
	return true
}
