package kimage

import (
	"fmt"
	"slices"

	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// Registers that a dump does not have are found in its memory. A crashed kernel's dump,
// and a file that makedumpfile makes of it, has only the general registers of the
// processors. The control registers have the values that the kernel has set; of values
// that differ between CPUs it keeps a copy in per-CPU variables.

// The value that Linux sets CR0 to (CR0_STATE, arch/x86/include/uapi/asm/processor-flags.h).
const cr0Linux = 0x80050033

// Bits of CR4 and CR3 (the same; PTI's in arch/x86/entry/calling.h).
const (
	cr4PAE  = 1 << 5
	cr4PCID = 1 << 17
	// The user's half of separated page tables, and of their numbers.
	ptiUserTables = 1 << 12
	ptiUserPCID   = 1 << 11
)

// The global descriptor table (arch/x86/include/asm/segment.h).
const (
	gdtLimit    = 16*8 - 1
	tssSelector = 8 * 8
)

// Processors returns the processors of a booted kernel, with the control registers that
// the dump notes or, without notes, with the ones that its memory holds. The error says
// why they are not known. The caller must not change them.
func (img *Image) Processors() ([]vmcore.CPU, error) { return img.processors, img.unknown }

// findRegisters finds the control registers that the dump has no note of.
func (d *dump) findRegisters() error {
	d.img.processors = slices.Clone(d.core.CPUs())
	found := 0
	for n := range d.img.processors {
		c := &d.img.processors[n]
		if c.Control != nil {
			continue
		}
		if err := d.findControl(n, c); err != nil {
			d.img.unknown = fmt.Errorf("the dump notes no control registers of CPU %d, and its memory does not tell them: %w", n, err)
			d.fact("control registers", "not known", d.img.unknown.Error())
			return nil
		}
		found++
	}
	switch {
	case len(d.img.processors) == 0:
		d.img.unknown = fmt.Errorf("the dump has no registers of its processors")
	case found > 0:
		d.fact("control registers", "found", "the dump notes none; they were found in the kernel's memory")
	}
	return nil
}

// findControl finds the control registers of a CPU, and the bases of its GS.
func (d *dump) findControl(n int, c *vmcore.CPU) error {
	p, err := d.places("tlb_state.cr4", "tlb_state.loaded_mm", "tlb_state.loaded_mm_asid", "mm_struct.pgd",
		"task_struct.active_mm", "task_struct.thread.gsbase", "task_struct.thread.fsbase")
	if err != nil {
		return err
	}
	at, err := d.symbols("__per_cpu_offset", "cpu_tlbstate", "gdt_page", "idt_descr")
	if err != nil {
		return err
	}
	area := d.word(at["__per_cpu_offset"].Add(int64(8 * n)))
	local := func(name string) x86.Addr { return at[name] + area }
	tlb := func(member string) x86.Addr { return local("cpu_tlbstate").Add(int64(p["tlb_state."+member])) }

	k := &vmcore.Control{CR0: cr0Linux, CR4: uint64(d.word(tlb("cr4")))}
	if k.CR4&cr4PAE == 0 {
		return fmt.Errorf("cpu_tlbstate.cr4 is %#x", k.CR4)
	}
	task := d.current(area)
	mm := d.word(tlb("loaded_mm"))
	if mm < kernelHalf { // it is being switched
		mm = d.word(task.Add(int64(p["task_struct.active_mm"])))
	}
	root, err := d.space.Translate(d.word(mm.Add(int64(p["mm_struct.pgd"]))))
	if err != nil {
		return fmt.Errorf("the page tables of the mm_struct at %v: %w", mm, err)
	}
	if k.CR3 = root.Phys; k.CR4&cr4PCID != 0 {
		k.CR3 |= uint64(d.half(tlb("loaded_mm_asid"))&0xffff) + 1
	}
	if c.User() && d.img.cpu != nil && d.img.cpu.Flags["pti"] {
		if k.CR3 |= ptiUserTables; k.CR4&cr4PCID != 0 {
			k.CR3 |= ptiUserPCID
		}
	}

	k.IDT = vmcore.Segment{Limit: d.half(at["idt_descr"]) & 0xffff, Base: uint64(d.word(at["idt_descr"].Add(2)))}
	if err := d.findTSS(local("gdt_page"), k); err != nil {
		return err
	}
	program := d.word(task.Add(int64(p["task_struct.thread.gsbase"])))
	if c.User() {
		k.KernelGSBase = uint64(area)
	} else {
		k.KernelGSBase, c.GSBase = uint64(program), uint64(area)
	}
	if c.FSBase == 0 { // a kernel's own dump notes none
		c.FSBase = uint64(d.word(task.Add(int64(p["task_struct.thread.fsbase"]))))
	}
	c.Control = k
	return nil
}

// findTSS finds the task register by its descriptor, and the descriptor table where the
// processor sees it: in the same cpu_entry_area as the TSS (arch/x86/include/asm/cpu_entry_area.h).
func (d *dump) findTSS(table x86.Addr, k *vmcore.Control) error {
	b := d.read(table+tssSelector, 16)
	if b == nil || b[5]&0x0f != 0x09 && b[5]&0x0f != 0x0b {
		return fmt.Errorf("there is no TSS in the descriptor table at %v", table)
	}
	const busy = 1 << 9 // set in the table by the load
	low, flags := le.Uint32(b), le.Uint32(b[4:])&^busy
	k.TR = vmcore.Segment{
		Selector: tssSelector, Limit: low&0xffff | flags&0xf0000, Flags: flags,
		Base: uint64(low>>16) | uint64(flags&0xff)<<16 | uint64(flags>>24)<<24 | uint64(le.Uint32(b[8:]))<<32,
	}
	k.GDT = vmcore.Segment{Limit: gdtLimit, Base: uint64(table)}
	if p, err := d.places("cpu_entry_area.gdt", "cpu_entry_area.tss", "tss_struct.x86_tss"); err == nil {
		k.GDT.Base = k.TR.Base - uint64(p["cpu_entry_area.tss"]+p["tss_struct.x86_tss"]-p["cpu_entry_area.gdt"])
	}
	return nil
}

// current is the task that runs on the CPU of an area.
func (d *dump) current(area x86.Addr) x86.Addr {
	for _, name := range currentTask {
		if at, ok := d.img.symbolAddr(name); ok {
			return d.word(at + area)
		}
	}
	return 0
}

// symbols are the addresses of several, and the error names the first that there is none
// of.
func (d *dump) symbols(names ...string) (map[string]x86.Addr, error) {
	found := map[string]x86.Addr{}
	for _, name := range names {
		at, ok := d.img.symbolAddr(name)
		if !ok {
			return nil, fmt.Errorf("there is no %s", name)
		}
		found[name] = at
	}
	return found, nil
}
