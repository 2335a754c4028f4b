package interp

// sseDoubleMaker: movddup with F2, movsldup and movshdup with F3.
func sseDoubleMaker(d *dec) func(c *cpu, o *op) bool {
	high := d.i.Opcode == 0x16
	switch {
	case d.f2 && d.i.Opcode == 0x12:
		d.op.vec = func(_, b xmm) xmm { return xmm{b[0], b[0]} }
		return opLowHalf
	case d.f3 && (d.i.Opcode == 0x12 || high):
		from := 0
		if high {
			from = 1
		}
		d.op.vec = func(_, b xmm) (v xmm) {
			for i := range 4 {
				v.setLane(i, 32, b.lane(i&^1+from, 32))
			}
			return v
		}
		return opPacked
	}
	return nil
}

// ofFloats says for 66 and F2 whether an instruction's floats have 64 bits; ok is false for others.
func (d *dec) ofFloats() (wide, ok bool) { return !d.f2, !d.f3 && (d.f2 || d.size16) }

// sseNeighboursMaker: haddps, haddpd, hsubps, hsubpd.
func sseNeighboursMaker(d *dec) func(c *cpu, o *op) bool {
	wide, ok := d.ofFloats()
	if !ok {
		return nil
	}
	op := byte(0x58)
	if d.i.Opcode == 0x7d {
		op = 0x5c
	}
	if wide {
		fn := floatOps[op][1]
		d.op.vec = func(a, b xmm) xmm { return xmm{fn(a[0], a[1]), fn(b[0], b[1])} }
		return opPacked
	}
	fn := floatOps[op][0]
	d.op.vec = func(a, b xmm) (v xmm) {
		for i, from := range []*xmm{&a, &a, &b, &b} {
			at := i % 2 * 2
			v.setLane(i, 32, fn(from.lane(at, 32), from.lane(at+1, 32)))
		}
		return v
	}
	return opPacked
}

// sseSubAddMaker: addsubps, addsubpd.
func sseSubAddMaker(d *dec) func(c *cpu, o *op) bool {
	wide, ok := d.ofFloats()
	if !ok {
		return nil
	}
	k, width := 0, 32
	if wide {
		k, width = 1, 64
	}
	ops := [2]func(a, b uint64) uint64{floatOps[0x5c][k], floatOps[0x58][k]}
	d.op.vec = func(a, b xmm) (v xmm) {
		for i := range 128 / width {
			v.setPart(i, width, ops[i&1](a.part(i, width), b.part(i, width)))
		}
		return v
	}
	return opPacked
}

// sseMaskedMaker: maskmovdqu.
func sseMaskedMaker(d *dec) func(c *cpu, o *op) bool {
	if d.isMMX() || d.f2 || d.f3 || d.op.mem {
		return nil
	}
	return opMasked
}

func opMasked(c *cpu, o *op) bool {
	mask, at, v := c.x[o.rm].signs(8), c.oddEA(o, c.r[rdi]), c.x[o.reg].bytes()
	for i := range uint64(len(v)) {
		if mask>>i&1 != 0 && !c.write(at+i, 1, uint64(v[i])) {
			return false
		}
	}
	return true
}
