package kprobes

import "kprobelab/x86"

// reenter handles a breakpoint that is hit while another probe is being
// handled on this CPU (reenter_kprobe, docs/spec 2.5): the probe's handlers do not
// run, the hit is counted as missed, and the instruction is executed.
func (k *Kprobes) reenter(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) bool {
	switch {
	case cpu.status == Reenter && k.c.Step.NestedReenterBUG:
		k.fail(&Bug{
			Text:  "unrecoverable kprobe: hit while the instruction of a nested probe was executed",
			Probe: k.name(p), Addr: p.Addr, CPU: k.m.CPU(), Task: k.m.Task(),
			Current: k.name(cpu.current), Status: cpu.status, Regs: *regs,
		})
		k.printk("Unrecoverable kprobe detected.")
		k.dumpKprobe(p)
		return false
	case cpu.status == HitSSDone && k.c.Step.NestedPostDisarms:
		return k.disarmForGood(cpu, p, regs)
	case cpu.status == HitSS && k.stepsOwnInt3(p):
		regs.Flags = regs.Flags&^x86.FlagTF | cpu.savedFlags
		return false
	}
	p.missed()
	k.event(cpu, EventMissed, WayInt3, p, p.Addr, regs)
	return k.setupStep(cpu, p, regs, true)
}

// disarmForGood disarms a probe that is hit in a post handler, as 2.6.18 does: its breakpoint is
// removed and the outer probe is lost.
func (k *Kprobes) disarmForGood(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) bool {
	if err := k.disarm(p); err != nil {
		k.fail(err)
		return false
	}
	regs.IP = uint64(p.Addr)
	cpu.current = nil
	return true
}

// stepsOwnInt3 reports whether the trap may be the probed instruction itself,
// an int3 that 2.6.18 steps.
func (k *Kprobes) stepsOwnInt3(p *Kprobe) bool {
	return k.c.Step.NestedPostDisarms && p.opcode == int3
}
