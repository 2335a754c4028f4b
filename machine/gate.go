package machine

import "kprobelab/x86"

// A gate leads an int3 to guest code, as an entry of the interrupt descriptor
// table does, without a call into Go. The entry finds interrupts off, the gate's
// word in word 0 of the CPU's own page and, on the interrupted stack, the part of
// a pt_regs from orig_ax (-1) to ss; the 64 bytes above that are free. The entry
// goes back with a popfq and a ret from there.

// Gate is an int3 that goes to guest code; Entry is 0 where there is none.
type Gate struct{ At, Entry, Word x86.Addr }

// GateInt3 makes a gate for the int3 at an address. It is not taken while word
// 0 of the CPU's own page is not 0. The result is false, and nothing is changed,
// where another gate has the place of this one: their addresses have the same low
// 12 bits.
func (m *Machine) GateInt3(at, entry, word x86.Addr) bool {
	g := m.gate(at)
	switch {
	case g.Entry == 0:
		m.sh.NGates++
	case g.At != at:
		return false
	}
	g.At, g.Entry, g.Word = at, entry, word
	return true
}

// UngateInt3 takes the gate at an address away.
func (m *Machine) UngateInt3(at x86.Addr) {
	if g := m.gate(at); g.Entry != 0 && g.At == at {
		g.Entry = 0
		m.sh.NGates--
	}
}

// forgetGates takes all gates away: what they lead to may be gone. Word 0 is
// what it was when its page was first written, maybe inside a gate: nobody is.
func (m *Machine) forgetGates() {
	for _, c := range m.cpus {
		c.words[LocalGuard] = 0
	}
	if m.sh.NGates > 0 {
		clear(m.sh.Gates[:])
		m.sh.NGates = 0
	}
}

func (m *Machine) gate(at x86.Addr) *Gate { return &m.sh.Gates[at%x86.Addr(len(m.sh.Gates))] }
