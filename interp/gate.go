package interp

import (
	"encoding/binary"

	"kprobelab/x86"
)

// A gate leads an int3 to guest code, as an entry of the interrupt descriptor
// table does, without a call into Go. The entry finds interrupts off, the gate's
// word in word 0 of the CPU's own page and, on the interrupted stack, the part of
// a pt_regs from orig_ax (-1) to ss; the 64 bytes above that are free. The entry
// goes back with a popfq and a ret from there.

// GateInt3 makes a gate for the int3 at an address. It is not taken while word
// 0 of the CPU's own page is not 0. The result is false, and nothing is changed,
// where another gate has the place of this one: their addresses have the same low
// 12 bits.
func (m *Machine) GateInt3(at, entry, word x86.Addr) bool {
	g := m.gate(at)
	switch {
	case g.entry == 0:
		m.ngates++
	case g.at != at:
		return false
	}
	g.at, g.entry, g.word = at, entry, word
	return true
}

// UngateInt3 takes the gate at an address away.
func (m *Machine) UngateInt3(at x86.Addr) {
	if g := m.gate(at); g.entry != 0 && g.at == at {
		g.entry = 0
		m.ngates--
	}
}

// forgetGates takes all gates away: what they lead to may be gone. Word 0 is
// what it was when its page was first written, maybe inside a gate: nobody is.
func (m *Machine) forgetGates() {
	for _, c := range m.cpus {
		c.words[localGuard] = 0
	}
	if m.ngates > 0 {
		m.gates = gates{}
		m.ngates = 0
	}
}

// gate is an int3 that goes to guest code; entry is 0 where there is none.
type gate struct{ at, entry, word x86.Addr }

// gates has them by the low bits of at.
type gates [4096]gate

func (m *Machine) gate(at x86.Addr) *gate { return &m.gates[at%x86.Addr(len(m.gates))] }

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
	m := c.m
	if m.ngates == 0 || c.words[localGuard] != 0 {
		return false
	}
	g := m.gate(x86.Addr(c.ip - 1))
	if g.at != x86.Addr(c.ip-1) || g.entry == 0 {
		return false
	}
	frame := x86.Addr(c.r[rsp] - gateGap - x86.PtRegsSize)
	if m.page(frame, attrW) == nil || m.page(x86.Addr(c.r[rsp]-1), attrW) == nil {
		return false
	}
	m.touch(frame, x86.PtRegsSize)
	var b [x86.PtRegsSize - gatePushed]byte
	for i, v := range []uint64{^uint64(0), c.ip, x86.KernelCS, c.eflags(), c.r[rsp], x86.KernelDS} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	m.copyIn(frame+gatePushed, b[:])
	m.touch(c.local, 8)
	c.words[localGuard] = uint64(g.word)
	c.r[rsp] = uint64(frame + gatePushed)
	c.flags &^= x86.FlagIF
	c.ip = uint64(g.entry)
	return true
}
