package kprobes

import "kprobelab/x86"

// Int3 is kprobe_int3_handler (docs/spec 2.3). regs.IP is one past the
// breakpoint.
func (t *traps) Int3(regs *x86.PtRegs) bool {
	k := (*Kprobes)(t)
	if regs.CS&3 != 0 {
		return false // kprobes do not act on user mode
	}
	cpu := k.arrive()
	mine := k.int3(cpu, regs)
	return mine
}

func (k *Kprobes) int3(cpu *cpuState, regs *x86.PtRegs) bool {
	addr := x86.Addr(regs.IP - 1)
	if k.pokeInt3(cpu, regs) {
		return true
	}
	if k.stepper != nil {
		k.stepper.Point(Point{Kind: PointLookup, Addr: addr})
	}
	if len(k.beside) > 0 && k.beside[addr] {
		if p := k.table.lookup(addr); p == nil || p.OnFtrace() {
			return k.siteBeside(addr, regs)
		}
	}
	if p := k.table.lookup(addr); p != nil && !p.OnFtrace() && !p.taken && !k.guestsInt3(p) {
		cpu.task = k.task()
		if cpu.current != nil {
			return k.reenter(cpu, p, regs)
		}
		return k.hit(cpu, p, regs)
	}
	if k.endsStep(cpu, regs) {
		k.finishStep(cpu, regs)
		return true
	}
	return k.vanished(cpu, addr, regs) || k.longjmpBreak(cpu, regs) || k.strayed(addr, regs)
}

// hit handles a probe's breakpoint while no other probe is being handled.
func (k *Kprobes) hit(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) bool {
	cpu.step = 0
	k.event(cpu, EventTrap, WayInt3, p, p.Addr, regs)
	k.begin(cpu, p, regs)
	cpu.status = HitActive
	cpu.come(WayInt3, regs)
	if k.pre(cpu, p, regs) == 0 {
		return k.setupStep(cpu, p, regs, false)
	}
	if !k.c.Step.HandlerResets {
		cpu.current = nil
	}
	k.event(cpu, EventSkipped, WayInt3, p, x86.Addr(regs.IP), regs)
	return true
}

// vanished sends the CPU back to an address whose breakpoint was removed after
// the trap (to 6.2).
func (k *Kprobes) vanished(cpu *cpuState, addr x86.Addr, regs *x86.PtRegs) bool {
	if !k.c.Step.VanishedInt3 {
		return false
	}
	if k.m.ReadMem(addr, cpu.byte[:]) != nil || cpu.byte[0] == int3 {
		return false
	}
	regs.IP = uint64(addr)
	return true
}

// pre calls the pre handler, or the members' of an aggregate.
func (k *Kprobes) pre(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) int {
	if p.aggregate != nil {
		return k.aggrPre(cpu, p, regs)
	}
	if p.PreHandler == nil {
		return 0
	}
	return k.callPre(cpu, p, regs)
}

// post calls the post handler, or the members' of an aggregate.
func (k *Kprobes) post(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) {
	switch {
	case p.aggregate != nil && p.aggregate.post:
		k.aggrPost(cpu, p, regs)
	case p.aggregate == nil && p.PostHandler != nil:
		k.callPost(cpu, p, regs)
	}
}

func (k *Kprobes) callPre(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) (ret int) {
	k.event(cpu, EventPre, cpu.way, p, p.Addr, regs)
	if rp := p.kret; rp != nil && rp.pool != nil {
		return k.preKretprobe(cpu, rp, regs)
	}
	var state control
	state.set(&cpu.control)
	done := false
	defer func() {
		if !done {
			k.recovered(p, "pre_handler", recover())
		}
	}()
	ip, sp := regs.IP, regs.SP
	ret = p.PreHandler(p, regs)
	done = true
	if k.misuse != nil {
		k.watch(cpu, p, regs, ip, sp, ret)
	}
	k.keep(cpu, &state)
	return ret
}

func (k *Kprobes) callPost(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) {
	k.event(cpu, EventPost, cpu.way, p, p.Addr, regs)
	var state control
	state.set(&cpu.control)
	done := false
	defer func() {
		if !done {
			k.recovered(p, "post_handler", recover())
		}
	}()
	p.PostHandler(p, regs, 0)
	done = true
	k.keep(cpu, &state)
}

// keep restores the CPU's state after a handler, because a call of the guest by the handler may
// have ended inside a nested hit. Only in kernels whose pre handlers have to reset current_kprobe
// may a pre handler change the state.
func (k *Kprobes) keep(cpu *cpuState, state *control) {
	if cpu.current != state.current && !(k.c.Step.HandlerResets && cpu.current == nil) {
		cpu.control = *state
	}
}
