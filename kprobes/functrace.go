package kprobes

import (
	"errors"
	"fmt"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// FunctionTracer is the type of function that TraceFunctions calls at a traced fentry site. regs is
// the register frame as earlier probes at the site have left it. The function must not change it.
type FunctionTracer func(site x86.Addr, regs *x86.PtRegs)

// functionTrace is a second user of fentry sites beside probes: the function
// tracer's own.
type functionTrace struct {
	call FunctionTracer
	// nops are the traced sites, with the CPU's nop that was there.
	nops map[x86.Addr][ftraceSiteSize]byte
	// newer: the tracer began after probes did, and is called before them.
	newer bool
}

// TraceFunctions makes the function tracer call fn at these fentry sites. It replaces the sites
// that were traced before, and an empty list ends tracing. Probes on the same sites stay. The error
// names the first address that is no fentry site; the addresses after it are not traced.
func (k *Kprobes) TraceFunctions(sites []x86.Addr, fn FunctionTracer) error {
	t := &k.ftrace.functions
	if t.call == nil {
		t.newer = k.ftrace.plain.enabled+k.ftrace.ipmodify.enabled > 0
	}
	wanted := make(map[x86.Addr]bool, len(sites))
	for _, at := range sites {
		wanted[at] = true
	}
	var err error
	for at := range t.nops {
		if !wanted[at] {
			err = errors.Join(err, k.untrace(at))
		}
	}
	t.call = fn
	for _, at := range sites {
		if err == nil {
			err = k.traceSite(at)
		}
	}
	if len(t.nops) == 0 {
		t.call = nil
	}
	return err
}

func (k *Kprobes) traceSite(at x86.Addr) error {
	t := &k.ftrace.functions
	if _, ok := t.nops[at]; ok {
		return nil
	}
	if s, ok := k.view.SiteAt(kimage.SiteFtrace, at); !ok || s.Addr != at {
		return fmt.Errorf("%s is no fentry site: %w", at, errno.EINVAL)
	}
	if err := k.placeFtraceTrampoline(&k.ftrace.plain); err != nil {
		return err
	}
	var nop [ftraceSiteSize]byte
	probe := k.table.lookup(at)
	if probe != nil && probe.ft != nil {
		nop = probe.ft.nop
	} else if err := k.m.ReadMem(at, nop[:]); err != nil {
		return err
	}
	switch {
	case k.shared != nil && k.guestHas(at, true):
		if err := k.putBeside(at); err != nil {
			return err
		}
	case probe == nil || probe.ft == nil || probe.ft.ops == nil:
		if err := k.m.PokeText(at, callInsn(at, k.ftrace.plain.trampoline)); err != nil {
			return err
		}
	}
	if t.nops == nil {
		t.nops = map[x86.Addr][ftraceSiteSize]byte{}
	}
	t.nops[at] = nop
	return nil
}

// untrace gives a site its nop back, unless a probe needs the call.
func (k *Kprobes) untrace(at x86.Addr) error {
	nop := k.ftrace.functions.nops[at]
	delete(k.ftrace.functions.nops, at)
	if p := k.table.lookup(at); p != nil && p.ft != nil && p.ft.ops != nil {
		return nil
	}
	if _, ok := k.view.SiteAt(kimage.SiteFtrace, at); !ok {
		return nil // its module has gone
	}
	if k.beside[at] {
		if p := k.table.lookup(at); p == nil || k.span(p).End == at {
			k.endBeside(at)
		}
		return nil
	}
	if k.shared != nil {
		if err := k.shared.GuestText(at, nop[:]); err != nil {
			return err
		}
	}
	return k.m.PokeText(at, nop[:])
}

// traced calls the function tracer, where it traces the site.
func (k *Kprobes) traced(site x86.Addr, regs *x86.PtRegs) {
	if t := &k.ftrace.functions; t.call != nil {
		if _, ok := t.nops[site]; ok {
			t.call(site, regs)
		}
	}
}
