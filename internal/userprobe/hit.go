package userprobe

import (
	"encoding/binary"

	"kprobelab/internal/process"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// Int3 implements process.Tracer (handle_swbp).
func (k *Probes) Int3(regs *x86.PtRegs) bool {
	if t := k.task(); t.step != nil {
		// A step that will have no end: sigreturn was stepped, and took the trap flag away. The
		// kernel takes this trap for its end, and the program goes on past the int3 (handle_singlestep).
		u, at := t.step.u, t.step.at
		k.endStep(t)
		k.tell(EventLostStep, u, at, regs)
		k.tell(EventResume, u, at, regs)
		return true
	}
	at := x86.Addr(regs.IP - 1)
	if area := k.of(k.p.Space).area; area != 0 && at == area && !k.c.Uprobes.ReturnCall {
		if !k.returned(regs) {
			k.p.Force(process.SIGILL)
		}
		return true
	}
	u := k.find(at)
	if u == nil {
		var b [1]byte
		if k.p.Read(at, b[:]) == nil && b[0] == int3 {
			return false // the program's own
		}
		regs.IP = uint64(at) // it was taken away meanwhile
		k.tell(EventGone, nil, at, regs)
		return true
	}
	k.Stats.Hits++
	k.tell(EventTrap, u, at, regs)
	regs.IP = uint64(at)
	k.handlers(u, regs)
	k.optimize(u, at, regs)
	if k.emulate(u, at, regs) {
		k.Stats.Emulated++
		k.tell(EventEmulated, u, at, regs)
		k.tell(EventResume, u, at, regs)
		if regs.Flags&x86.FlagTF != 0 {
			k.p.Send(process.SIGTRAP) // the program steps itself
		}
		return true
	}
	return k.begin(u, at, regs)
}

// handlers calls the handlers of all consumers, and probes the return if a consumer handles
// returns. If no consumer accepts this process, its int3 is removed (handler_chain).
func (k *Probes) handlers(u *uprobe, regs *x86.PtRegs) {
	returns, remove := false, true
	for _, c := range u.consumers {
		returns = returns || c.Returned != nil
		if !c.wants(k.p.Space) {
			continue
		}
		remove = false
		c.Hits++
		if c.Hit != nil {
			k.tellHandler(EventHandler, u, c, x86.Addr(regs.IP), regs)
			c.Hit(regs)
		}
	}
	switch {
	case remove:
		k.remove(u, k.p.Space)
		k.tell(EventRemoved, u, x86.Addr(regs.IP), regs)
	case returns:
		k.hijack(u, regs)
	}
}

// slotSize is the size of a slot of the XOL area; the first is the trampoline's.
const slotSize = 128

// xol returns the XOL area, mapped when it is first needed; 0 if there is no room.
func (k *Probes) xol() x86.Addr {
	own := k.of(k.p.Space)
	if own.area == 0 {
		own.area = k.makeXOL(k.p.Space, process.XOLHint)
	}
	return own.area
}

// makeXOL maps an area with its trampoline.
func (k *Probes) makeXOL(s *process.Space, hint x86.Addr) x86.Addr {
	v, err := s.MapFree(hint, process.Mapping{Prot: process.ProtExec, Name: "[uprobes]", Alone: true}, process.PageSize)
	if err != nil {
		return 0
	}
	code := []byte{int3}
	if k.c.Uprobes.ReturnCall {
		code = returnCall
	}
	if s.Poke(v.Start, code) != nil {
		return 0
	}
	return v.Start
}

// begin makes the copy of the instruction be executed next (pre_ssout).
func (k *Probes) begin(u *uprobe, at x86.Addr, regs *x86.PtRegs) bool {
	area := k.xol()
	if area == 0 {
		return true // the kernel tries again, for ever: the budget ends it
	}
	t := k.task()
	own := k.of(k.p.Space)
	n := own.slots.take()
	if n == 0 {
		k.p.Yield() // the kernel sleeps until a slot is free
		k.tell(EventNoSlot, u, at, regs)
		return true
	}
	slot := area + x86.Addr(n*slotSize)
	if own.slots.copies[n] != u {
		if k.p.Poke(slot, u.analysis.Copy[:]) != nil {
			own.slots.free(n)
			return true
		}
		own.slots.copies[n] = u
	}
	k.Stats.Stepped++
	s := &t.own
	*s = step{u: u, in: own, at: at, xol: slot, slot: n, flags: regs.Flags & x86.FlagTF}
	if r := scratch(u.analysis.Fixups, regs); r != nil {
		s.scratch = *r
		*r = uint64(at) + uint64(u.analysis.Length)
	}
	t.step = s
	regs.IP = uint64(slot)
	regs.Flags |= x86.FlagTF
	k.tellCopy(u, at, slot, regs)
	return true
}

// scratch returns the register that replaces rip in a copy, nil if none does.
func scratch(f uprobes.Fixups, regs *x86.PtRegs) *uint64 {
	switch {
	case f&uprobes.FixSI != 0:
		return &regs.SI
	case f&uprobes.FixDI != 0:
		return &regs.DI
	case f&uprobes.FixBX != 0:
		return &regs.BX
	}
	return nil
}

// Debug implements process.Tracer: the trap after a copy (arch_uprobe_post_xol).
func (k *Probes) Debug(regs *x86.PtRegs) bool {
	t := k.task()
	s := t.step
	if s == nil {
		return false
	}
	k.endStep(t)
	a := &s.u.analysis
	if r := scratch(a.Fixups, regs); r != nil {
		*r = s.scratch
	}
	again := false
	keep := s.flags != 0 || a.Fixups&uprobes.FixFlags != 0
	switch {
	case a.Fixups&uprobes.FixIP != 0:
		regs.IP += uint64(s.at.Sub(s.xol))
	case a.Fixups&uprobes.FixCall != 0:
		regs.SP += 8
		if !k.push(regs, uint64(s.at)+uint64(a.Length)) {
			regs.IP, again = uint64(s.at), true // and meets the fault
		}
	}
	if !keep {
		regs.Flags &^= x86.FlagTF
	}
	if s.flags != 0 && !again {
		k.p.Send(process.SIGTRAP)
	}
	k.tell(EventStepped, s.u, s.at, regs)
	k.tell(EventResume, s.u, s.at, regs)
	return true
}

// Stepping implements process.Tracer.
func (k *Probes) Stepping() bool { return k.task().step != nil }

// Abort implements process.Tracer: an instruction that faults did so at the probe
// (arch_uprobe_abort_xol).
func (k *Probes) Abort(regs *x86.PtRegs) {
	t := k.task()
	s := t.step
	if s == nil {
		return
	}
	k.endStep(t)
	if r := scratch(s.u.analysis.Fixups, regs); r != nil {
		*r = s.scratch
	}
	regs.IP = uint64(s.at)
	if s.flags == 0 {
		regs.Flags &^= x86.FlagTF
	}
	k.tell(EventAborted, s.u, s.at, regs)
}

// emulate emulates the instruction, if the kernel does that. It reports whether it has.
func (k *Probes) emulate(u *uprobe, at x86.Addr, regs *x86.PtRegs) bool {
	a := &u.analysis
	next := uint64(at) + uint64(a.Length)
	switch a.Way {
	case uprobes.Push:
		if !k.push(regs, *regs.Reg(a.Register)) {
			return false
		}
		regs.IP = next
		return true
	case uprobes.Branch:
		to := next + uint64(a.Target)
		switch {
		case a.Opcode == 0xe8:
			if !k.push(regs, next) {
				return false
			}
		case a.Opcode&0xf0 == 0x70 && !condition(a.Opcode, regs.Flags):
			to = next
		}
		regs.IP = to
		return true
	}
	return false
}

func (k *Probes) push(regs *x86.PtRegs, v uint64) bool {
	binary.LittleEndian.PutUint64(k.word[:], v)
	if k.p.Write(x86.Addr(regs.SP-8), k.word[:]) != nil {
		return false
	}
	regs.SP -= 8
	return true
}

// condition reports whether a conditional jump of an opcode 70 to 7f is taken (SDM Vol. 1,
// appendix B).
func condition(op byte, flags uint64) bool {
	has := func(f uint64) bool { return flags&f != 0 }
	var c bool
	switch op >> 1 & 7 {
	case 0:
		c = has(x86.FlagOF)
	case 1:
		c = has(x86.FlagCF)
	case 2:
		c = has(x86.FlagZF)
	case 3:
		c = has(x86.FlagCF | x86.FlagZF)
	case 4:
		c = has(x86.FlagSF)
	case 5:
		c = has(x86.FlagPF)
	case 6:
		c = has(x86.FlagSF) != has(x86.FlagOF)
	default:
		c = has(x86.FlagZF) || has(x86.FlagSF) != has(x86.FlagOF)
	}
	return c != (op&1 != 0)
}
