package interp

import (
	"encoding/binary"

	"kprobelab/internal/pcmpstr"
)

// Opcodes of the string comparison after 0F 3A: the first bit says that the result is an index,
// the second that strings end at their first zero.
const (
	compareFirst    = 0x60
	compareIndex    = 1
	compareImplicit = 2
)

func compareStringsMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.sub = d.i.Opcode - compareFirst
	return opCompareStrings
}

func opCompareStrings(c *cpu, o *op) bool {
	v, ok := c.vector(o, false)
	if !ok {
		return false
	}
	imm := byte(o.imm)
	a, b := c.x[o.reg].bytes(), v.bytes()
	la, lb := pcmpstr.Implicit(&a, imm), pcmpstr.Implicit(&b, imm)
	if o.sub&compareImplicit == 0 {
		la, lb = pcmpstr.Explicit(c.length(rax, o), imm), pcmpstr.Explicit(c.length(rdx, o), imm)
	}
	r := pcmpstr.Compare(&a, &b, la, lb, imm)
	if o.sub&compareIndex != 0 {
		c.r[rcx] = r.Index()
	} else {
		m := r.Mask()
		c.x[0] = xmm{binary.LittleEndian.Uint64(m[:]), binary.LittleEndian.Uint64(m[8:])}
	}
	c.cc.setAll(r.Flags)
	return true
}

// length is a register as a signed number, of 64 bits only with REX.W.
func (c *cpu) length(n uint8, o *op) int64 {
	if o.size == 8 {
		return int64(c.r[n])
	}
	return int64(int32(c.r[n]))
}

func (v xmm) bytes() (b pcmpstr.Vector) {
	binary.LittleEndian.PutUint64(b[:], v[0])
	binary.LittleEndian.PutUint64(b[8:], v[1])
	return b
}
