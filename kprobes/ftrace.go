package kprobes

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/kprobes/textpoke"
	"kprobelab/x86"
)

// A probe on a function's fentry site runs from the function tracer (docs/spec 2.9):
// while it is armed, the 5-byte nop of the site is a call of the tracer's
// trampoline (ftracetramp.go), which calls kprobe_ftrace_handler. There is no
// slot, no trap, and interrupts stay as they are.

// ftraceSiteSize is the length of a function's fentry site in bytes.
const ftraceSiteSize = 5

// ftraceSite is the part of a probe on a fentry site that replaces the slot.
type ftraceSite struct {
	// nop is the CPU's 5-byte nop, which is put back.
	nop [ftraceSiteSize]byte
	// ops is the registration that has patched the site; nil while the probe is not armed.
	ops *ftraceOps
}

// ftraceOps is one registration with the function tracer, with its own trampoline. One is for
// probes without a post handler, and one, with IPMODIFY, for probes with a post handler. Two users
// with IPMODIFY, for example a live patch (HoldFtraceSite), exclude each other on a function.
type ftraceOps struct {
	trampoline x86.Addr
	// enabled counts the armed probes (kprobe_ftrace_enabled).
	enabled int
}

// ftraceState is the two registrations: kprobe_ftrace_ops and
// kprobe_ipmodify_ops.
type ftraceState struct {
	plain, ipmodify ftraceOps
	// handler is the call-out's stub, which the trampolines call; 0 until the first one is placed.
	handler x86.Addr
	// killed: the tracer has found an inconsistency, and changes no site any more.
	killed bool
	// patched are the sites that a live patch holds.
	patched map[x86.Addr]bool
	// functions is the registration that records functions for the tracer's own user.
	functions functionTrace
}

// opsFor is the registration that a probe belongs to now.
func (k *Kprobes) opsFor(p *Kprobe) *ftraceOps {
	if p.hasPost() {
		return &k.ftrace.ipmodify
	}
	return &k.ftrace.plain
}

// armFtrace has the tracer call the probe (arm_kprobe_ftrace).
func (k *Kprobes) armFtrace(p *Kprobe) error {
	ops := k.opsFor(p)
	if err := k.mayArm(p.Addr, ops); err != nil {
		return err
	}
	if k.shared != nil && k.guestHas(p.Addr, true) {
		return k.armBeside(p)
	}
	if err := k.placeFtraceTrampoline(ops); err != nil {
		return err
	}
	if err := k.pokeSite(k.ftraceCall(p.Addr, ops)); err != nil {
		return err
	}
	ops.enabled++
	p.ft.ops = ops
	return nil
}

// disarmFtrace gives the site its nop back (disarm_kprobe_ftrace), unless the
// function tracer needs the call. The trampoline stays for the next probe: a
// task may be in it.
func (k *Kprobes) disarmFtrace(p *Kprobe) error {
	if p.ft.ops == nil {
		return nil
	}
	switch {
	case k.ftrace.killed && k.c.Ftrace.KilledFails:
		return fmt.Errorf("the function tracer was killed: %w", errno.ENODEV)
	case k.c.Ftrace.PostCleared && k.opsFor(p) != p.ft.ops:
		return fmt.Errorf("the function tracer does not know of the probe in this registration: %w", errno.ENOENT)
	}
	if k.shared != nil {
		if err := k.shared.GuestText(p.Addr, p.ft.nop[:]); err != nil {
			return err
		}
	}
	back := textpoke.Change{At: p.Addr, New: p.ft.nop[:], Landing: p.Addr + ftraceSiteSize}
	if _, ok := k.ftrace.functions.nops[p.Addr]; ok {
		back = k.ftraceCall(p.Addr, &k.ftrace.plain)
	}
	if !k.ftrace.killed {
		if err := k.pokeSite(back); err != nil {
			return err
		}
	}
	p.ft.ops.enabled--
	p.ft.ops = nil
	return nil
}

// ftraceHandler is the Go function that a trampoline calls. It calls the users of the site, the
// newest first (ftrace_ops_list_func).
func (k *Kprobes) ftraceHandler(_ x86.Addr, regs *x86.PtRegs) {
	cpu := k.arrive()
	site := x86.Addr(regs.IP - ftraceSiteSize)
	if k.ftrace.functions.newer {
		k.traced(site, regs)
	}
	k.kprobeFtraceHandler(cpu, regs)
	if !k.ftrace.functions.newer {
		k.traced(site, regs)
	}
}

// kprobeFtraceHandler is kprobe_ftrace_handler. regs is the frame that the
// trampoline built, with ip past the site. The trampoline returns to the ip
// that it has in the end.
func (k *Kprobes) kprobeFtraceHandler(cpu *cpuState, regs *x86.PtRegs) {
	past := regs.IP
	p := k.table.lookup(x86.Addr(past - ftraceSiteSize))
	if p == nil || p.Disabled() || k.ftrace.killed && !k.c.Ftrace.KilledFails {
		return
	}
	cpu.task = k.task()
	if cpu.current != nil {
		p.missed()
		k.event(cpu, EventMissed, WayTracer, p, p.Addr, regs)
		return
	}
	cpu.step = 0
	regs.IP = uint64(p.Addr) + 1
	k.event(cpu, EventTrap, WayTracer, p, p.Addr, regs)
	k.begin(cpu, p, regs)
	cpu.come(WayTracer, regs)
	cpu.status = HitActive
	if k.pre(cpu, p, regs) == 0 {
		k.finishFtrace(cpu, p, regs, past)
		return
	}
	if !k.c.Step.HandlerResets {
		cpu.current = nil
	}
	k.event(cpu, EventSkipped, WayTracer, p, x86.Addr(regs.IP), regs)
}

// finishFtrace emulates the nop of the site, and ends the hit. Execution continues at past; a post
// handler cannot change that.
func (k *Kprobes) finishFtrace(cpu *cpuState, p *Kprobe, regs *x86.PtRegs, past uint64) {
	regs.IP = uint64(p.Addr) + ftraceSiteSize
	if p.hasPost() {
		cpu.status = HitSSDone
		k.post(cpu, p, regs)
	}
	regs.IP = past
	cpu.current = nil
	k.event(cpu, EventResume, WayTracer, p, x86.Addr(regs.IP), regs)
}
