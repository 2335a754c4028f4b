package interp

import (
	"kprobelab/decoder"
)

// dec is an instruction on its way to an op.
type dec struct {
	c  *cpu
	op *op
	i  *decoder.Inst
	// size16, f2, f3: these prefixes stand before it (of F2 and F3, the last).
	size16, f2, f3, lock bool
	// last: a block ends with it.
	last bool
	work uint64
}

// maker makes an instruction's function, or nil if it has none, and fills the op.
type maker func(d *dec) func(c *cpu, o *op) bool

// prepare reads prefixes and operands.
func (d *dec) prepare() {
	i, o := d.i, d.op
	code := i.Bytes()
	for _, b := range code[:i.PrefixLen] {
		switch b {
		case 0x66:
			d.size16 = true
		case 0x67:
			o.odd |= oddA32
		case 0xf0:
			d.lock = true
		case 0xf2, 0xf3:
			d.f2, d.f3 = b == 0xf2, b == 0xf3
			o.rep = b
		case 0x64, 0x65:
			o.odd = o.odd&^(oddFS|oddGS) | map[byte]uint8{0x64: oddFS, 0x65: oddGS}[b]
		}
	}
	o.next = o.ip + uint64(i.Length)
	o.imm = uint64(i.Imm())
	if i.HasTarget {
		o.imm = o.next + uint64(i.Rel)
	}
	switch {
	case i.REX&8 != 0:
		o.size = 8
	case d.size16:
		o.size = 2
	default:
		o.size = 4
	}
	rex := i.REX
	if i.VexLen == 3 {
		rex = 0x40 | ^code[i.PrefixLen+1]>>5&7
	}
	if i.VexLen == 2 {
		rex = 0x40 | ^code[i.PrefixLen+1]>>5&4
	}
	o.base, o.index = noReg, noReg
	if !i.HasModRM {
		o.rm = i.Opcode&7 | rex&1<<3
		return
	}
	o.reg, o.rm = i.ModRM>>3&7|rex&4<<1, i.ModRM&7|rex&1<<3
	if i.ModRM >= 0xc0 {
		return
	}
	o.mem = true
	o.disp = uint64(int64(i.Disp))
	switch {
	case i.RIPRelative:
		o.disp += o.next
	case i.HasSIB:
		o.scale = i.SIB >> 6
		if x := i.SIB>>3&7 | rex&2<<2; x != 4 {
			o.index = x
		}
		if i.SIB&7 != 5 || i.ModRM >= 0x40 {
			o.base = i.SIB&7 | rex&1<<3
		}
	default:
		o.base = o.rm
	}
}

// bytes makes the operands bytes: without REX, 4 to 7 are ah, ch, dh and bh.
func (d *dec) bytes() {
	o := d.op
	o.size = 1
	o.reg = d.byteReg(o.reg)
	if !o.mem {
		o.rm = d.byteReg(o.rm)
	}
}

func (d *dec) byteReg(n uint8) uint8 {
	if d.i.REX == 0 && n >= 4 && n < 8 {
		return n - 4 + highByte
	}
	return n
}

// bytesIfEven makes the operands bytes where the opcode is even.
func (d *dec) bytesIfEven() {
	if d.i.Opcode&1 == 0 {
		d.bytes()
	}
}

// size64 makes a 32-bit operand 64-bit, for instructions of the stack and near branches.
func (d *dec) size64() {
	if d.op.size == 4 {
		d.op.size = 8
	}
}

// row finds the function of the instruction's row.
func (d *dec) row() func(c *cpu, o *op) bool {
	if d.op.exec != nil {
		return d.op.exec
	}
	var t *[256]maker
	switch d.i.Encoding {
	case decoder.EncPrimary:
		t = &primary
	case decoder.Enc0F:
		t = &escape0F
	case decoder.Enc0F38:
		t = &escape38
	case decoder.Enc0F3A:
		t = &escape3A
	case decoder.EncVex0F38:
		t = &vex38
	case decoder.EncVex0F3A:
		t = &vex3A
	default:
		return opInvalid
	}
	if !d.c.has.Knows(d.i) {
		return opInvalid
	}
	if mk := t[d.i.Opcode]; mk != nil {
		return mk(d)
	}
	return nil
}

// rows puts a maker at several opcodes.
type rows struct {
	first, last byte
	mk          maker
}

func tableOf(list []rows) (t [256]maker) {
	for _, r := range list {
		for n := int(r.first); n <= int(r.last); n++ {
			t[n] = r.mk
		}
	}
	return t
}

// as is a maker of a function that needs nothing.
func as(fn func(c *cpu, o *op) bool) maker {
	return func(*dec) func(c *cpu, o *op) bool { return fn }
}

// ends is as for instructions that end a block.
func ends(fn func(c *cpu, o *op) bool) maker {
	return func(d *dec) func(c *cpu, o *op) bool {
		d.last = true
		return fn
	}
}
