package interp

import (
	"encoding/binary"
	"math/bits"
)

// Of the x87 unit's arithmetic, only what a kernel executes: it loads an integer before it restores the
// registers, so that a program does not see another's last instruction (arch/x86/kernel/fpu/core.c,
// X86_BUG_FXSAVE_LEAK).

// topShift is the place of TOP in the status word.
const topShift = 11

// emmsMaker: with VEX it is another instruction.
func emmsMaker(d *dec) func(c *cpu, o *op) bool {
	if d.i.Mnemonic() != "emms" {
		return nil
	}
	return opEmms
}

// opEmms: all registers are empty.
func opEmms(c *cpu, o *op) bool {
	c.fpu.tags = 0xffff
	return true
}

// fildMaker: an integer of 2, 4 or 8 bytes in memory.
func fildMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	if !o.mem {
		return nil
	}
	switch reg := d.i.ModRM >> 3 & 7; {
	case d.i.Opcode == 0xdb && reg == 0:
		o.size = 4
	case d.i.Opcode == 0xdf && reg == 0:
		o.size = 2
	case d.i.Opcode == 0xdf && reg == 5:
		o.size = 8
	default:
		return nil
	}
	return opFild
}

func opFild(c *cpu, o *op) bool {
	v, ok := c.read(c.ea(o), o.size)
	if ok {
		c.fpu.push(extended(signExtend(v, o.size)))
	}
	return ok
}

// push makes a number ST(0).
func (f *fpu) push(v [10]byte) {
	top := (f.status>>topShift - 1) & 7
	f.status = f.status&^(7<<topShift) | top<<topShift
	f.tags &^= 3 << (2 * top)
	var regs [8][10]byte
	if f.regs != nil {
		copy(regs[1:], f.regs[:7])
		regs[0] = f.regs[7]
	}
	regs[0] = v
	f.regs = &regs
}

// extended is an integer in the format of 80 bits: sign and exponent, and the digits with their highest one.
func extended(v int64) (b [10]byte) {
	if v == 0 {
		return b
	}
	const bias = 16383
	exponent, digits := uint16(0), uint64(v)
	if v < 0 {
		exponent, digits = 1<<15, -digits
	}
	n := bits.LeadingZeros64(digits)
	binary.LittleEndian.PutUint64(b[:], digits<<n)
	binary.LittleEndian.PutUint16(b[8:], exponent|uint16(bias+63-n))
	return b
}

// x87Maker: the control instructions, and fild.
func x87Maker(d *dec) func(c *cpu, o *op) bool {
	d.op.size = 2
	switch d.i.Mnemonic() {
	case "fninit":
		return opFninit
	case "fnclex":
		return opFnclex
	case "fnop":
		return opNop
	case "fild":
		return fildMaker(d)
	case "fnstcw":
		return opFnstcw
	case "fldcw":
		return opFldcw
	case "fnstsw":
		if !d.op.mem {
			d.op.rm = rax
		}
		return opFnstsw
	}
	return nil
}

func opFninit(c *cpu, o *op) bool {
	c.fpu = bootFPU
	return true
}

func opFnclex(c *cpu, o *op) bool {
	c.fpu.status &= 0x7f00
	return true
}

func opFnstcw(c *cpu, o *op) bool { return c.write(c.ea(o), 2, uint64(c.fpu.control)) }
func opFnstsw(c *cpu, o *op) bool { return c.put(o, uint64(c.fpu.status)) }

func opFldcw(c *cpu, o *op) bool {
	v, ok := c.read(c.ea(o), 2)
	if ok {
		c.fpu.control = uint16(v) | 0x40
	}
	return ok
}
