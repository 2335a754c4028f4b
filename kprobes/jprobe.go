package kprobes

import (
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// Jprobe is struct jprobe, of the kernels up to 4.14. At the entry of the probed function it calls
// a function of the guest with the same arguments and signature. That handler ends in
// jprobe_return, which does not return to it. Then the probed function runs: the handler's changes
// of registers, and of the 64 bytes above the stack pointer, are undone.
//
// The handler is guest code: a Go function cannot take arguments by the guest's
// calling convention. Go code reads the arguments from a Kprobe's registers
// instead.
//
// A handler that returns instead of calling jprobe_return returns to the probed
// function's caller, and its CPU still counts as handling the probe: every
// later hit there is missed. The kernel does not prevent that either.
type Jprobe struct {
	// KP is the place of the probe. Its handlers belong to the jprobe.
	KP Kprobe
	// Entry is the handler's address in the guest.
	Entry x86.Addr
	// EntrySymbol names it instead: where it is set, registration looks it up
	// and sets Entry.
	EntrySymbol string
}

// jprobeStack is MAX_STACK_SIZE: how much of the stack a jprobe preserves.
const jprobeStack = 64

// jprobeArea is the per-CPU part of a jprobe's state in kprobe_ctlblk. There
// is one, so jprobes do not nest.
type jprobeArea struct {
	regs  x86.PtRegs
	stack [jprobeStack]byte
	// saved is the number of bytes in use in stack.
	saved int
}

// jprobeState holds the guest addresses where jprobe handlers end.
type jprobeState struct {
	// pre is setjmpPre as a value, made once.
	pre PreHandler
	// ret is the range strictly between jprobe_return and jprobe_return_end.
	ret x86.Range
	// savedSP is the per-CPU variable from which jprobe_return loads rsp.
	savedSP x86.Addr
}

// RegisterJprobe plants a jprobe (register_jprobe, docs/spec 6). Beside
// RegisterKprobe's refusals: ENOSYS where the kernel has no jprobes (they were
// deprecated, stubbed in 4.15 and removed in 4.19) or the image has no
// jprobe_return, EINVAL where the handler is not the entry of a function of
// the guest (not tested in 2.6.18), EEXIST where the address has a jprobe.
func (k *Kprobes) RegisterJprobe(jp *Jprobe) error {
	if err := k.closed(); err != nil {
		return err
	}
	if jp == nil {
		return probepoint.Refuse(rule.NoPlace, 0, "")
	}
	if err := k.jprobesExist(jp); err != nil {
		return err
	}
	if err := k.checkEntry(jp); err != nil {
		return err
	}
	kp := &jp.KP
	kp.PreHandler = k.jp.pre
	kp.jprobe, kp.kret = jp, nil
	return k.RegisterKprobe(kp)
}

// jprobesExist refuses jprobes in kernels and images without them.
func (k *Kprobes) jprobesExist(jp *Jprobe) error {
	if !k.c.Jprobes {
		return probepoint.Refuse(rule.NoJprobes, jp.KP.Addr, jp.KP.SymbolName)
	}
	if k.jp.savedSP != 0 {
		return nil
	}
	start, ok1 := k.symbol("jprobe_return")
	end, ok2 := k.symbol("jprobe_return_end")
	saved, ok3 := k.symbol("jprobe_saved_sp")
	if !ok1 || !ok2 || !ok3 {
		r := probepoint.Refuse(rule.NoJprobes, jp.KP.Addr, jp.KP.SymbolName)
		r.Why = "the image has no jprobe_return, in which a jprobe's handler could end"
		return r
	}
	k.jp = jprobeState{pre: k.setjmpPre, ret: x86.Range{Start: start + 1, End: end}, savedSP: saved}
	return nil
}

func (k *Kprobes) symbol(name string) (x86.Addr, bool) {
	s := k.view.Lookup(name)
	if len(s) == 0 {
		return 0, false
	}
	return s[0].Addr, true
}

// checkEntry finds the handler and requires it to be a function's entry. That
// is the kernel's own check of a jprobe; the probed place has none.
func (k *Kprobes) checkEntry(jp *Jprobe) error {
	if jp.EntrySymbol != "" {
		jp.Entry, _ = k.symbol(jp.EntrySymbol)
	}
	s, ok := k.view.SymbolAt(jp.Entry)
	if jp.Entry != 0 && (!k.c.Check.JprobeEntry || ok && s.Addr == jp.Entry) {
		return nil
	}
	r := probepoint.Refuse(rule.JprobeEntry, jp.Entry, jp.EntrySymbol)
	if r.Symbol == "" && ok {
		r.Symbol = symbolic(s.Name, uint64(jp.Entry.Sub(s.Addr)))
	}
	return r
}

// RegisterJprobes registers in order; at the first refusal it unregisters the ones before and
// returns that error. An empty list is EINVAL.
func (k *Kprobes) RegisterJprobes(jps []*Jprobe) error {
	if len(jps) == 0 {
		return probepoint.Refuse(rule.Batch, 0, "")
	}
	for i, jp := range jps {
		if err := k.RegisterJprobe(jp); err != nil {
			k.UnregisterJprobes(jps[:i])
			return err
		}
	}
	return nil
}

// UnregisterJprobe removes a jprobe.
func (k *Kprobes) UnregisterJprobe(jp *Jprobe) {
	if jp != nil {
		k.UnregisterKprobe(&jp.KP)
	}
}

// UnregisterJprobes removes several. Nil elements and an empty list do
// nothing.
func (k *Kprobes) UnregisterJprobes(jps []*Jprobe) {
	kps := make([]*Kprobe, 0, len(jps))
	for _, jp := range jps {
		if jp != nil {
			kps = append(kps, &jp.KP)
		}
	}
	k.UnregisterKprobes(kps)
}

// DisableJprobe and EnableJprobe act on the jprobe's kprobe; errors as there.
func (k *Kprobes) DisableJprobe(jp *Jprobe) error {
	if jp == nil {
		return k.DisableKprobe(nil)
	}
	return k.DisableKprobe(&jp.KP)
}

// EnableJprobe lets a disabled jprobe run again. Errors as in EnableKprobe.
func (k *Kprobes) EnableJprobe(jp *Jprobe) error {
	if jp == nil {
		return k.EnableKprobe(nil)
	}
	return k.EnableKprobe(&jp.KP)
}
