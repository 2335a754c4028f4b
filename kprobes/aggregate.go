package kprobes

import (
	"slices"

	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// aggregate holds the fields that an aggregator adds to its Kprobe. The aggregator stands in the
// table for several probes at one address (docs/spec 1.6).
type aggregate struct {
	// members are the probes, newest first. The list is replaced, never
	// changed in place, so a handler may register and unregister.
	members []*Kprobe
	// post is true if the post walker is installed.
	post bool
	// brk is true if a member is a jprobe. At most one member is.
	brk bool
	// opt is the optimizer's part; nil if the instructions here cannot be optimized.
	opt *optimized
}

func (a *aggregate) index(p *Kprobe) int { return slices.Index(a.members, p) }

// allDisabled is aggr_kprobe_disabled.
func (a *aggregate) allDisabled() bool {
	for _, m := range a.members {
		if !m.Disabled() {
			return false
		}
	}
	return true
}

// members returns the probes of a table entry, newest first.
func (k *Kprobes) members(entry *Kprobe) []*Kprobe {
	if entry.aggregate != nil {
		return entry.aggregate.members
	}
	return []*Kprobe{entry}
}

// registerAggregate adds a probe where one is already
// (register_aggr_kprobe).
func (k *Kprobes) registerAggregate(old, p *Kprobe, pt *probepoint.Point) error {
	entry := old
	if old.aggregate == nil {
		entry = k.makeAggregator(old)
		k.prepareOptimized(entry)
	} else if unused(entry) {
		if err := k.reuse(entry); err != nil {
			return err
		}
	}
	if entry.Gone() {
		if err := k.revive(entry, pt); err != nil {
			return err
		}
	}
	p.ool, p.opcode, p.aggregate = entry.ool, entry.opcode, nil
	if err := k.join(entry, p); err != nil {
		p.ool = nil
		return err
	}
	if !entry.Disabled() || p.Disabled() {
		return nil
	}
	k.point(PointFlags, entry)
	entry.Flags &^= FlagDisabled
	if k.disarmed {
		return nil
	}
	if err := k.arm(entry); err != nil {
		entry.Flags |= FlagDisabled
		k.leave(entry, p)
		p.ool = nil
		return k.armRefused(p, err)
	}
	return nil
}

// makeAggregator puts an aggregator in the place of a probe, which becomes
// its first member (alloc_aggr_kprobe, init_aggr_kprobe).
func (k *Kprobes) makeAggregator(old *Kprobe) *Kprobe {
	entry := &Kprobe{
		Addr:   old.Addr,
		Flags:  old.Flags &^ FlagOptimized,
		ool:    old.ool,
		ft:     old.ft,
		opcode: old.opcode,
		aggregate: &aggregate{
			members: []*Kprobe{old},
			post:    old.PostHandler != nil && !old.Gone(),
			brk:     old.jprobe != nil && !old.Gone(),
		},
	}
	old.entry = entry
	k.point(PointTable, entry)
	k.table.replace(old, entry)
	return entry
}

// revive prepares an aggregate whose code has gone for new code at its address.
// It stays disabled until a member needs it.
func (k *Kprobes) revive(entry *Kprobe, pt *probepoint.Point) error {
	if err := k.prepare(entry, pt); err != nil {
		return err
	}
	k.prepareOptimized(entry)
	entry.Flags = entry.Flags&^FlagGone | FlagDisabled
	return nil
}

// reuse takes back an aggregator that waits to be removed
// (reuse_unused_kprobe). It is enabled again, and its jump stays where it can.
func (k *Kprobes) reuse(entry *Kprobe) error {
	k.point(PointFlags, entry)
	entry.Flags &^= FlagDisabled
	if !entry.opt().ready() {
		return probepoint.Refuse(rule.Gone, entry.Addr, k.name(entry))
	}
	k.optimize(entry)
	return nil
}

// join puts a member at the head of the list (add_new_kprobe). A jprobe goes to
// the tail, because the walk ends with it. A second jprobe is refused.
func (k *Kprobes) join(entry, p *Kprobe) error {
	a := entry.aggregate
	if p.jprobe != nil && a.brk {
		return probepoint.Refuse(rule.SecondJprobe, p.Addr, k.name(p))
	}
	if p.PostHandler != nil || p.jprobe != nil {
		k.unoptimize(entry, true)
	}
	k.point(PointMembers, entry)
	switch {
	case p.jprobe == nil:
		a.members = append([]*Kprobe{p}, a.members...)
	default:
		a.members = append(slices.Clone(a.members), p)
		a.brk = true
	}
	p.entry = entry
	if p.PostHandler != nil {
		a.post = true
		k.dropAnswers()
	}
	return nil
}

// leave removes a member. The post walker is removed with the last member that needs it, but an
// ftrace-based aggregate keeps it.
func (k *Kprobes) leave(entry, p *Kprobe) {
	a := entry.aggregate
	k.point(PointMembers, entry)
	i := a.index(p)
	a.members = slices.Concat(a.members[:i], a.members[i+1:])
	p.entry = nil
	if p.jprobe != nil && !p.Gone() {
		a.brk = false
	}
	if p.PostHandler == nil || p.Gone() || entry.OnFtrace() && !k.c.Ftrace.PostCleared {
		return
	}
	if !slices.ContainsFunc(a.members, func(m *Kprobe) bool { return m.PostHandler != nil }) {
		a.post = false
	}
}

// aggrPre calls the members' pre handlers, newest first, until one returns
// non-zero (aggr_pre_handler). That leaves cpu.instance set, as in the kernel.
func (k *Kprobes) aggrPre(cpu *cpuState, entry *Kprobe, regs *x86.PtRegs) int {
	for _, m := range entry.aggregate.members {
		if m.PreHandler == nil || m.Disabled() {
			continue
		}
		cpu.instance = m
		if k.callPre(cpu, m, regs) != 0 {
			return 1
		}
		cpu.instance = nil
	}
	return 0
}

// aggrPost calls the post handlers of all members that are enabled
// (aggr_post_handler).
func (k *Kprobes) aggrPost(cpu *cpuState, entry *Kprobe, regs *x86.PtRegs) {
	for _, m := range entry.aggregate.members {
		if m.PostHandler == nil || m.Disabled() {
			continue
		}
		cpu.instance = m
		k.callPost(cpu, m, regs)
		cpu.instance = nil
	}
}
