package kprobes

import (
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// setupStep arranges that the probed instruction is executed out of line
// (setup_singlestep, docs/spec 2.4). reenter is true for a nested hit.
func (k *Kprobes) setupStep(cpu *cpuState, p *Kprobe, regs *x86.PtRegs, reenter bool) bool {
	k.point(PointResume, p)
	if len(k.beside) > 0 && k.beside[p.Addr] {
		return k.stepBeside(cpu, p, regs, reenter)
	}
	if k.detours(cpu, p, regs, reenter) {
		return true
	}
	ool := cpu.ool
	if reenter {
		ool = p.ool
	}
	if k.boosts(p, ool) {
		if !reenter {
			cpu.current = nil
		}
		regs.IP = uint64(ool.Addr)
		k.event(cpu, EventBoost, WayInt3, p, ool.Addr, regs)
		return true
	}
	if reenter {
		cpu.save()
		k.begin(cpu, p, regs)
		cpu.status = Reenter
	} else {
		cpu.status = HitSS
	}
	if ool.Emulation.Kind != slot.EmulateNone {
		return k.emulate(cpu, p, regs)
	}
	k.startStep(ool, regs)
	if !reenter {
		k.answerStep(cpu, p)
	}
	k.event(cpu, EventStep, WayInt3, p, x86.Addr(regs.IP), regs)
	return true
}

// boosts reports whether the copy runs without a second trap. If a post handler forbids that, newer
// kernels decide when the slot is built, older ones at the hit.
func (k *Kprobes) boosts(p *Kprobe, ool *outOfLine) bool {
	return !k.c.Preemption && ool.Boosted && (k.c.Slot.BoostDecidedAtBuild || !p.hasPost())
}

// startStep sends the CPU to the copy. The int3 that follows the copy ends the
// step, or, with the trap flag, the #DB after one instruction.
func (k *Kprobes) startStep(ool *outOfLine, regs *x86.PtRegs) {
	regs.Flags &^= x86.FlagIF
	regs.IP = uint64(ool.Addr)
	if k.c.Step.TrapFlag {
		regs.Flags |= x86.FlagTF
		if ool.Opcode == int3 {
			regs.IP = uint64(ool.At) // a probed int3 is stepped in place
		}
	}
}

// emulate makes the instruction's changes of registers and stack. An access that faults is the
// kernel's own fault, an oops.
func (k *Kprobes) emulate(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) bool {
	if err := cpu.ool.Emulation.Run(regs, k.mem, k.c); err != nil {
		k.fail(&EmulationFault{Probe: k.name(p), Addr: p.Addr, Err: err})
		k.unwind(cpu)
		regs.IP = uint64(p.Addr)
		return false
	}
	k.event(cpu, EventEmulate, WayInt3, p, x86.Addr(regs.IP), regs)
	k.postProcess(cpu, p, regs)
	return true
}

// endsStep reports whether an int3 is the one after the copy that this CPU is
// executing. The window is the slot's 15 bytes. The int3 after a copy of 14
// bytes is the slot's last byte, and is not recognised, as in the kernel.
func (k *Kprobes) endsStep(cpu *cpuState, regs *x86.PtRegs) bool {
	if k.c.Step.TrapFlag || cpu.status&(HitSS|Reenter) == 0 {
		return false
	}
	if cpu.current == nil || cpu.ool == nil {
		if k.c.Step.StatusKept {
			k.fail(&Bug{Text: "a step is under way, and no probe is handled: a null pointer is followed", CPU: k.m.CPU(), Task: k.m.Task(), Regs: *regs})
		}
		return false
	}
	return k.afterCopy(cpu.ool, regs.IP)
}

func (k *Kprobes) afterCopy(ool *outOfLine, ip uint64) bool {
	s := uint64(ool.Addr)
	end := s + slotSize
	if !k.c.Step.LastInt3Missed {
		end++
	}
	return s < ip && ip < end
}

// finishStep ends an int3 single step (docs/spec 2.6).
func (k *Kprobes) finishStep(cpu *cpuState, regs *x86.PtRegs) {
	p := cpu.current
	k.event(cpu, EventStepped, WayStep, p, x86.Addr(regs.IP-1), regs)
	k.endStep(cpu, regs)
	k.postProcess(cpu, p, regs)
}

// endStep moves ip from the copy to the original code.
func (k *Kprobes) endStep(cpu *cpuState, regs *x86.PtRegs) {
	regs.Flags |= cpu.savedFlags
	regs.IP += uint64(cpu.ool.At.Sub(cpu.ool.Addr)) - 1
}

// postProcess runs the post handler and ends the hit; after a nested hit it
// only goes back to the outer one (kprobe_post_process).
func (k *Kprobes) postProcess(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) {
	if cpu.status == Reenter {
		cpu.restore()
	} else {
		if !k.c.Step.StatusKept || p.hasPost() {
			cpu.status = HitSSDone
		}
		k.post(cpu, p, regs)
		cpu.current = nil
	}
	k.event(cpu, EventResume, WayInt3, p, x86.Addr(regs.IP), regs)
}

// unwind ends a hit without running the post handler.
func (k *Kprobes) unwind(cpu *cpuState) {
	if cpu.status == Reenter {
		cpu.restore()
	} else {
		cpu.current = nil
	}
}
