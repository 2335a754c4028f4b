package kprobes

import (
	"encoding/binary"

	"kprobelab/x86"
)

// The detour buffer calls optimized_callback(op, regs). A call-out gets a frame
// only. So the callback is a few instructions of guest code: they put op into
// the frame's orig_ax, which is not set yet, and jump to the call-out.
var callbackCode = []byte{
	0x48, 0x89, 0x7e, 0x78, // mov %rdi,0x78(%rsi)
	0x48, 0x89, 0xf7, // mov %rsi,%rdi
	0xe9, 0, 0, 0, 0, // jmp to the call-out
}

func (k *Kprobes) placeCallback() (x86.Addr, error) {
	out, err := k.m.Callout("optimized_callback.out", k.optimizedCallback)
	if err != nil {
		return 0, err
	}
	at, err := k.m.AllocExec(len(callbackCode), "optimized_callback")
	if err != nil {
		return 0, err
	}
	code := append([]byte(nil), callbackCode...)
	n := len(code)
	binary.LittleEndian.PutUint32(code[n-4:], uint32(out.Sub(at.Add(int64(n)))))
	return at, k.m.PokeText(at, code)
}

// optimizedCallback is optimized_callback (docs/spec 4.5): a hit through the jump. There was no
// trap, and interrupts are as they were. The handlers' return values are ignored, and so are their
// changes of ip, sp, cs and ss.
func (k *Kprobes) optimizedCallback(_ x86.Addr, regs *x86.PtRegs) {
	cpu := k.arrive()
	k.optimizedHit(cpu, regs)
}

func (k *Kprobes) optimizedHit(cpu *cpuState, regs *x86.PtRegs) {
	handle := regs.OrigAX
	if handle >= uint64(len(k.handles)) || k.handles[handle] == nil {
		if k.stepper != nil {
			k.stepper.Point(Point{Kind: PointFreed})
		}
		return // freed by a module that went
	}
	o := k.handles[handle]
	p := o.entry
	if p.Disabled() {
		return // it waits to be undone
	}
	cpu.task = k.task()
	if cpu.current != nil {
		p.missed()
		k.event(cpu, EventMissed, WayDetour, p, p.Addr, regs)
		return
	}
	if k.c.Optimize.SSWord {
		regs.SP += 8 // the push of ss came before
	}
	regs.CS = x86.KernelCS
	regs.IP = uint64(p.Addr) + 1
	regs.OrigAX = ^uint64(0)
	cpu.step = 0
	k.event(cpu, EventOptimized, WayDetour, p, p.Addr, regs)
	k.begin(cpu, p, regs)
	cpu.come(WayDetour, regs)
	cpu.status = HitActive
	k.optPre(cpu, p, regs)
	cpu.current = nil
	if k.observe != nil {
		k.emit(cpu, EventDetoured, WayDetour, p, o.d.Copied(), regs)
	}
}

// optPre is opt_pre_handler: all members that are enabled, newest first.
func (k *Kprobes) optPre(cpu *cpuState, entry *Kprobe, regs *x86.PtRegs) {
	for _, m := range entry.aggregate.members {
		if m.PreHandler != nil && !m.Disabled() {
			cpu.instance = m
			k.callPre(cpu, m, regs)
		}
		cpu.instance = nil
	}
}

// detours sends a hit by int3 to the copied instructions in the detour buffer
// (setup_detour_execution, docs/spec 2.4), where the probe is optimized or on
// its way there or back.
func (k *Kprobes) detours(cpu *cpuState, p *Kprobe, regs *x86.PtRegs, reenter bool) bool {
	if !p.Optimized() || !p.opt().ready() {
		return false
	}
	if !reenter {
		cpu.current = nil
	}
	to := p.opt().d.Copied()
	regs.IP = uint64(to)
	k.event(cpu, EventDetour, WayInt3, p, to, regs)
	return true
}
