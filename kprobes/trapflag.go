package kprobes

import "kprobelab/x86"

// Debug is the single-step trap of kernels that step with the trap flag (kprobe_debug_handler, to
// 5.12; docs/spec 2.8). The slot package makes the corrections after the copy.
func (t *traps) Debug(regs *x86.PtRegs) bool {
	k := (*Kprobes)(t)
	cpu := k.arrive()
	mine := k.debug(cpu, regs)
	return mine
}

func (k *Kprobes) debug(cpu *cpuState, regs *x86.PtRegs) bool {
	p := cpu.current
	if p == nil || cpu.ool == nil || !k.c.Step.TrapFlag || cpu.status&(HitSS|Reenter) == 0 {
		return false
	}
	k.event(cpu, EventStepped, WayDebug, p, x86.Addr(regs.IP), regs)
	if k.c.Step.PostBeforeFixup {
		k.postOnce(cpu, p, regs)
	}
	k.fixup(cpu, p, regs)
	regs.Flags |= cpu.savedFlags
	if !k.c.Step.PostBeforeFixup {
		k.postOnce(cpu, p, regs)
	}
	k.unwind(cpu)
	k.event(cpu, EventResume, WayInt3, p, x86.Addr(regs.IP), regs)
	// TF is still set: somebody else is stepping, and wants the trap too.
	return regs.Flags&x86.FlagTF == 0
}

// postOnce runs the post handler of a hit that is not nested.
func (k *Kprobes) postOnce(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) {
	if cpu.status != Reenter {
		cpu.status = HitSSDone
		k.post(cpu, p, regs)
	}
}

// fixup is resume_execution. Where the release does it at this point, it also
// appends the jump that boosts the slot from the next hit on.
func (k *Kprobes) fixup(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) {
	s := &cpu.ool.Slot
	rewrite, err := s.FixupTF(regs, k.mem, cpu.oldFlags, k.c)
	if err == nil && rewrite {
		err = k.m.PokeText(s.Addr, s.Bytes[:s.Len])
	}
	if err != nil {
		k.fail(&EmulationFault{Probe: k.name(p), Addr: p.Addr, Err: err})
	}
}
