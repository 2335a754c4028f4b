package kprobes

import "kprobelab/x86"

// A jprobe's hit, on one CPU:
//
//	int3 at A --> setjmpPre: save registers and stack, ip = the handler
//	              the handler runs in the guest, interrupts off; the hit goes on
//	              jprobe_return: rsp = the saved one, then an int3
//	          --> longjmpBreak: the saved registers and stack are back
//	          --> step A as any other probe does

// setjmpPre is setjmp_pre_handler: it sends the CPU to the jprobe's handler.
func (k *Kprobes) setjmpPre(p *Kprobe, regs *x86.PtRegs) int {
	cpu := k.cpu()
	j := &cpu.jump
	if err := k.saveStack(cpu, j, regs); err != nil {
		k.fail(&EmulationFault{Probe: k.name(p), Addr: p.Addr, Err: err})
		return 0
	}
	j.regs = *regs
	regs.Flags &^= x86.FlagIF
	regs.IP = uint64(p.jprobe.Entry)
	return 1
}

// saveStack keeps the stack words that hold arguments: the ABI lets the handler
// change them, and the probed function needs them afterwards. It tells the
// guest where the stack is.
func (k *Kprobes) saveStack(cpu *cpuState, j *jprobeArea, regs *x86.PtRegs) error {
	sp := x86.Addr(regs.SP)
	end := (sp &^ (x86.ThreadSize - 1)).Add(x86.ThreadSize)
	j.saved = int(min(jprobeStack, end.Sub(sp)))
	if err := k.m.ReadMem(sp, j.stack[:j.saved]); err != nil {
		return err
	}
	return k.writeWord(cpu, k.m.GSBase(k.m.CPU())+k.jp.savedSP, regs.SP)
}

// longjmpBreak handles the int3 in jprobe_return (longjmp_break_handler); it
// reports whether the trap was that.
func (k *Kprobes) longjmpBreak(cpu *cpuState, regs *x86.PtRegs) bool {
	p := cpu.current
	if p == nil || !p.hasBreak() || !k.jp.ret.Contains(x86.Addr(regs.IP-1)) {
		return false
	}
	jp := p
	if p.aggregate != nil {
		if jp = cpu.instance; jp == nil || jp.jprobe == nil {
			return false
		}
	}
	j := &cpu.jump
	if regs.SP != j.regs.SP {
		k.lostStack(jp, j, regs)
		return false
	}
	*regs = j.regs
	if err := k.m.WriteMem(x86.Addr(regs.SP), j.stack[:j.saved]); err != nil {
		k.fail(&EmulationFault{Probe: k.name(p), Addr: p.Addr, Err: err})
	}
	cpu.instance = nil
	k.event(cpu, EventJprobeReturn, WayInt3, jp, p.Addr, regs)
	if p.OnFtrace() {
		k.finishFtrace(cpu, p, regs, uint64(p.Addr)+ftraceSiteSize)
		return true
	}
	return k.setupStep(cpu, p, regs, false)
}

// lostStack is the kernel's BUG where a handler did not end on the stack that
// it was entered with.
func (k *Kprobes) lostStack(p *Kprobe, j *jprobeArea, regs *x86.PtRegs) {
	k.printk("current sp " + bare(regs.SP) + " does not match saved sp " + bare(j.regs.SP))
	k.printk("Saved registers for jprobe " + bare(uint64(p.Addr)))
	k.dump(&j.regs)
	k.printk("Current registers")
	k.dump(regs)
	k.fail(&Bug{
		Text:  "jprobe_return with another stack pointer than the jprobe saved",
		Probe: k.name(p), Addr: p.Addr, CPU: k.m.CPU(), Task: k.m.Task(),
		Current: k.name(p), Status: k.cpu().status, Regs: *regs,
	})
}
