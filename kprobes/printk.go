package kprobes

import (
	"errors"
	"fmt"
	"strconv"

	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// What the subsystem writes to the kernel log, line by line.

// bare is a number as %lx prints it.
func bare(v uint64) string { return strconv.FormatUint(v, 16) }

// symbolized is an address as %pS prints it.
func (k *Kprobes) symbolized(a x86.Addr) string {
	s, ok := k.view.SymbolAt(a)
	if !ok {
		return a.String()
	}
	text := fmt.Sprintf("%s+0x%x/0x%x", s.Name, a.Sub(s.Addr), s.Size)
	if s.Module != "" {
		text += " [" + s.Module + "]"
	}
	return text
}

// dumpKprobe is dump_kprobe: the probe that could not be handled (docs/spec 2.5).
func (k *Kprobes) dumpKprobe(p *Kprobe) {
	name := p.SymbolName
	if name == "" {
		name = "(null)"
	}
	if k.c.Log.DumpFields {
		k.printk("Dump kprobe:")
		k.printk(fmt.Sprintf(".symbol_name = %s, .offset = %x, .addr = %s", name, p.Offset, k.symbolized(p.Addr)))
		return
	}
	k.printk("Dumping kprobe:")
	k.printk("Name: " + name)
	k.printk(fmt.Sprintf("Offset: %x", p.Offset))
	k.printk("Address: " + k.symbolized(p.Addr))
}

// dump logs a register frame as show_regs does, without the stack.
func (k *Kprobes) dump(r *x86.PtRegs) {
	k.printk(fmt.Sprintf("RIP: %04x:[<%016x>]", r.CS, r.IP))
	k.printk(fmt.Sprintf("RSP: %04x:%016x  EFLAGS: %08x", r.SS, r.SP, r.Flags))
	k.printk(fmt.Sprintf("RAX: %016x RBX: %016x RCX: %016x", r.AX, r.BX, r.CX))
	k.printk(fmt.Sprintf("RDX: %016x RSI: %016x RDI: %016x", r.DX, r.SI, r.DI))
	k.printk(fmt.Sprintf("RBP: %016x R08: %016x R09: %016x", r.BP, r.R8, r.R9))
	k.printk(fmt.Sprintf("R10: %016x R11: %016x R12: %016x", r.R10, r.R11, r.R12))
	k.printk(fmt.Sprintf("R13: %016x R14: %016x R15: %016x", r.R13, r.R14, r.R15))
}

// tellDisplacement logs that a copy would be too far from the address of its operand (docs/spec
// 3.2, step 7).
func (k *Kprobes) tellDisplacement(err error) {
	var r *probepoint.Refusal
	var e *slot.Error
	if errors.As(err, &r) && errors.As(r.Cause, &e) && e.Rule == rule.SlotDisplacement {
		k.printk(fmt.Sprintf("%sKprobes error: new displacement does not fit into s32 (%x)", k.c.Log.Prefix, uint64(e.Displacement)))
	}
}
