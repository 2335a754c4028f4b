package explore

import (
	"errors"
	"fmt"

	"kprobelab/x86"
)

var errUnknown = errors.New("no instruction that is known here")

// step executes one instruction, and the trap that it raises.
func (t *task) step() {
	w, r := t.w, t.w.run
	at := x86.Addr(t.regs.IP)
	if out, ok := w.outs[at]; ok {
		t.callout(out)
		return
	}
	code := t.fetch(at)
	if r.verdict != "" {
		return
	}
	stepping := t.regs.Flags&x86.FlagTF != 0
	if code[0] == x86.Int3 {
		t.regs.IP++
		if w.k == nil {
			return // bare, with the breakpoint of somebody else
		}
		t.trap("trap", w.traps.Int3)
		return
	}
	in, n := decode(code)
	if in == nil {
		r.fail(WrongIP, "%s at %s: % x: %v", t.name, w.where(at), code[:min(8, len(code))], errUnknown)
		return
	}
	t.regs.IP += uint64(n)
	if !in.do(t, code[n-in.n:]) {
		r.fail(WrongIP, "%s at %s: an access to memory that is not there", t.name, w.where(at))
		return
	}
	if stepping {
		t.trap("single-step", w.traps.Debug)
	}
}

func (w *world) where(a x86.Addr) string {
	if a >= execBase && a.In(execBase, execBase.Add(execPages*pageSize)) {
		return fmt.Sprintf("slot+%#x", a.Sub(execBase))
	}
	return w.symbolic(a)
}

// trap is an exception, with interrupts off until it returns by an iret, after
// which the CPU sees all text.
func (t *task) trap(kind string, handle func(*x86.PtRegs) bool) {
	w, r := t.w, t.w.run
	at := x86.Addr(t.regs.IP)
	t.trapped++
	r.touch(varHandling+t.cpu, true)
	if kind != "trap" {
		defer w.debugs(t)()
	}
	r.stop(pending{kind: kind, at: at, reads: []int{varAnnounce}, writes: []int{varHandling + t.cpu}})
	if kind == "trap" {
		t.traps++
	}
	ok := handle(&t.regs)
	if kind == "trap" && x86.Addr(t.regs.IP) == at-1 && t.call.passes != nil {
		t.call.passes[at-1]-- // it comes by again
	}
	t.trapped--
	t.handled++
	r.touch(varHandling+t.cpu, true)
	w.serialize(t.cpu)
	if !ok && w.insns[int((at-1).Sub(textBase))] == "\xcc" {
		ok = true // it is for who is asked next
	}
	if !ok {
		r.fail(Unhandled, "%s: nothing handles the %s at %s", t.name, kind, w.where(at-1))
	}
	if err := w.k.Err(); err != nil {
		r.fail(Bug, "%v", err)
	}
}

// debugs notes a #DB whose handler runs. A kernel with OneDebugStack puts every frame at the top
// of one stack: a #DB inside the handler of another one overwrites its frame.
func (w *world) debugs(t *task) func() {
	c := &w.cpus[t.cpu]
	outer := c.debug
	c.debug = t
	return func() {
		c.debug = outer
		if outer != nil && w.c.Step.OneDebugStack {
			outer.regs = t.regs
		}
	}
}

// callout is a call of the subsystem by guest code: the callback of a detour
// buffer, with preemption off.
func (t *task) callout(out callout) {
	w, r := t.w, t.w.run
	r.stop(pending{kind: out.name, at: x86.Addr(t.regs.IP), reads: []int{varTable, varProbe}, writes: []int{varHandling + t.cpu}})
	at := x86.Addr(t.regs.DI)
	r.touch(varProbe, true)
	regs, b := w.frame(at)
	if regs == nil {
		r.fail(WrongIP, "%s: %s gets a frame at %s", t.name, out.name, at)
		return
	}
	was := *regs
	t.preempt++
	out.fn(at, regs)
	t.preempt--
	t.handled++
	r.touch(varHandling+t.cpu, true)
	putChanged(&was, regs, b)
	if !t.pop(&t.regs.IP) {
		r.fail(WrongIP, "%s: %s has no return address", t.name, out.name)
	}
}
