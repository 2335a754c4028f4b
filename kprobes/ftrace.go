package kprobes

import "kprobelab/x86"

// ftraceSiteSize is the length of a function's fentry site in bytes.
const ftraceSiteSize = 5

// ftraceHit handles a probe on a function's fentry site as the function
// tracer's callback does (kprobe_ftrace_handler, spec 2.9).
//
// The real kernel replaces the site by a call to the tracer. No tracer exists
// here, so the site carries an int3 like any other probe; what a handler can
// see is the callback's: no slot, no second trap, orig_ax 0, and execution
// goes on behind the 5 bytes, which are a nop.
func (k *Kprobes) ftraceHit(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) bool {
	behind := uint64(p.Addr) + ftraceSiteSize
	if cpu.current != nil {
		p.missed()
		k.event(cpu, EventMissed, p, p.Addr, regs, "hit while another probe is handled: counted as missed, no handlers")
		regs.IP = behind
		return true
	}
	if p.Disabled() {
		regs.IP = behind
		return true
	}
	cpu.step = 0
	k.event(cpu, EventTrap, p, p.Addr, regs, "the function tracer calls at the fentry site; ip is one behind its address")
	regs.OrigAX = 0
	k.begin(cpu, p, regs)
	cpu.status = HitActive
	if k.pre(cpu, p, regs) == 0 {
		k.finishFtrace(cpu, p, regs)
		return true
	}
	if !k.c.Step.HandlerResets {
		cpu.current = nil
	}
	k.event(cpu, EventSkipped, p, x86.Addr(regs.IP), regs, "the pre handler returned non-zero: resume where it left ip")
	return true
}

// finishFtrace does what the nop of the site does, and ends the hit.
func (k *Kprobes) finishFtrace(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) {
	behind := uint64(p.Addr) + ftraceSiteSize
	regs.IP = behind
	if p.hasPost() {
		cpu.status = HitSSDone
		k.post(cpu, p, regs)
	}
	regs.IP = behind
	cpu.current = nil
	k.event(cpu, EventResume, p, x86.Addr(regs.IP), regs, "resume the probed code")
}
