package optimizer

import (
	"slices"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Decision is a Verdict's outcome without its reasons.
type Decision struct {
	// OK: the probe can be optimized.
	OK bool
	// Size is the length of the DCR in bytes (optinsn.size) where OK.
	Size int
	// Reason is the rule at which the kernel stops, and Addr the instruction,
	// site or address that it is about; rule.None where OK.
	Reason rule.ID
	Addr   x86.Addr
}

// Errno is as Verdict.Errno.
func (d Decision) Errno() errno.Errno { return d.Reason.Errno() }

// question applies the kernel's rules to one address, in the kernel's order. Each step returns
// false if the rules end there.
type question struct {
	*Scanner
	at x86.Addr
	d  Decision
	// v, when not nil, gets every reason; else the way ends at the first.
	v *Verdict
}

// ask applies every rule, in order.
func (q *question) ask() {
	_ = q.attempt() && q.inSymbol() && q.buffer()
	if q.d.OK = q.d.Reason == rule.None; !q.d.OK {
		q.d.Size = 0
	}
}

// refuse records a rule that refuses, and reports whether the other rules are checked too.
func (q *question) refuse(id rule.ID, at x86.Addr) bool {
	if q.d.Reason == rule.None {
		q.d.Reason, q.d.Addr = id, at
	}
	if q.v == nil {
		return false
	}
	q.v.Reasons = append(q.v.Reasons, Reason{ID: id, Addr: at, in: q.v.Symbol})
	return true
}

// reason returns the reason that was recorded last, so that its details can be filled in.
func (q *question) reason() *Reason { return &q.v.Reasons[len(q.v.Reasons)-1] }

// attempt checks whether the kernel tries to optimize at all.
func (q *question) attempt() bool {
	if !q.c.Optprobes() && !q.refuse(rule.NoOptprobes, q.at) {
		return false
	}
	return !ftraceBased(q.view, q.at, q.c) || q.refuse(rule.FtraceBased, q.at)
}

// ftraceBased: a probe there is called by the function tracer.
func ftraceBased(v kimage.View, at x86.Addr, c *profile.Config) bool {
	if !c.KprobesOnFtrace || !c.Check.FtraceSites {
		return false
	}
	s, ok := v.SiteAt(kimage.SiteFtrace, at)
	return ok && s.Addr == at
}

// inSymbol is can_optimize: the address in its symbol, and then the function.
func (q *question) inSymbol() bool {
	if !q.fn.enter(q.view, q.at) {
		return q.refuse(rule.OptNoSymbol, q.at)
	}
	sym := q.fn.sym
	off := uint64(q.at.Sub(sym.Addr))
	if q.v != nil {
		q.v.Symbol, q.v.Offset = sym, off
	}
	if q.view.InEntryText(q.at) && !q.refuse(rule.EntryText, q.at) {
		return false
	}
	// The jump would reach into the next symbol.
	if sym.Size-off < x86.Rel32Size && !q.refuse(rule.TooShort, q.at) {
		return false
	}
	return q.function()
}

// function checks the rules about the instructions of the function, from its start on.
func (q *question) function() bool {
	q.walk(q.v != nil)
	jtpr := JTPR(q.at)
	q.found = q.fn.jumps.appendInto(q.found[:0], jtpr)
	if len(q.found) > 0 {
		q.found = append(q.found, q.fn.forbidding...)
		slices.Sort(q.found)
		q.found = slices.Compact(q.found)
		return q.instructions(q.found, jtpr)
	}
	return q.instructions(q.fn.forbidding, jtpr)
}

// instructions refuses for each forbidding instruction, by each of its rules.
func (q *question) instructions(list []int32, jtpr x86.Range) bool {
	for _, n := range list {
		i := &q.fn.insns[n]
		found := i.forbids
		if i.jump && jtpr.Contains(i.target) {
			found.add(rule.JTPRTarget)
		}
		for id := range found.all() {
			if !q.refuse(id, i.at) {
				return false
			}
			r := q.reason()
			r.Insn = q.insnAt(i.at, int(i.length), 1)
			if id == rule.ThunkJump || id == rule.JTPRTarget {
				r.Target = i.target
				r.BeyondDoc = id == rule.JTPRTarget && i.target == jtpr.End-1
			}
		}
	}
	return true
}

// insnAt is an instruction for a Verdict. One that cannot be decoded gets as
// many bytes as unknown says, for the eye.
func (q *question) insnAt(at x86.Addr, length, unknown int) Insn {
	if length == 0 {
		length = unknown
	}
	i := Insn{Addr: at}
	i.Len = q.view.CodeAt(at, i.Code[:length])
	return i
}

// buffer checks the detour buffer: its distance, each instruction of the DCR, and whether other
// code patches bytes of the DCR.
func (q *question) buffer() bool {
	if tooFar(q.at, q.buf) {
		if !q.refuse(rule.Distance, q.at) {
			return false
		}
		q.reason().Target = q.buf
	}
	return q.region() && q.unreserved()
}

// region checks the rules about each instruction of the DCR.
func (q *question) region() bool {
	n, walked := q.fn.index(q.at)
	for q.d.Size < x86.Rel32Size {
		at := q.at.Add(int64(q.d.Size))
		var i *insn
		if walked = walked && n < len(q.fn.insns); walked {
			i = &q.fn.insns[n]
			n++
		} else {
			off := q.insnOf(q.walker.At(at)) // no instruction of the function begins at the probe
			i = &off
		}
		id := i.refuses(q.buf.Add(int64(q.template + q.d.Size)))
		if id != rule.None && !q.refuse(id, at) {
			return false
		}
		if q.v != nil {
			q.copied(id, q.insnAt(at, int(i.length), 0))
		}
		if i.length == 0 {
			break
		}
		q.d.Size += int(i.length)
	}
	return true
}

// copied notes an instruction of the DCR.
func (q *question) copied(refused rule.ID, i Insn) {
	if refused != rule.None {
		q.reason().Insn = i
	}
	if i.Len > 0 {
		q.v.Copied = append(q.v.Copied, i)
	}
}

// unreserved checks whether other code patches bytes of the region.
func (q *question) unreserved() bool {
	dcr := x86.Range{Start: q.at, End: q.at.Add(int64(q.d.Size))}
	if q.v != nil {
		q.v.DCR = dcr
	}
	for i := range reservations {
		if s, ok := reservations[i].hit(q.view, dcr, q.c); ok && !q.refuse(reservations[i].id, s.Addr) {
			return false
		}
	}
	return true
}

// refuses returns the rule that prevents a copy of the instruction from running at final, in the
// order in which copying checks.
func (i *insn) refuses(final x86.Addr) rule.ID {
	switch {
	case i.copyRule != rule.None:
		return i.copyRule
	case i.ripRelative && !slot.Reaches(i.at, final, i.disp):
		return rule.CopyDisplacement
	case !i.boostable:
		return rule.NotBoostable
	}
	return rule.None
}
