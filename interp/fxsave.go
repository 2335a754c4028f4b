package interp

import (
	"encoding/binary"

	"kprobelab/machine"
)

// fpu is the state of the x87 unit: its control words, and registers that fxrstor has loaded. Only
// fxsave reads these.
type fpu struct {
	control, status, tags uint16
	// regs are never changed in place; nil is zeros.
	regs *[8][10]byte
}

var bootFPU = fpu{control: 0x37f, tags: 0xffff}

// The offsets in fxsave's area (SDM Vol. 1, "FXSAVE Area").
const (
	fxSize     = 512
	fxControl  = 0
	fxStatus   = 2
	fxTags     = 4 // a bit for each register that is not empty
	fxPointers = 8 // of the last x87 instruction and its operand, which are not kept
	fxMXCSR    = 24
	fxMask     = 28
	fxX87      = 32
	fxXMM      = 160
	// maskMXCSR are the bits of MXCSR that exist.
	maskMXCSR = 0xffff
)

// opFxsave does not write the area's reserved bytes and the bytes for the system.
func opFxsave(c *cpu, o *op) bool {
	at := c.ea(o)
	if at%16 != 0 {
		return c.fault(machine.VectorGP)
	}
	if !c.writable(at, fxSize) {
		return false
	}
	var b [fxSize]byte
	if !c.readBytes(at, b[:]) {
		return false
	}
	put := binary.LittleEndian
	put.PutUint16(b[fxControl:], c.fpu.control)
	put.PutUint16(b[fxStatus:], c.fpu.status)
	put.PutUint16(b[fxTags:], 0)
	for i := range 8 {
		if c.fpu.tags>>(2*i)&3 != 3 {
			b[fxTags] |= 1 << i
		}
		var reg [10]byte
		if c.fpu.regs != nil {
			reg = c.fpu.regs[i]
		}
		copy(b[fxX87+16*i:], reg[:])
	}
	clear(b[fxPointers:fxMXCSR])
	put.PutUint32(b[fxMXCSR:], c.mxcsr)
	put.PutUint32(b[fxMask:], maskMXCSR)
	for i, x := range c.x {
		put.PutUint64(b[fxXMM+16*i:], x[0])
		put.PutUint64(b[fxXMM+16*i+8:], x[1])
	}
	return c.writeBytes(at, b[:])
}

func opFxrstor(c *cpu, o *op) bool {
	at := c.ea(o)
	if at%16 != 0 {
		return c.fault(machine.VectorGP)
	}
	var b [fxSize]byte
	if !c.readBytes(at, b[:]) {
		return false
	}
	get := binary.LittleEndian
	if get.Uint32(b[fxMXCSR:])&^maskMXCSR != 0 {
		return c.fault(machine.VectorGP)
	}
	c.mxcsr = get.Uint32(b[fxMXCSR:])
	const pending, busy = 0x80, 0x8000 // busy is a copy of pending
	status := get.Uint16(b[fxStatus:])
	status = status&^busy | status&pending<<8
	c.fpu = fpu{control: get.Uint16(b[fxControl:]) | 0x40, status: status, regs: new([8][10]byte)}
	for i := range 8 {
		if b[fxTags]>>i&1 == 0 {
			c.fpu.tags |= 3 << (2 * i)
		}
		c.fpu.regs[i] = [10]byte(b[fxX87+16*i:])
	}
	for i := range c.x {
		c.x[i] = xmm{get.Uint64(b[fxXMM+16*i:]), get.Uint64(b[fxXMM+16*i+8:])}
	}
	return true
}
