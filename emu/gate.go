//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import "kprobelab/x86"

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
		m.c.ngates++
	case x86.Addr(g.at) != at:
		return false
	}
	g.at, g.entry, g.word = C.uint64_t(at), C.uint64_t(entry), C.uint64_t(word)
	return true
}

// UngateInt3 takes the gate at an address away.
func (m *Machine) UngateInt3(at x86.Addr) {
	if g := m.gate(at); g.entry != 0 && x86.Addr(g.at) == at {
		g.entry = 0
		m.c.ngates--
	}
}

// forgetGates takes all gates away: what they lead to may be gone. Word 0 is
// what it was when its page was first written, maybe inside a gate: nobody is.
func (m *Machine) forgetGates() {
	for _, c := range m.cpus {
		c.words[localGuard] = 0
	}
	if m.c.ngates > 0 {
		clear(m.c.gates[:])
		m.c.ngates = 0
	}
}

func (m *Machine) gate(at x86.Addr) *C.kpl_gate { return &m.c.gates[at%C.KPL_GATES] }
