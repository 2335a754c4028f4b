package kprobes

import "kprobelab/x86"

// Fault is kprobe_fault_handler (docs/spec 7). regs.IP is at the instruction that
// faulted. The result is false unless a handler's fault was resolved here.
func (t *traps) Fault(regs *x86.PtRegs, vector int) bool {
	k := (*Kprobes)(t)
	cpu := k.arrive()
	mine := k.fault(cpu, regs, vector)
	return mine
}

func (k *Kprobes) fault(cpu *cpuState, regs *x86.PtRegs, vector int) bool {
	p := cpu.current
	switch {
	case k.c.Step.PageFaultsOnly && vector != pageFault && vector != protectionFault:
		return false
	case p == nil:
		k.boostedFault(regs)
		return false
	}
	switch cpu.status {
	case HitActive, HitSSDone:
		return k.handlerFault(cpu, p, regs, vector)
	}
	if cpu.ool == nil || x86.Addr(regs.IP) != cpu.ool.Addr {
		return false
	}
	if cpu.answered {
		k.dropAnswer(cpu, k.m.CPU())
	}
	// The copy faulted: let the kernel see a fault of the original, so that
	// the exception table is searched with its address. If the fault is
	// resolved, the instruction starts again and hits the probe again.
	regs.IP = uint64(cpu.ool.At)
	if k.c.Step.TrapFlag {
		regs.Flags &^= x86.FlagTF
	}
	regs.Flags |= cpu.oldFlags
	k.unwind(cpu)
	k.event(cpu, EventFault, WayInt3, p, p.Addr, regs)
	return false
}

// Vectors of the faults for which the kernel calls kprobes (docs/spec 7.1).
const (
	protectionFault = 13
	pageFault       = 14
)

// boostedFault moves the fault of a boosted copy to the original instruction,
// unless the kernel leaves it in the slot: there the hit is over.
func (k *Kprobes) boostedFault(regs *x86.PtRegs) {
	if k.c.Step.BoostedFaultInSlot {
		return
	}
	for _, p := range k.table.buckets {
		for ; p != nil; p = p.next {
			if p.ool != nil && p.ool.Boosted && uint64(p.ool.Addr) == regs.IP {
				regs.IP = uint64(p.ool.At)
				return
			}
		}
	}
}

// handlerFault is a fault in a pre or post handler, or in guest code that one
// calls. From 5.14 on kprobes do nothing about it.
func (k *Kprobes) handlerFault(cpu *cpuState, p *Kprobe, regs *x86.PtRegs, vector int) bool {
	if !k.c.FaultHandler {
		return false
	}
	p.missed()
	h := p
	if p.aggregate != nil {
		h = cpu.instance
	}
	if h != nil && h.FaultHandler != nil && k.callFault(h, regs, vector) != 0 {
		return true
	}
	if !k.c.ExceptionTableInHandlers {
		return false
	}
	fixup, ok := k.view.ExceptionEntry(x86.Addr(regs.IP))
	if ok {
		regs.IP = uint64(fixup)
	}
	return ok
}

func (k *Kprobes) callFault(p *Kprobe, regs *x86.PtRegs, vector int) int {
	done := false
	defer func() {
		if !done {
			k.recovered(p, "fault_handler", recover())
		}
	}()
	ret := p.FaultHandler(p, regs, vector)
	done = true
	return ret
}

// TaskExit drops the state of a task that has ended, or whose run was given up. Its pending
// return-probe instances go back to their pools without their handlers (kprobe_flush_task). The hit
// that it was in ends.
func (t *traps) TaskExit(task int) {
	k := (*Kprobes)(t)
	for i := range k.cpus {
		cpu := k.settle(i)
		if cpu.current != nil && cpu.task == task {
			cpu.current, cpu.instance, cpu.frames = nil, nil, 0
			if cpu.answered {
				k.dropAnswer(cpu, i)
			}
		}
	}
	k.recycleTask(task)
}
