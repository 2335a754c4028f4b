package kprobes

import (
	"fmt"

	"kprobelab/x86"
)

// Misuse reports that a pre handler changed the path of execution in a way that has no effect, or
// not the intended one (kprobes.rst, Changing Execution Path, and the note at the end of How Does
// Jump Optimization Work). The kernel reports nothing.
type Misuse struct {
	// Probe is the probe with the handler, and Name its place, "symbol" or "symbol+0xoffset".
	Probe *Kprobe
	Name  string
	// Way is the mechanism by which the CPU reached the probe.
	Way Way
	// Returned is the handler's return value. IP is the ip that the handler set, and From the ip
	// before that; SP and FromSP are the same for sp.
	Returned             int
	IP, From, SP, FromSP uint64
}

// String describes the misuse and the correction.
func (m *Misuse) String() string {
	switch {
	case m.Way == WayDetour && (m.Returned != 0 || m.IP != m.From):
		return fmt.Sprintf("%s is a jump (optimized): what its pre handler returns is ignored, and so is the ip that it sets; "+
			"a probe with a post handler stays an int3", m.Name)
	case m.Returned != 0 && m.IP == m.From:
		return fmt.Sprintf("%s: the pre handler returned %d and left ip as it was: the CPU goes on at %v, inside of the probed instruction; "+
			"set ip to where it has to go on, or return 0", m.Name, m.Returned, x86.Addr(m.IP))
	case m.IP != m.From:
		return fmt.Sprintf("%s: the pre handler set ip to %v and returned 0: that sends no CPU there; return 1", m.Name, x86.Addr(m.IP))
	}
	return fmt.Sprintf("%s: the pre handler set sp to %#x: that is lost where no int3 was hit", m.Name, m.SP)
}

// OnMisuse calls fn for each misuse, until it is called with nil. Handlers in guest
// code are not watched.
func (k *Kprobes) OnMisuse(fn func(*Misuse)) { k.misuse = fn }

// watch checks the result of a pre handler; ip and sp are the values before it.
func (k *Kprobes) watch(cpu *cpuState, p *Kprobe, regs *x86.PtRegs, ip, sp uint64, returned int) {
	if p.jprobe != nil || p.internal {
		return
	}
	// The ip of a hit is past an instruction of one byte, and inside of others.
	inside := regs.IP == ip && (p.ool == nil || p.ool.InsnLen > 1)
	switch {
	case cpu.way == WayDetour && returned != 0, returned != 0 && inside, returned == 0 && regs.IP != ip, cpu.way != WayInt3 && regs.SP != sp:
		k.misuse(&Misuse{Probe: p, Name: k.name(p), Way: cpu.way, Returned: returned, IP: regs.IP, From: ip, SP: regs.SP})
	}
}
