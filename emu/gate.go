//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import "kprobelab/x86"

// A gate leads an int3 to guest code, as an entry of the interrupt descriptor
// table does, without a call into Go. The entry finds interrupts off and, on
// the interrupted stack, the part of a pt_regs that a processor pushes (ip to
// ss), below it arg, where orig_ax is to be, and above it 64 bytes that nobody
// uses. It leaves by the flags, ip and sp in the frame: a popfq and a ret do.

// GateInt3 makes a gate for the int3 at an address. It is not taken while word
// 0 of the CPU's own page is not 0, and it gives way to another whose address
// is alike in the low 12 bits.
func (m *Machine) GateInt3(at, entry, arg x86.Addr) {
	g := m.gate(at)
	if g.entry == 0 {
		m.c.ngates++
	}
	g.at, g.entry, g.arg = C.uint64_t(at), C.uint64_t(entry), C.uint64_t(arg)
}

// UngateInt3 takes the gate at an address away.
func (m *Machine) UngateInt3(at x86.Addr) {
	if g := m.gate(at); g.entry != 0 && x86.Addr(g.at) == at {
		g.entry = 0
		m.c.ngates--
	}
}

// forgetGates takes all away: what they lead to may be gone.
func (m *Machine) forgetGates() {
	if m.c.ngates > 0 {
		clear(m.c.gates[:])
		m.c.ngates = 0
	}
}

func (m *Machine) gate(at x86.Addr) *C.kpl_gate { return &m.c.gates[at%C.KPL_GATES] }
