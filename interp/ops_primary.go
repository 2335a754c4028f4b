package interp

// primary are the one-byte opcodes.
var primary = tableOf([]rows{
	{0x00, 0x05, aluMaker}, {0x08, 0x0d, aluMaker}, {0x10, 0x15, aluMaker}, {0x18, 0x1d, aluMaker},
	{0x20, 0x25, aluMaker}, {0x28, 0x2d, aluMaker}, {0x30, 0x35, aluMaker}, {0x38, 0x3d, aluMaker},
	{0x50, 0x57, pushMaker}, {0x58, 0x5f, popMaker},
	{0x63, 0x63, as(opMovsxd)},
	{0x6c, 0x6d, stringMaker(ins)}, {0x6e, 0x6f, stringMaker(outs)},
	{0x68, 0x68, pushImmMaker}, {0x6a, 0x6a, pushImmMaker},
	{0x69, 0x69, as(opImul3)}, {0x6b, 0x6b, as(opImul3)},
	{0x70, 0x7f, jccMaker},
	{0x80, 0x81, aluImmMaker}, {0x83, 0x83, aluImmMaker},
	{0x84, 0x85, testMaker}, {0x86, 0x87, sized(opXchg)},
	{0x88, 0x89, storeMaker}, {0x8a, 0x8b, loadMaker},
	{0x8c, 0x8c, as(opMovFromSeg)}, {0x8d, 0x8d, as(opLea)}, {0x8e, 0x8e, movToSegMaker}, {0x8f, 0x8f, popRMMaker},
	{0x90, 0x97, xchgAXMaker},
	{0x98, 0x98, as(opCbw)}, {0x99, 0x99, as(opCwd)},
	{0x9b, 0x9b, as(opNop)},
	{0x9c, 0x9c, stackSized(opPushf)}, {0x9d, 0x9d, popfMaker},
	{0x9e, 0x9e, as(opSahf)}, {0x9f, 0x9f, as(opLahf)},
	{0xa0, 0xa3, moffsMaker},
	{0xa4, 0xa5, stringMaker(movs)}, {0xa6, 0xa7, stringMaker(cmps)},
	{0xa8, 0xa9, testImmMaker},
	{0xaa, 0xab, stringMaker(stos)}, {0xac, 0xad, stringMaker(lods)}, {0xae, 0xaf, stringMaker(scas)},
	{0xb0, 0xbf, movRegImmMaker},
	{0xc0, 0xc1, shiftMaker}, {0xd0, 0xd3, shiftMaker},
	{0xc2, 0xc3, ends(opRet)},
	{0xc6, 0xc7, movImmMaker},
	{0xc8, 0xc8, stackSized(opEnter)}, {0xc9, 0xc9, stackSized(opLeave)},
	{0xca, 0xcb, farReturn(2)}, {0xcf, 0xcf, farReturn(3)},
	{0xcc, 0xcc, ends(opInt3)}, {0xcd, 0xcd, ends(opInt)},
	{0xd7, 0xd7, as(opXlat)},
	{0xd8, 0xdf, x87Maker},
	{0xe0, 0xe2, loopMaker}, {0xe3, 0xe3, loopMaker},
	{0xe4, 0xe5, inMaker}, {0xec, 0xed, inMaker}, {0xe6, 0xe7, outMaker}, {0xee, 0xef, outMaker},
	{0xe8, 0xe8, ends(opCall)}, {0xe9, 0xe9, ends(opJmp)}, {0xeb, 0xeb, ends(opJmp)},
	{0xf1, 0xf1, ends(opInt1)},
	{0xf4, 0xf4, ends(opHlt)},
	{0xf5, 0xf5, as(opCmc)}, {0xf8, 0xf8, as(opClc)}, {0xf9, 0xf9, as(opStc)},
	{0xf6, 0xf7, unaryMaker},
	{0xfa, 0xfa, as(opCli)}, {0xfb, 0xfb, ends(opSti)},
	{0xfc, 0xfc, as(opCld)}, {0xfd, 0xfd, as(opStd)},
	{0xfe, 0xfe, incDecMaker}, {0xff, 0xff, groupFFMaker},
})

// sized makes the operands bytes in even opcodes.
func sized(fn func(c *cpu, o *op) bool) maker {
	return func(d *dec) func(c *cpu, o *op) bool {
		d.bytesIfEven()
		return fn
	}
}

func opNop(c *cpu, o *op) bool { return true }

// The eight operations of opcodes 0x00 to 0x3f, by their number in the opcode.
const (
	aluAdd = iota
	aluOr
	aluAdc
	aluSbb
	aluAnd
	aluSub
	aluXor
	aluCmp
)

// alu computes and sets the flags. Of cmp the result is the difference.
func (c *cpu) alu(sub uint8, a, b uint64, size uint8) uint64 {
	sh := 64 - 8*size
	var v uint64
	switch sub {
	case aluAdd:
		v = a + b
		c.cc.set(ccAdd, v, b, sh)
	case aluOr:
		v = a | b
		c.cc.set(ccLogic, v, 0, sh)
	case aluAnd:
		v = a & b
		c.cc.set(ccLogic, v, 0, sh)
	case aluXor:
		v = a ^ b
		c.cc.set(ccLogic, v, 0, sh)
	case aluSub, aluCmp:
		v = a - b
		c.cc.set(ccSub, v, b, sh)
	case aluAdc, aluSbb:
		v = c.carrying(sub, a, b, sh)
	}
	return v
}

func (c *cpu) carrying(sub uint8, a, b uint64, sh uint8) (v uint64) {
	in := uint8(0)
	if c.cc.cf() {
		in = 1
	}
	if sub == aluAdc {
		v = a + b + uint64(in)
		c.cc.set(ccAdc, v, b, sh)
	} else {
		v = a - b - uint64(in)
		c.cc.set(ccSbb, v, b, sh)
	}
	c.cc.in = in
	return v
}

func aluMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	o.sub = d.i.Opcode >> 3 & 7
	switch d.i.Opcode & 7 {
	case 0, 1:
		d.bytesIfEven()
		switch {
		case o.sub == aluCmp:
			return opCmpRMReg
		case !o.mem && o.size == 8 && o.sub != aluAdc && o.sub != aluSbb:
			return opAluRegReg64
		}
		return opAluRMReg
	case 2, 3:
		d.bytesIfEven()
		if o.sub == aluCmp {
			return opCmpRegRM
		}
		return opAluRegRM
	}
	o.rm = rax
	d.bytesIfEven()
	if o.sub == aluCmp {
		return opCmpRMImm
	}
	return opAluRMImm
}

func aluImmMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.sub = d.i.ModRM >> 3 & 7
	d.bytesIfEven()
	if d.op.sub == aluCmp {
		return opCmpRMImm
	}
	return opAluRMImm
}

// update writes the result of an operation on the ModRM operand. A write that
// faults leaves the flags as they were.
func (c *cpu) update(o *op, was *lazy, a, v uint64) bool {
	if !o.mem {
		c.setReg(o.rm, o.size, v)
		return true
	}
	if !c.write(a, o.size, v) {
		c.cc = *was
		return false
	}
	return true
}

// rm reads the ModRM operand to change it, and returns its address if it has one.
func (c *cpu) modify(o *op) (v, a uint64, ok bool) {
	if !o.mem {
		return c.reg(o.rm, o.size), 0, true
	}
	a = c.ea(o)
	v, ok = c.read(a, o.size)
	return v, a, ok
}

func opAluRegReg64(c *cpu, o *op) bool {
	a, b := c.r[o.rm], c.r[o.reg]
	switch o.sub {
	case aluAdd:
		a += b
		c.cc.set(ccAdd, a, b, 0)
	case aluSub:
		a -= b
		c.cc.set(ccSub, a, b, 0)
	default:
		switch o.sub {
		case aluOr:
			a |= b
		case aluAnd:
			a &= b
		default:
			a ^= b
		}
		c.cc.set(ccLogic, a, 0, 0)
	}
	c.r[o.rm] = a
	return true
}

func opAluRMReg(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	was := c.cc
	return c.update(o, &was, a, c.alu(o.sub, v, c.reg(o.reg, o.size), o.size))
}

func opAluRMImm(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	was := c.cc
	return c.update(o, &was, a, c.alu(o.sub, v, o.imm, o.size))
}

func opAluRegRM(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if !ok {
		return false
	}
	c.setReg(o.reg, o.size, c.alu(o.sub, c.reg(o.reg, o.size), v, o.size))
	return true
}

func opCmpRMReg(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.alu(aluCmp, v, c.reg(o.reg, o.size), o.size)
	}
	return ok
}

func opCmpRegRM(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.alu(aluCmp, c.reg(o.reg, o.size), v, o.size)
	}
	return ok
}

func opCmpRMImm(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.alu(aluCmp, v, o.imm, o.size)
	}
	return ok
}

func testMaker(d *dec) func(c *cpu, o *op) bool {
	d.bytesIfEven()
	return opTest
}

func opTest(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.alu(aluAnd, v, c.reg(o.reg, o.size), o.size)
	}
	return ok
}

func testImmMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.rm = rax
	d.bytesIfEven()
	return opTestImm
}

func opTestImm(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.alu(aluAnd, v, o.imm, o.size)
	}
	return ok
}

func opMovsxd(c *cpu, o *op) bool {
	size := o.size
	if size == 8 {
		size = 4
	}
	v, ok := c.getSized(o, size)
	if ok {
		c.setReg(o.reg, o.size, uint64(int64(int32(v))))
	}
	return ok
}

// getSized reads the ModRM operand with a size of its own.
func (c *cpu) getSized(o *op, size uint8) (uint64, bool) {
	if o.mem {
		return c.read(c.ea(o), size)
	}
	return c.reg(o.rm, size), true
}

func storeMaker(d *dec) func(c *cpu, o *op) bool {
	d.bytesIfEven()
	o := d.op
	switch {
	case !o.mem && o.size == 8:
		return opMovRegReg64
	case o.mem && o.size == 8 && o.odd == 0:
		return opStore64
	}
	return opStore
}

func opMovRegReg64(c *cpu, o *op) bool {
	c.r[o.rm] = c.r[o.reg]
	return true
}

func opStore64(c *cpu, o *op) bool {
	return c.write(c.r[o.base]+c.r[o.index]<<(o.scale&3)+o.disp, 8, c.r[o.reg])
}

func opStore(c *cpu, o *op) bool { return c.put(o, c.reg(o.reg, o.size)) }

func loadMaker(d *dec) func(c *cpu, o *op) bool {
	d.bytesIfEven()
	o := d.op
	switch {
	case o.mem && o.size == 8 && o.odd == 0:
		return opLoad64
	case o.mem && o.size == 4:
		return opLoad32
	}
	return opLoad
}

func opLoad64(c *cpu, o *op) bool {
	v, ok := c.read(c.r[o.base]+c.r[o.index]<<(o.scale&3)+o.disp, 8)
	if ok {
		c.r[o.reg] = v
	}
	return ok
}

func opLoad32(c *cpu, o *op) bool {
	v, ok := c.read(c.ea(o), 4)
	if ok {
		c.r[o.reg] = v
	}
	return ok
}

func opLoad(c *cpu, o *op) bool {
	v, ok := c.get(o)
	if ok {
		c.setReg(o.reg, o.size, v)
	}
	return ok
}

func movImmMaker(d *dec) func(c *cpu, o *op) bool {
	if d.i.ModRM>>3&7 != 0 { // xabort, xbegin
		return nil
	}
	d.bytesIfEven()
	return opMovImm
}

func opMovImm(c *cpu, o *op) bool { return c.put(o, o.imm) }

func movRegImmMaker(d *dec) func(c *cpu, o *op) bool {
	if d.i.Opcode < 0xb8 {
		d.bytes()
	}
	return opMovRegImm
}

func opMovRegImm(c *cpu, o *op) bool {
	c.setReg(o.rm, o.size, o.imm)
	return true
}

func moffsMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	op := d.i.Opcode
	o.mem, o.disp, o.reg = true, o.imm, rax
	if o.odd&oddA32 != 0 {
		o.disp = uint64(uint32(o.imm))
	}
	d.bytesIfEven()
	if op >= 0xa2 {
		return opStore
	}
	return opLoad
}

func opLea(c *cpu, o *op) bool {
	a := c.r[o.base] + c.r[o.index]<<(o.scale&3) + o.disp
	if o.odd&oddA32 != 0 {
		a = uint64(uint32(a))
	}
	c.setReg(o.reg, o.size, a)
	return true
}

func opXchg(c *cpu, o *op) bool {
	v, a, ok := c.modify(o)
	if !ok {
		return false
	}
	w := c.reg(o.reg, o.size)
	if o.mem {
		if !c.write(a, o.size, w) {
			return false
		}
	} else {
		c.setReg(o.rm, o.size, w)
	}
	c.setReg(o.reg, o.size, v)
	return true
}

func xchgAXMaker(d *dec) func(c *cpu, o *op) bool {
	o := d.op
	if o.rm == rax {
		if d.f3 {
			d.last = true
			return opPause
		}
		return opNop
	}
	o.reg = rax
	return opXchg
}

// opPause ends its block, as the engine's does. After sti, one instruction more comes
// before an interrupt would.
func opPause(c *cpu, o *op) bool {
	c.ip, c.single = o.next, c.alone
	return true
}

func opCbw(c *cpu, o *op) bool {
	v := c.r[rax]
	switch o.size {
	case 8:
		v = uint64(int64(int32(v)))
	case 4:
		v = uint64(int64(int16(v)))
	default:
		v = uint64(int64(int8(v)))
	}
	c.setReg(rax, o.size, v)
	return true
}

func opCwd(c *cpu, o *op) bool {
	bits := 8 * o.size
	c.setReg(rdx, o.size, uint64(int64(c.r[rax]<<(64-bits))>>63))
	return true
}

// popfMask are the flags that popf in kernel mode changes; with an operand of 16
// bits, the low ones of these.
const popfMask = arithmetic | 1<<8 | 1<<9 | 1<<10 | flagIOPL | flagNT | flagAC | flagID

const ahFlags = arithmetic &^ (1 << 11)

func opSahf(c *cpu, o *op) bool {
	c.cc.change(ahFlags, c.r[rax]>>8)
	return true
}

func opLahf(c *cpu, o *op) bool {
	c.setReg(highByte, 1, c.cc.all()&ahFlags|2)
	return true
}

func opCmc(c *cpu, o *op) bool {
	c.cc.setAll(c.cc.all() ^ 1)
	return true
}

func opClc(c *cpu, o *op) bool {
	c.cc.change(1, 0)
	return true
}

func opStc(c *cpu, o *op) bool {
	c.cc.change(1, 1)
	return true
}

func opCld(c *cpu, o *op) bool {
	c.flags &^= 1 << 10
	return true
}

func opStd(c *cpu, o *op) bool {
	c.flags |= 1 << 10
	return true
}

func opXlat(c *cpu, o *op) bool {
	a := c.r[rbx] + c.r[rax]&0xff
	v, ok := c.read(c.oddEA(o, a), 1)
	if ok {
		c.setReg(rax, 1, v)
	}
	return ok
}
