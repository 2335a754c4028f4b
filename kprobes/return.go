package kprobes

import (
	"strings"

	"kprobelab/profile"
	"kprobelab/x86"
)

// trampolineReturn is the Go function that the trampoline calls. frame is the guest address of the
// register frame, and regs is that frame in place (docs/spec 5.4, 5.5).
func (k *Kprobes) trampolineReturn(frame x86.Addr, regs *x86.PtRegs) {
	cpu := k.arrive()
	regs.CS = x86.KernelCS
	regs.IP = uint64(k.kret.trampoline)
	regs.OrigAX = ^uint64(0)
	if k.c.Kret.Rethook {
		regs.SP += 16 // as the caller will see it
	}
	ret := k.runReturn(cpu, x86.Addr(regs.SP)-8, regs)
	at := frame + offSP
	if k.c.Kret.Rethook {
		at = frame + offAbove
		regs.SS = regs.Flags
	}
	if _, err := k.swapper.SwapWord(at, uint64(ret)); err != nil {
		k.fail(err)
	}
}

// trampolineProbe is the pre handler of 2.6.18's trampoline.
func (k *Kprobes) trampolineProbe(_ *Kprobe, regs *x86.PtRegs) int {
	cpu := k.cpu()
	state := cpu.control
	regs.IP = uint64(k.kret.trampoline)
	regs.IP = uint64(k.runReturn(cpu, x86.Addr(regs.SP)-8, regs))
	cpu.control = state
	cpu.current = nil // this handler resets, as handlers of that time do
	return 1
}

// runReturn runs the handlers of all calls that return through the stack slot at frame, frees their
// instances, and returns the real return address. It returns 0 if there is none; the guest then
// faults at 0, where the kernel would BUG.
func (k *Kprobes) runReturn(cpu *cpuState, frame x86.Addr, regs *x86.PtRegs) x86.Addr {
	task := k.task()
	first := k.head(task)
	last := k.firstReal(first, frame)
	if last == nil {
		k.lostReturn(frame, regs)
		return 0
	}
	if k.c.Kret.FrameCheck == profile.FrameBug && k.misplaced(first, last, frame) {
		k.bugReturn("a pending call waits on another stack slot", frame, regs)
		return 0
	}
	cpu.step, cpu.task = 0, task
	if k.observe != nil {
		k.emit(cpu, EventReturn, WayReturn, k.entryProbe(last), frame, regs)
	}
	if !k.c.Kret.HandlerIPIsTrampoline {
		regs.IP = uint64(last.RetAddr)
	}
	ret := last.RetAddr
	if last.through != 0 {
		ret = last.through
	}
	k.runHandlers(cpu, first, last, frame, regs)
	k.recycleThrough(task, last, frame)
	k.event(cpu, EventReturned, WayReturn, nil, ret, regs)
	return ret
}

// firstReal returns the newest instance whose return address is not the trampoline's. The instances
// before it share its frame, or are passed over.
func (k *Kprobes) firstReal(i *Instance, frame x86.Addr) *Instance {
	for i != nil && (i.RetAddr == k.kret.trampoline || k.passesOver(i, frame)) {
		i = i.next
	}
	return i
}

// passesOver reports whether an instance is skipped, because it waits on another stack slot than
// the one that is returned through. A function that a longjmp has left has such an instance.
func (k *Kprobes) passesOver(i *Instance, frame x86.Addr) bool {
	return k.c.Kret.FrameCheck == profile.FramePassedOver && i.frame != frame
}

// misplaced reports whether an instance up to last waits on another stack slot.
func (k *Kprobes) misplaced(first, last *Instance, frame x86.Addr) bool {
	for i := first; i != last; i = i.next {
		if i.frame != frame {
			return true
		}
	}
	return last.frame != frame
}

// runHandlers calls the handlers from the list's head to last, inclusive: the
// oldest probe of a function comes first. An instance on another stack slot
// than the one that is returned through is treated as FrameCheck says.
func (k *Kprobes) runHandlers(cpu *cpuState, first, last *Instance, frame x86.Addr, regs *x86.PtRegs) {
	real, skipped := last.RetAddr, false
	for i := first; ; i = i.next {
		switch {
		case i.frame == frame, k.c.Kret.FrameCheck == profile.FrameUnchecked:
			if skipped {
				k.tellSkipped(i)
				skipped = false
			}
			if !k.c.Kret.Rethook {
				i.RetAddr = real
			}
			k.runHandler(cpu, i, regs)
		case k.c.Kret.FrameCheck == profile.FrameEnds:
			k.warnMisplaced()
			return
		default:
			if !skipped {
				k.printk("kretprobe is stacked incorrectly. Trying to fixup.")
			}
			skipped = true
		}
		if i == last {
			return
		}
	}
}

// warnMisplaced is the one-time warning of 5.16 and later (WARN_ON_ONCE, which has no
// text of its own).
func (k *Kprobes) warnMisplaced() {
	if !k.kret.misplaced {
		k.kret.misplaced = true
		by := "kretprobe"
		if k.c.Kret.Rethook {
			by = "rethook"
		}
		k.printk("WARNING: " + by + ": a pending return is on another stack frame")
	}
}

// tellSkipped names a function whose instance comes after skipped ones: its entry was hit in the
// wrong order.
func (k *Kprobes) tellSkipped(i *Instance) {
	if rp := i.Kretprobe(); rp != nil {
		name := k.name(&rp.KP)
		if s, ok := k.view.SymbolAt(rp.KP.Addr); ok {
			name = s.Name
		}
		k.printk(name + " must be blacklisted because of incorrect kretprobe order")
	}
}

// runHandler calls one return handler. Its probe counts as being handled
// meanwhile, so probes that the handler hits are missed.
func (k *Kprobes) runHandler(cpu *cpuState, i *Instance, regs *x86.PtRegs) {
	rp := i.Kretprobe()
	if rp == nil || rp.Handler == nil {
		return
	}
	k.event(cpu, EventReturnHandler, WayReturn, &rp.KP, i.RetAddr, regs)
	cpu.current = &rp.KP
	cpu.come(WayReturn, regs)
	cpu.status = HitActive
	k.callReturn(cpu, rp, "handler", rp.Handler, i, regs)
	cpu.current = nil
}

// lastPending names the probe of a task's oldest instance, with which the
// search for a return address ended. The kernel prints the address of the
// kprobe too; a Go object has none in the guest, so this is the probed address.
func (k *Kprobes) lastPending(task int) string {
	i := k.head(task)
	for i != nil && i.next != nil {
		i = i.next
	}
	if i == nil || i.Kretprobe() == nil {
		return "(null) @ (null)" // as %p prints it
	}
	kp := &i.Kretprobe().KP
	return k.name(kp) + " @ " + bare(uint64(kp.Addr))
}

// entryProbe is the probe of an instance, nil once it is unregistered.
func (k *Kprobes) entryProbe(i *Instance) *Kprobe {
	if rp := i.Kretprobe(); rp != nil {
		return &rp.KP
	}
	return nil
}

// lostReturn is the kernel's BUG: a return through the trampoline that belongs
// to no instance.
func (k *Kprobes) lostReturn(frame x86.Addr, regs *x86.PtRegs) {
	switch said := k.c.Kret.LostReturn; {
	case k.c.Kret.Rethook:
		k.printk("rethook: rethook: Return address not found! Maybe there is a bug in the kernel")
	case said != "":
		k.printk(strings.Replace(said, "%s", k.lastPending(k.m.Task()), 1))
	}
	k.bugReturn("return address not found: no pending call returns here", frame, regs)
}

// bugReturn ends the run: the kernel stops with a BUG in the trampoline's handler.
func (k *Kprobes) bugReturn(text string, frame x86.Addr, regs *x86.PtRegs) {
	k.fail(&Bug{Text: text, Probe: "return trampoline", Addr: frame, CPU: k.m.CPU(), Task: k.m.Task(), Regs: *regs})
}
