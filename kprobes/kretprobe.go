package kprobes

import (
	"kprobelab/internal/bounded"
	"kprobelab/kprobes/pool"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// ReturnHandler runs at a probed function's entry or return. On return regs is the caller's frame:
// IP is the return address (the trampoline's address to 5.17) and AX the return value; the
// handler's changes of general registers and flags take effect. An entry handler returns 0 to track
// this call; the result of a return handler is ignored.
type ReturnHandler func(i *Instance, regs *x86.PtRegs) int

// Kretprobe is struct kretprobe: it probes a function's entry and return.
type Kretprobe struct {
	// KP is the place of the probe, with its flags. Its handlers belong to the return probe:
	// registration sets PreHandler and clears the others.
	KP Kprobe
	// Handler runs when the function returns; nil if there is none.
	Handler ReturnHandler
	// EntryHandler runs when the function is entered; nil if there is none.
	EntryHandler ReturnHandler
	// HandlerCode and EntryCode are the addresses of handlers in guest code, 0
	// for none: int handler(struct kretprobe_instance *ri, struct pt_regs
	// *regs). Registration sets Handler and EntryHandler to functions that call
	// them. ri begins with the return address; the instance's data is
	// InstanceData bytes after ri, not in Instance.Data.
	HandlerCode, EntryCode x86.Addr
	// MaxActive is the number of calls that can be tracked at a time. If it is 0 or less,
	// registration stores the kernel's default here.
	MaxActive int
	// DataSize is the size in bytes of each instance's Data; the kernel's
	// limit is 4096.
	DataSize int
	// Nmissed counts calls that were not tracked for want of an instance.
	// KP.Nmissed counts hits of the entry while another probe was handled.
	Nmissed uint64

	pool *instancePool
	// account is FollowPools's, nil without.
	account *pool.Account[int]
}

// kretState is the state that all return probes share.
type kretState struct {
	// trampoline is the address of the return trampoline, callout the address that it calls. Both
	// are 0 until the first return probe is registered.
	trampoline, callout x86.Addr
	// pending are the tasks' lists of instances, by task number, newest
	// first (task_struct.rethooks, kretprobe_instances).
	pending []*Instance
	// misplaced remembers the one-time warning about a frame mismatch.
	misplaced bool
	// warned remembers the one-time warning about a second registration.
	warned bool
}

// RegisterKretprobe plants a return probe (register_kretprobe, docs/spec 5.2). It makes the
// refusals of RegisterKprobe. It also refuses, with EINVAL, a place that is not a function's entry
// or where return probes are forbidden (__switch_to), with E2BIG too large a DataSize, with ENOMEM
// too large a pool.
func (k *Kprobes) RegisterKretprobe(rp *Kretprobe) error {
	if err := k.closed(); err != nil {
		return err
	}
	if rp == nil {
		return probepoint.Refuse(rule.NoPlace, 0, "")
	}
	if err := k.checkKretprobe(rp); err != nil {
		return err
	}
	if err := k.placeTrampoline(); err != nil {
		return err
	}
	kp := &rp.KP
	kp.PreHandler, kp.PostHandler, kp.FaultHandler = kretprobePre, nil, nil
	kp.kret, kp.jprobe = rp, nil
	if rp.MaxActive <= 0 {
		rp.MaxActive = k.c.MaxActive(k.m.NumCPU())
	}
	if rp.MaxActive > bounded.ReturnInstances || rp.DataSize < 0 || rp.DataSize > bounded.ReturnData/rp.MaxActive {
		return probepoint.Refuse(rule.NoMemory, kp.Addr, kp.SymbolName)
	}
	old, record := rp.pool, rp.KP.Record
	if err := k.guestReturns(rp); err != nil {
		return err
	}
	rp.pool = newInstancePool(rp)
	rp.Nmissed = 0
	k.account(rp)
	if old != nil && k.c.Kret.LateReregistration {
		old.freed = true // nothing refers to it any more
	}
	err := k.placeInstances(rp)
	if err == nil {
		err = k.RegisterKprobe(kp)
	}
	if err != nil {
		k.freeInstances(rp.pool)
		if rp.pool.freed = k.c.Kret.LateReregistration; !rp.pool.freed {
			rp.pool, rp.KP.Record = old, record // of a registration that this call did not make
		}
		return err
	}
	if rp.account != nil {
		rp.account.Probe = k.name(kp)
	}
	return nil
}

// checkKretprobe makes the checks that a return probe has beside its
// kprobe's (steps 1 to 4 of docs/spec 5.2).
func (k *Kprobes) checkKretprobe(rp *Kretprobe) error {
	kp := &rp.KP
	pt, err := probepoint.ResolveReturn(k.view, requestOf(kp), k.c)
	refuse := func(id rule.ID) error { return probepoint.Refuse(id, pt.Addr, pt.String()) }
	switch {
	case err != nil:
		return err
	case kp.SymbolName == "" && k.registered(kp) && !k.c.Kret.LateReregistration:
		k.warnReregistered("register_kretprobe", &k.kret.warned, &pt)
		return refuse(rule.Reregistered)
	case k.c.Kret.MaxDataSize != 0 && rp.DataSize > k.c.Kret.MaxDataSize:
		return refuse(rule.DataSize)
	}
	return nil
}

// UnregisterKretprobe removes a return probe. Calls that it tracks return to
// their callers without its handler.
func (k *Kprobes) UnregisterKretprobe(rp *Kretprobe) {
	if rp != nil {
		k.UnregisterKretprobes([]*Kretprobe{rp})
	}
}

// UnregisterKretprobes removes several. Nil elements and an empty list do
// nothing.
func (k *Kprobes) UnregisterKretprobes(rps []*Kretprobe) {
	kps := make([]*Kprobe, 0, len(rps))
	var pools []*instancePool
	for _, rp := range rps {
		if rp == nil {
			continue
		}
		kps = append(kps, &rp.KP)
		if rp.pool != nil && k.registered(&rp.KP) {
			pools = append(pools, rp.pool)
			rp.pool.owner = nil
			rp.pool = nil
		}
	}
	k.UnregisterKprobes(kps)
	for _, p := range pools {
		k.freeInstances(p)
	}
}

// RegisterKretprobes registers in order; at the first refusal it unregisters the ones before and
// returns that error. An empty list is EINVAL.
func (k *Kprobes) RegisterKretprobes(rps []*Kretprobe) error {
	if len(rps) == 0 {
		return probepoint.Refuse(rule.Batch, 0, "")
	}
	for i, rp := range rps {
		if err := k.RegisterKretprobe(rp); err != nil {
			k.UnregisterKretprobes(rps[:i])
			return err
		}
	}
	return nil
}

// DisableKretprobe stops a return probe from tracking new calls. Those it
// tracks already run its handler. Errors as in DisableKprobe.
func (k *Kprobes) DisableKretprobe(rp *Kretprobe) error {
	if rp == nil {
		return k.DisableKprobe(nil)
	}
	return k.DisableKprobe(&rp.KP)
}

// EnableKretprobe lets a disabled return probe track calls again. Errors as
// in EnableKprobe.
func (k *Kprobes) EnableKretprobe(rp *Kretprobe) error {
	if rp == nil {
		return k.EnableKprobe(nil)
	}
	return k.EnableKprobe(&rp.KP)
}

// preKretprobe is pre_handler_kretprobe: it takes an instance, and puts the
// trampoline in the place of the return address (docs/spec 5.3).
func (k *Kprobes) preKretprobe(cpu *cpuState, rp *Kretprobe, regs *x86.PtRegs) int {
	p := &rp.KP
	if cpu.way == WayInt3 && k.c.Step.Int3IsNMI && k.c.Kret.MissedInNMI {
		rp.Nmissed++
		k.event(cpu, EventInNMI, cpu.way, p, p.Addr, regs)
		return 0
	}
	i := k.take(rp.pool)
	if i == nil {
		rp.Nmissed++
		k.event(cpu, EventNoInstance, cpu.way, p, p.Addr, regs)
		k.lacks(cpu, rp, regs)
		return 0
	}
	i.Task = k.task()
	k.holds(rp, i, regs)
	if rp.EntryHandler != nil && k.c.Kret.EntryHandler && k.callEntry(cpu, rp, i, regs) != 0 {
		k.recycle(i)
		return 0
	}
	if err := k.hijack(i, regs); err != nil {
		k.recycle(i)
		k.fail(&EmulationFault{Probe: k.name(p), Addr: p.Addr, Err: err})
		return 0
	}
	k.event(cpu, EventInstance, cpu.way, p, i.frame, regs)
	return 0
}

// kretprobePre is the placeholder in a return probe's PreHandler: callPre recognizes such a probe,
// and calls preKretprobe.
func kretprobePre(*Kprobe, *x86.PtRegs) int { return 0 }

// hijack is arch_prepare_kretprobe, arch_rethook_prepare.
func (k *Kprobes) hijack(i *Instance, regs *x86.PtRegs) error {
	i.frame = x86.Addr(regs.SP)
	ret, err := k.swapper.SwapWord(i.frame, uint64(k.kret.trampoline))
	if err != nil {
		return err
	}
	i.RetAddr, i.through = x86.Addr(ret), 0
	k.push(i)
	return nil
}

// callEntry calls the entry handler.
func (k *Kprobes) callEntry(cpu *cpuState, rp *Kretprobe, i *Instance, regs *x86.PtRegs) int {
	var state control
	state.set(&cpu.control)
	ret := k.callReturn(cpu, rp, "entry_handler", rp.EntryHandler, i, regs)
	k.keep(cpu, &state)
	return ret
}

func (k *Kprobes) callReturn(cpu *cpuState, rp *Kretprobe, field string, h ReturnHandler, i *Instance, regs *x86.PtRegs) (ret int) {
	done := false
	defer func() {
		if !done {
			k.recovered(&rp.KP, field, recover())
		}
	}()
	ret = h(i, regs)
	done = true
	return ret
}
