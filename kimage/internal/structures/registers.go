package structures

import (
	"encoding/binary"
	"fmt"

	"kprobelab/kimage/internal/opened"
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

// FindControl finds the control registers of a CPU, and the bases of its GS. root returns the physical address
// of page tables; separated reports that programs have page tables of their own.
func (k *Kernel) FindControl(n int, c *vmcore.CPU, root func(x86.Addr) (uint64, error), separated bool) error {
	p, err := k.Places("tlb_state.cr4", "tlb_state.loaded_mm", "tlb_state.loaded_mm_asid", "mm_struct.pgd",
		"task_struct.active_mm", "task_struct.thread.gsbase", "task_struct.thread.fsbase")
	if err != nil {
		return err
	}
	at, err := k.Symbols("__per_cpu_offset", "cpu_tlbstate", "gdt_page", "idt_descr")
	if err != nil {
		return err
	}
	area := k.Word(at["__per_cpu_offset"].Add(int64(8 * n)))
	local := func(name string) x86.Addr { return at[name] + area }
	tlb := func(member string) x86.Addr { return local("cpu_tlbstate").Add(int64(p["tlb_state."+member])) }

	r := &vmcore.Control{CR0: cr0Linux, CR4: uint64(k.Word(tlb("cr4")))}
	if r.CR4&cr4PAE == 0 {
		return fmt.Errorf("cpu_tlbstate.cr4 is %#x", r.CR4)
	}
	task := k.current(area)
	mm := k.Word(tlb("loaded_mm"))
	if mm < opened.KernelHalf { // it is being switched
		mm = k.Word(task.Add(int64(p["task_struct.active_mm"])))
	}
	tables, err := root(k.Word(mm.Add(int64(p["mm_struct.pgd"]))))
	if err != nil {
		return fmt.Errorf("the page tables of the mm_struct at %v: %w", mm, err)
	}
	if r.CR3 = tables; r.CR4&cr4PCID != 0 {
		r.CR3 |= uint64(k.Half(tlb("loaded_mm_asid"))&0xffff) + 1
	}
	if c.User() && separated {
		if r.CR3 |= ptiUserTables; r.CR4&cr4PCID != 0 {
			r.CR3 |= ptiUserPCID
		}
	}

	r.IDT = vmcore.Segment{Limit: k.Half(at["idt_descr"]) & 0xffff, Base: uint64(k.Word(at["idt_descr"].Add(2)))}
	if err := k.findTSS(local("gdt_page"), r); err != nil {
		return err
	}
	program := k.Word(task.Add(int64(p["task_struct.thread.gsbase"])))
	if c.User() {
		r.KernelGSBase = uint64(area)
	} else {
		r.KernelGSBase, c.GSBase = uint64(program), uint64(area)
	}
	if c.FSBase == 0 { // a kernel's own dump notes none
		c.FSBase = uint64(k.Word(task.Add(int64(p["task_struct.thread.fsbase"]))))
	}
	c.Control = r
	return nil
}

// findTSS finds the task register by its descriptor, and the descriptor table where the
// processor sees it: in the same cpu_entry_area as the TSS (arch/x86/include/asm/cpu_entry_area.h).
func (k *Kernel) findTSS(table x86.Addr, r *vmcore.Control) error {
	b := k.Read(table+tssSelector, 16)
	if b == nil || b[5]&0x0f != 0x09 && b[5]&0x0f != 0x0b {
		return fmt.Errorf("there is no TSS in the descriptor table at %v", table)
	}
	const busy = 1 << 9 // set in the table by the load
	low, flags := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])&^busy
	r.TR = vmcore.Segment{
		Selector: tssSelector, Limit: low&0xffff | flags&0xf0000, Flags: flags,
		Base: uint64(low>>16) | uint64(flags&0xff)<<16 | uint64(flags>>24)<<24 | uint64(binary.LittleEndian.Uint32(b[8:]))<<32,
	}
	r.GDT = vmcore.Segment{Limit: gdtLimit, Base: uint64(table)}
	if p, err := k.Places("cpu_entry_area.gdt", "cpu_entry_area.tss", "tss_struct.x86_tss"); err == nil {
		r.GDT.Base = r.TR.Base - uint64(p["cpu_entry_area.tss"]+p["tss_struct.x86_tss"]-p["cpu_entry_area.gdt"])
	}
	return nil
}

// CurrentTask are the names that the per-CPU variable with the running task has had, or
// of a structure that begins with it (6.2 to 6.14).
var CurrentTask = []string{"current_task", "pcpu_hot"}

// current is the task that runs on the CPU of an area.
func (k *Kernel) current(area x86.Addr) x86.Addr {
	for _, name := range CurrentTask {
		if at, ok := k.Image.SymbolAddr(name); ok {
			return k.Word(at + area)
		}
	}
	return 0
}
