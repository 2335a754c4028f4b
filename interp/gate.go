package interp

import (
	"encoding/binary"

	"kprobelab/machine"
	"kprobelab/x86"
)

// The frame of an exception, on the stack that it interrupts. The gap between
// the two is for what emulated instructions push.
const (
	gateGap    = 64
	gatePushed = 8 * 15 // where orig_ax is in pt_regs
)

// throughGate takes an int3 to its gate, if it has one: interrupts off, the gate's
// word in word 0 of the CPU's page, and the frame from orig_ax to ss on the stack.
// Where the stack has no room, it is left to Go.
func (c *cpu) throughGate() bool {
	e := c.e
	if e.NGates == 0 || c.words[machine.LocalGuard] != 0 {
		return false
	}
	g := &e.Gates[(c.ip-1)%uint64(len(e.Gates))]
	if g.At != x86.Addr(c.ip-1) || g.Entry == 0 {
		return false
	}
	frame := x86.Addr(c.r[rsp] - gateGap - x86.PtRegsSize)
	if e.page(frame, attrW) == nil || e.page(x86.Addr(c.r[rsp]-1), attrW) == nil {
		return false
	}
	e.Touch(frame, x86.PtRegsSize)
	var b [x86.PtRegsSize - gatePushed]byte
	for i, v := range []uint64{^uint64(0), c.ip, x86.KernelCS, c.eflags(), c.r[rsp], x86.KernelDS} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	e.copyIn(frame+gatePushed, b[:])
	e.Touch(c.local, 8)
	c.words[machine.LocalGuard] = uint64(g.Word)
	c.r[rsp] = uint64(frame + gatePushed)
	c.flags &^= x86.FlagIF
	c.ip = uint64(g.Entry)
	return true
}
