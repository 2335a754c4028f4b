package kprobes

import (
	"fmt"
	"slices"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// A booted kernel changes text itself: its own ftrace, kprobes and BPF do. It does not know of this
// subsystem, and reads its text without this subsystem's changes (SharedText). Where both have a place,
// this subsystem's probe is an int3 that the guest does not see. Its handlers run first, as those of an older probe of
// one kernel; then the CPU does what the guest's own bytes say: its breakpoint, its call of a tracer, its jump
// (beside.go). When the guest leaves, the probe is again what it was. A post handler would have to wait for the guest's
// own single step, so a probe with one is refused (EBUSY) at an instruction that the guest probes, and removed, with a call of OnTaken,
// if the guest comes later; at a fentry site it runs, because there is nothing to step. Inside the bytes that a jump
// overwrites both can have probes, like two probes of one kernel: then this subsystem's probe is an
// int3 as long as the guest has changed one of these bytes.

// SharedText holds the methods that a machine has beside Machine if its guest changes text, too.
type SharedText interface {
	// TextIsShared reports whether the guest may do so.
	TextIsShared() bool
	// OnTaken installs fn, which is called when the guest has overwritten bytes of PokeText.
	OnTaken(fn func(at []x86.Addr))
	// GuestText reads text as the guest has written it, without the host's changes.
	GuestText(addr x86.Addr, b []byte) error
	// HoldText writes an int3, which stays whatever the guest writes there, or gives the guest's byte back.
	HoldText(at x86.Addr, on bool) error
	// OnExecuted calls fn before an instruction that ShowExecuted has named. It returns false if there are too many.
	OnExecuted(fn func(regs *x86.PtRegs)) (end func())
	ShowExecuted(at x86.Addr) bool
}

// TakenError says that the guest has a place for itself. It wraps EBUSY.
type TakenError struct {
	// Probe names the place, as "symbol+0xoffset", at Addr.
	Probe string
	Addr  x86.Addr
	// Out: the probe was there, and was taken out; else it was not planted.
	Out bool
}

// Error is one line.
func (e *TakenError) Error() string {
	s := "the booted kernel's own ftrace, BPF or kprobes change the text there, and this probe cannot be beside them"
	if e.Out {
		return "probe " + e.Probe + " is taken out: " + s
	}
	return s
}

// Unwrap gives EBUSY.
func (e *TakenError) Unwrap() error { return errno.EBUSY }

// OnTaken sets a receiver for probes that are removed because the booted kernel has changed their
// place. p is gone: it can only be unregistered. Without a receiver, Err has the error.
func (k *Kprobes) OnTaken(fn func(p *Kprobe, err *TakenError)) { k.onTaken = fn }

// share learns whether the text is shared.
func (k *Kprobes) share() {
	s, ok := k.m.(SharedText)
	if !ok || !s.TextIsShared() {
		return
	}
	k.shared = s
	s.OnTaken(k.textTaken)
	s.OnExecuted(k.entered)
}

// guestIsThere refuses a place where the guest has changed the text for itself, unless the probe can be beside that.
func (k *Kprobes) guestIsThere(p *Kprobe, pt *probepoint.Point) error {
	if k.shared == nil || !k.guestHas(p.Addr, pt.Ftrace) || k.mayBeBeside(p.Addr, pt.Ftrace, p.PostHandler != nil || p.jprobe != nil) {
		return nil
	}
	r := probepoint.RefuseAs(errno.EBUSY, rule.Arm, p.Addr, pt.String())
	taken := &TakenError{Probe: pt.String(), Addr: p.Addr}
	r.Cause, r.Why = taken, taken.Error()
	return r
}

// guestHas reports whether the guest's code at a place differs from the code in the dump. A fentry
// site may have been in use when the dump was made.
func (k *Kprobes) guestHas(at x86.Addr, site bool) bool {
	var now, was [decoder.MaxInsnSize]byte
	if site {
		return k.shared.GuestText(at, now[:ftraceSiteSize]) == nil && slices.Contains(siteInUse, now[0])
	}
	n := k.view.View.CodeAt(at, was[:])
	if i, err := decoder.Decode(was[:n]); err == nil {
		n = i.Length
	}
	return n > 0 && k.shared.GuestText(at, now[:n]) == nil && now != zeroPast(was, n)
}

// zeroPast is b with zeros after its first n bytes.
func zeroPast(b [decoder.MaxInsnSize]byte, n int) [decoder.MaxInsnSize]byte {
	clear(b[n:])
	return b
}

// siteInUse are the first bytes of a fentry site that somebody uses: a call, the int3 of a
// change, the jump of a patched function.
var siteInUse = []byte{0xe8, int3, 0xe9}

// span returns the text that a table entry has changed; empty if it has changed none.
func (k *Kprobes) span(p *Kprobe) x86.Range {
	n := int64(0)
	switch o := p.opt(); {
	case p.Gone():
	case k.beside[p.Addr]:
		n = 1
	case p.OnFtrace():
		if p.ft != nil && p.ft.ops != nil {
			n = ftraceSiteSize
		}
	case o != nil && o.patched:
		n = jumpSize
	case k.armed(p):
		n = 1
	}
	return x86.Range{Start: p.Addr, End: p.Addr.Add(n)}
}

// textTaken brings the probes whose text the guest has overwritten beside the guest's own, or back.
// Nearby changes of other users are written again: the machine has dropped them, too.
func (k *Kprobes) textTaken(at []x86.Addr) {
	k.finishWorker()
	var nearby []*Kprobe
	k.table.each(func(p *Kprobe) {
		span := k.span(p)
		switch {
		case span.Start == span.End:
		case slices.Contains(at, span.Start), p.OnFtrace() && slices.ContainsFunc(at, span.Contains):
			k.guestChanged(p, span)
		case slices.ContainsFunc(at, span.Contains):
			k.undoForGuest(p)
		default:
			nearby = append(nearby, p)
		}
	})
	k.tracedSitesTaken(at)
	for _, p := range nearby {
		if slices.ContainsFunc(at, func(a x86.Addr) bool { return a.In(p.Addr-2*jumpSize, p.Addr+2*jumpSize) }) {
			k.writeAgain(p)
		}
	}
}

// writeAgain writes a table entry's bytes to the text again.
func (k *Kprobes) writeAgain(p *Kprobe) {
	b := []byte{int3}
	switch o := p.opt(); {
	case k.beside[p.Addr]:
	case p.OnFtrace():
		b = callInsn(p.Addr, p.ft.ops.trampoline)
	case o != nil && o.patched:
		b = o.d.Jump[:]
	}
	if err := k.m.PokeText(p.Addr, b); err != nil {
		k.fail(err)
	}
}

// takeOut makes the probes of a table entry gone: the guest's text is there from now on.
func (k *Kprobes) takeOut(p *Kprobe, span x86.Range) {
	k.endBeside(p.Addr)
	k.giveBack(span)
	if p.ft != nil && p.ft.ops != nil {
		p.ft.ops.enabled--
		p.ft.ops = nil
	}
	p.taken = true
	members := k.members(p)
	k.kill(p)
	for _, m := range members {
		k.tellTaken(m, m.Addr)
	}
}

// giveBack makes the CPUs execute the guest's own text in a range.
func (k *Kprobes) giveBack(r x86.Range) {
	b := make([]byte, r.End.Sub(r.Start))
	err := k.shared.GuestText(r.Start, b)
	if err == nil {
		err = k.m.PokeText(r.Start, b)
	}
	if err != nil {
		k.fail(err)
	}
}

func (k *Kprobes) tellTaken(p *Kprobe, at x86.Addr) {
	err := &TakenError{Probe: k.symbolic(at), Addr: at, Out: true}
	if k.onTaken != nil {
		k.onTaken(p, err)
		return
	}
	k.fail(fmt.Errorf("%w (EBUSY)", err))
}

// undoForGuest takes a jump back, of which the guest has changed other bytes than the first:
// the kernel does so when a probe is planted in it (__arm_kprobe).
func (k *Kprobes) undoForGuest(p *Kprobe) {
	k.unoptimize(p, true)
	k.hold(p)
}

// under is the byte that a probe's int3 stands for: the saved opcode, or what the guest has there by now.
func (k *Kprobes) under(p *Kprobe) byte {
	b := [1]byte{p.opcode}
	if k.shared != nil {
		if err := k.shared.GuestText(p.Addr, b[:]); err != nil {
			k.fail(err)
		}
	}
	return b[0]
}

// foreign reports whether the guest has changed the bytes that a jump is about to hide.
func (k *Kprobes) foreign(o *optimized) bool {
	var now [jumpTail]byte
	return k.shared != nil && (k.shared.GuestText(o.entry.Addr+1, now[:]) != nil || now != o.d.Saved)
}

// hold remembers a probe that cannot become a jump because the guest has one in its bytes.
func (k *Kprobes) hold(p *Kprobe) {
	if !slices.Contains(k.held, p) {
		k.held = append(k.held, p)
	}
}

// askHeld queues the probes whose bytes the guest has restored, as the kernel does when the probe
// in them is disarmed (__disarm_kprobe).
func (k *Kprobes) askHeld() {
	asked := k.held
	k.held = asked[:0]
	for _, p := range asked {
		if k.table.lookup(p.Addr) == p && p.opt().ready() {
			k.optimize(p) // which holds it again where the guest is still there
		}
	}
}
