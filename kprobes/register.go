package kprobes

import (
	"errors"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/textpoke"
	"kprobelab/x86"
)

// int3 is the breakpoint instruction.
const int3 = x86.Int3

// RegisterKprobe plants a probe (register_kprobe, docs/spec 1.3). It resolves the place, makes the
// kernel's checks in the kernel's order, and arms the probe unless it has FlagDisabled. A refusal
// is a *probepoint.Refusal that wraps the kernel's errno: ENOENT for an unknown symbol, EILSEQ
// inside an instruction, EINVAL where probing is not allowed, EOPNOTSUPP and ENOSPC for an
// instruction that cannot be executed out of line.
func (k *Kprobes) RegisterKprobe(p *Kprobe) error {
	if err := k.closed(); err != nil {
		return err
	}
	if p == nil {
		return probepoint.Refuse(rule.NoPlace, 0, "")
	}
	pt, err := k.resolve(p)
	if err != nil {
		return err
	}
	k.change()
	p.Addr = pt.Addr
	if k.registered(p) {
		k.warnReregistered("register_kprobe", &k.warned, &pt)
		return probepoint.Refuse(rule.Reregistered, p.Addr, pt.String())
	}
	p.Flags &= FlagDisabled
	if k.c.Resolve.EntryFlagEarly {
		k.markEntry(p, &pt)
	}
	p.Nmissed = 0
	err = k.check(p, &pt)
	if err == nil || errors.Is(err, errno.EILSEQ) { // an int3 of the guest's is no instruction of its text
		if there := k.guestIsThere(p, &pt); there != nil {
			return there
		}
	}
	if err != nil {
		return err
	}
	k.markEntry(p, &pt)
	if err := k.guestHandlers(p); err != nil {
		return err
	}
	if old := k.table.lookup(p.Addr); old != nil {
		err = k.registerAggregate(old, p, &pt)
	} else {
		err = k.registerFirst(p, &pt)
	}
	if err == nil && k.onRegister != nil {
		k.onRegister(p)
	}
	return err
}

// OnRegister calls fn at the end of each registration that succeeds, until it is
// called with nil. A return probe's entry, Kretprobe.KP, is one.
func (k *Kprobes) OnRegister(fn func(*Kprobe)) { k.onRegister = fn }

// change is called before probes are registered, unregistered, enabled or disabled.
func (k *Kprobes) change() { k.finishWorker() }

// warnReregistered is the kernel's WARN_ON_ONCE, of which each of the two
// functions has a copy.
func (k *Kprobes) warnReregistered(function string, warned *bool, pt *probepoint.Point) {
	if k.c.Check.ReregistrationWarns && !*warned {
		*warned = true
		k.printk("WARNING: " + function + ": " + pt.String() + " is already registered")
	}
}

func (k *Kprobes) resolve(p *Kprobe) (probepoint.Point, error) {
	return probepoint.Resolve(k.view, requestOf(p), k.c)
}

func requestOf(p *Kprobe) probepoint.Request {
	return probepoint.Request{Symbol: p.SymbolName, Addr: p.Addr, Offset: p.Offset}
}

// check makes the checks of the address, and sets the flags that they find.
func (k *Kprobes) check(p *Kprobe, pt *probepoint.Point) error {
	if m := k.mods.named(pt.Symbol.Module); m != nil {
		if m.state == probepoint.ModuleUnformed {
			return probepoint.Refuse(rule.NotText, p.Addr, pt.String())
		}
		if k.c.Check.ModuleAskedTwice {
			k.point(PointModule, p) // the second lookup may find no module: then the address is the kernel's own
		}
	}
	err := probepoint.Check(k.view, pt, k.c)
	if pt.Ftrace {
		p.Flags |= FlagFtrace // set early in the kernel: a later refusal leaves it
	}
	return err
}

func (k *Kprobes) markEntry(p *Kprobe, pt *probepoint.Point) {
	if pt.Entry && k.c.Resolve.EntryFlag {
		p.Flags |= FlagOnFuncEntry
	}
}

// registered reports whether this very object is at its address.
func (k *Kprobes) registered(p *Kprobe) bool {
	return k.entryOf(p) != nil
}

// entryOf is __get_valid_kprobe: the table entry at p's address if that is p
// or an aggregate that p is a member of, else nil.
func (k *Kprobes) entryOf(p *Kprobe) *Kprobe {
	e := k.table.lookup(p.Addr)
	if e == nil || e == p || e.aggregate != nil && e.aggregate.index(p) >= 0 {
		return e
	}
	return nil
}

// registerFirst plants a probe at an address without one.
func (k *Kprobes) registerFirst(p *Kprobe, pt *probepoint.Point) error {
	if err := k.prepare(p, pt); err != nil {
		return err
	}
	p.aggregate = nil
	k.point(PointTable, p)
	k.table.insert(p)
	if k.armed(p) {
		if err := k.arm(p); err != nil {
			k.table.remove(p)
			k.grace()
			k.freeSlot(p)
			if k.c.FtraceArmForgiven && pt.Ftrace {
				return nil // and the caller has a probe that is not in the table
			}
			return k.armRefused(p, err)
		}
	}
	k.tryToOptimize(p)
	return nil
}

func (k *Kprobes) armRefused(p *Kprobe, cause error) error {
	r := probepoint.RefuseAs(errno.Of(cause), rule.Arm, p.Addr, k.name(p))
	r.Cause = cause
	return r
}

// prepare saves the opcode and fills a slot (arch_prepare_kprobe). A probe on
// an ftrace site has no slot.
func (k *Kprobes) prepare(p *Kprobe, pt *probepoint.Point) error {
	p.ool, p.ft, p.opcode, p.taken = nil, nil, 0, false
	if pt.Ftrace {
		return k.readSite(p, pt)
	}
	page, i, err := k.slots.get()
	if err != nil {
		r := probepoint.Refuse(rule.NoMemory, p.Addr, pt.String())
		r.Cause = err
		return r
	}
	s, err := probepoint.BuildSlot(k.view, pt, page.slotAddr(i), p.PostHandler != nil, k.c)
	if err == nil {
		err = k.m.PokeText(s.Addr, s.Bytes[:s.Len])
	}
	if err != nil {
		k.slots.put(page, i, false)
		k.tellDisplacement(err)
		return err
	}
	p.ool = &outOfLine{Slot: s, page: page, index: i}
	p.opcode = s.Opcode
	return nil
}

// readSite saves the nop of an ftrace site. It reads memory: the view shows the
// canonical nop, and the CPU's may be another one.
func (k *Kprobes) readSite(p *Kprobe, pt *probepoint.Point) error {
	p.ft = &ftraceSite{}
	if nop, ok := k.ftrace.functions.nops[p.Addr]; ok {
		p.ft.nop = nop // the tracer's call is there now
		return nil
	}
	if k.m.ReadMem(p.Addr, p.ft.nop[:]) != nil {
		return probepoint.RefuseAs(errno.EFAULT, rule.Unreadable, p.Addr, pt.String())
	}
	return nil
}

// freeSlot gives the slot of a probe back. A boosted one stays dirty: a task
// may be in it and leave without a trap.
func (k *Kprobes) freeSlot(p *Kprobe) {
	if p.ool != nil {
		k.freeing(p)
		k.slots.put(p.ool.page, p.ool.index, p.ool.Boosted)
		p.ool = nil
	}
}

// freeing reports to the Stepper that the slot of a probe will be freed.
func (k *Kprobes) freeing(p *Kprobe) {
	if k.stepper == nil {
		return
	}
	free := Point{Kind: PointFree, Probe: p}
	if !p.ool.Boosted {
		free.Addr = p.ool.Addr
	}
	k.stepper.Point(free)
}

// arm writes the int3, or has the function tracer call (__arm_kprobe). A jump
// that runs over the address is taken back first; the int3 may itself be
// replaced by a jump later.
func (k *Kprobes) arm(p *Kprobe) error {
	if p.OnFtrace() {
		return k.armFtrace(p)
	}
	if outer := k.covering(p.Addr); outer != nil {
		k.unoptimize(outer, true)
	}
	if k.shared != nil && k.guestHas(p.Addr, false) {
		return k.armBeside(p)
	}
	if err := k.pokeByte(textpoke.Arm, p.Addr, int3); err != nil {
		return err
	}
	k.optimize(p)
	return nil
}

// disarm writes the opcode back, or the nop of the site (__disarm_kprobe). For an optimized probe
// the worker does it. The kernel then tries to optimize the probe that this one had prevented. This
// one does not count as disabled yet, so that fails (measured, docs/spec 14.4).
func (k *Kprobes) disarm(p *Kprobe) error {
	if k.beside[p.Addr] {
		k.disarmBeside(p)
		return nil
	}
	if p.OnFtrace() {
		return k.disarmFtrace(p)
	}
	k.unoptimize(p, k.disarmed)
	if p.opt().queued() {
		return nil
	}
	if err := k.pokeByte(textpoke.Disarm, p.Addr, k.under(p)); err != nil {
		return err
	}
	if outer := k.covering(p.Addr); outer != nil {
		k.optimize(outer)
	}
	return nil
}

// RegisterKprobes registers in order; at the first refusal it unregisters the ones before and
// returns that error. An empty list is EINVAL.
func (k *Kprobes) RegisterKprobes(ps []*Kprobe) error {
	if len(ps) == 0 {
		return probepoint.Refuse(rule.Batch, 0, "")
	}
	for i, p := range ps {
		if err := k.RegisterKprobe(p); err != nil {
			k.UnregisterKprobes(ps[:i])
			return err
		}
	}
	return nil
}

// symbolic names a place as probepoint does.
func symbolic(name string, off uint64) string {
	if off == 0 {
		return name
	}
	return name + "+" + x86.Addr(off).String()
}
