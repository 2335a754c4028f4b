package kprobes

import (
	"bytes"
	"encoding/binary"
	"slices"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// A place that the guest and this subsystem both have. Its first byte is an int3 of this subsystem, which
// the guest neither sees nor overwrites. A hit takes these steps:
//
//  1. The int3 traps. The pre handlers run, and on a fentry site the function tracer and the post handlers.
//  2. The guest's own bytes are read as they are now.
//  3. The CPU goes on as they say. An int3 of the guest's is a breakpoint that only the guest gets: its kprobes, or
//     its text_poke, do the rest. A call or a jump is made.

// callOpcode and jmpOpcode begin a call rel32 and a jmp rel32.
const callOpcode, jmpOpcode = 0xe8, 0xe9

// mayBeBeside reports whether a probe can share a place with the guest's. post: it needs the instruction's end.
func (k *Kprobes) mayBeBeside(at x86.Addr, site, post bool) bool {
	if !site && (post || k.insideGuestsJump(at)) {
		return false
	}
	var b [1]byte
	return k.shared.GuestText(at, b[:]) == nil && slices.Contains(siteInUse, b[0])
}

// insideGuestsJump reports whether an address is in the displacement of a jump that the guest has written.
func (k *Kprobes) insideGuestsJump(at x86.Addr) bool {
	var now, was [jumpTail]byte
	from := at - jumpTail
	if k.view.View.CodeAt(from, was[:]) != jumpTail || k.shared.GuestText(from, now[:]) != nil {
		return false
	}
	for i := range now {
		if now[i] == jmpOpcode && was[i] != jmpOpcode {
			return true
		}
	}
	return false
}

// putBeside writes the int3 of a shared place.
func (k *Kprobes) putBeside(at x86.Addr) error {
	if err := k.shared.HoldText(at, true); err != nil {
		return err
	}
	if k.beside == nil {
		k.beside = map[x86.Addr]bool{}
	}
	k.beside[at] = true
	return nil
}

// armBeside arms a probe at a place that the guest has.
func (k *Kprobes) armBeside(p *Kprobe) error {
	if !k.mayBeBeside(p.Addr, p.OnFtrace(), p.hasPost() || p.hasBreak()) {
		return &TakenError{Probe: k.name(p), Addr: p.Addr}
	}
	return k.putBeside(p.Addr)
}

// disarmBeside leaves a place to the guest, and to the function tracer where that has the site.
func (k *Kprobes) disarmBeside(p *Kprobe) {
	if _, traced := k.ftrace.functions.nops[p.Addr]; !traced {
		k.endBeside(p.Addr)
	}
}

// endBeside leaves a place to the guest.
func (k *Kprobes) endBeside(at x86.Addr) {
	if !k.beside[at] {
		return
	}
	delete(k.beside, at)
	if err := k.shared.HoldText(at, false); err != nil {
		k.fail(err)
	}
}

// guestChanged follows the guest, which has changed the text of a table entry.
func (k *Kprobes) guestChanged(p *Kprobe, span x86.Range) {
	if o := p.opt(); o != nil && o.patched {
		k.undoForGuest(p)
	}
	site := p.OnFtrace()
	var err error
	switch {
	case p.Disabled():
		k.giveBack(span)
	case !k.guestHas(p.Addr, site):
		err = k.armAgain(p)
	case !k.mayBeBeside(p.Addr, site, p.hasPost() || p.hasBreak()):
		k.takeOut(p, span)
	case !k.beside[p.Addr]:
		k.dropSite(p)
		err = k.putBeside(p.Addr)
	}
	if err != nil {
		k.fail(err)
	}
}

// dropSite takes a probe out of the function tracer's registration.
func (k *Kprobes) dropSite(p *Kprobe) {
	if p.ft != nil && p.ft.ops != nil {
		p.ft.ops.enabled--
		p.ft.ops = nil
	}
}

// armAgain writes a probe's own change again, because the guest has left the place.
func (k *Kprobes) armAgain(p *Kprobe) error {
	k.endBeside(p.Addr)
	k.dropSite(p)
	return k.arm(p)
}

// tracedSitesTaken does the same for sites of the function tracer at which no probe is.
func (k *Kprobes) tracedSitesTaken(at []x86.Addr) {
	for site := range k.ftrace.functions.nops {
		span := x86.Range{Start: site, End: site + ftraceSiteSize}
		if p := k.table.lookup(site); p != nil && k.span(p).End != site || !slices.ContainsFunc(at, span.Contains) {
			continue
		}
		var err error
		if k.guestHas(site, true) {
			err = k.putBeside(site)
		} else {
			k.endBeside(site)
			err = k.m.PokeText(site, callInsn(site, k.ftrace.plain.trampoline))
		}
		if err != nil {
			k.fail(err)
		}
	}
}

// siteBeside handles the int3 of a shared fentry site. What the tracer's trampoline calls runs here.
func (k *Kprobes) siteBeside(site x86.Addr, regs *x86.PtRegs) bool {
	past := uint64(site + ftraceSiteSize)
	regs.IP = past
	cpu, frame := k.arrive(), x86.Addr(regs.SP)
	was, err := k.readWord(cpu, frame)
	k.ftraceHandler(0, regs)
	if err == nil {
		k.returnLater(cpu, frame, x86.Addr(past), was)
	}
	if regs.IP != past {
		return true // a handler has sent the CPU elsewhere
	}
	return k.guestsInsn(site, regs)
}

// lateReturn is a call of a shared function by a task. Its return address is at frame, and is replaced once the guest's own
// tracing has seen it: at the address past the site.
type lateReturn struct {
	task        int
	frame, past x86.Addr
}

// returnLater gives a hijacked call its return address back until the guest's own tracing has run.
func (k *Kprobes) returnLater(cpu *cpuState, frame, past x86.Addr, was uint64) {
	now, err := k.readWord(cpu, frame)
	if err != nil || now == was || x86.Addr(now) != k.kret.trampoline || !k.shared.ShowExecuted(past) {
		return
	}
	task := k.task()
	// A call of this task further in the stack has ended without coming there: the guest has skipped the function.
	k.late = slices.DeleteFunc(k.late, func(l lateReturn) bool { return l.task == task && l.frame <= frame })
	if err := k.writeWord(cpu, frame, was); err != nil {
		k.fail(err)
	}
	k.late = append(k.late, lateReturn{task, frame, past})
}

// entered is called before an instruction past a shared site: the guest's tracing has run. It may have changed the
// return address, through which the oldest instance of the call returns then.
func (k *Kprobes) entered(regs *x86.PtRegs) {
	task := k.task()
	for n, l := range slices.Backward(k.late) {
		if l.task != task || l.past != x86.Addr(regs.IP) || x86.Addr(regs.SP) > l.frame {
			continue
		}
		k.late = slices.Delete(k.late, n, n+1)
		k.arrive()
		to, err := k.swapper.SwapWord(l.frame, uint64(k.kret.trampoline))
		if err != nil {
			k.fail(err)
		} else if i := k.oldestAt(task, l.frame); i != nil {
			i.through = x86.Addr(to)
		}
		return
	}
}

// stepBeside ends a hit of this subsystem's probe on a shared instruction.
func (k *Kprobes) stepBeside(cpu *cpuState, p *Kprobe, regs *x86.PtRegs, reenter bool) bool {
	if !reenter {
		cpu.current = nil
	}
	mine := k.guestsInsn(p.Addr, regs)
	k.event(cpu, EventResume, WayInt3, p, x86.Addr(regs.IP), regs)
	return mine
}

// guestsInsn does what the guest's own bytes at a shared place say. It returns false for an int3, which is the guest's.
func (k *Kprobes) guestsInsn(at x86.Addr, regs *x86.PtRegs) bool {
	var b [x86.Rel32Size]byte
	if err := k.shared.GuestText(at, b[:]); err != nil {
		k.fail(err)
	}
	next := uint64(at) + x86.Rel32Size
	target := next + uint64(int64(int32(binary.LittleEndian.Uint32(b[1:]))))
	switch b[0] {
	case int3:
		regs.IP = uint64(at) + 1
		return false
	case callOpcode:
		regs.SP -= 8
		if err := k.writeWord(k.arrive(), x86.Addr(regs.SP), next); err != nil {
			k.fail(err)
		}
		regs.IP = target
	case jmpOpcode:
		regs.IP = target
	default:
		regs.IP = next // the nop of a site
	}
	return true
}

// guestsInt3 reports whether a breakpoint is the guest's alone: the probe there is disabled, or waits to be removed.
func (k *Kprobes) guestsInt3(p *Kprobe) bool {
	if k.shared == nil || !p.Disabled() {
		return false
	}
	var b [1]byte
	return k.shared.GuestText(p.Addr, b[:]) == nil && b[0] == int3
}

// strayed sends a CPU back to an address at which it has met an int3 of this subsystem that is none any more: the guest's last change
// of the place has ended it meanwhile.
func (k *Kprobes) strayed(at x86.Addr, regs *x86.PtRegs) bool {
	var seen, executed [1]byte
	if k.shared == nil || k.shared.GuestText(at, seen[:]) != nil || seen[0] == int3 || k.m.ReadMem(at, executed[:]) != nil {
		return false
	}
	if executed[0] == int3 {
		k.giveBack(x86.Range{Start: at, End: at + 1})
	}
	regs.IP = uint64(at)
	return true
}

// recoverGuests puts back the bytes that the guest's own probes have overwritten, as far as the image has them: an int3,
// and a jump where no jump label nor static call is.
func (v *liveView) recoverGuests(addr x86.Addr, b []byte) {
	if v.k.shared == nil || bytes.IndexByte(b, int3) < 0 && bytes.IndexByte(b, jmpOpcode) < 0 {
		return
	}
	was := make([]byte, len(b))
	was = was[:v.View.CodeAt(addr, was)]
	for i := 0; i < len(was); i++ {
		switch {
		case b[i] == was[i]:
		case b[i] == int3:
			b[i] = was[i]
		case b[i] == jmpOpcode && !v.changesItself(addr+x86.Addr(i)):
			i += copy(b[i:], was[i:min(i+x86.Rel32Size, len(was))]) - 1
		}
	}
}

// changesItself reports whether the kernel writes jumps at an address for other reasons than probes.
func (v *liveView) changesItself(at x86.Addr) bool {
	for _, kind := range []kimage.SiteKind{kimage.SiteJumpLabel, kimage.SiteStaticCall} {
		if s, ok := v.SiteAt(kind, at); ok && s.Addr == at {
			return true
		}
	}
	return false
}
