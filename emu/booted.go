//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"
	"golang.org/x/sys/unix"

	"kprobelab/internal/fromdump"
	"kprobelab/kimage/vmcore"
	"kprobelab/machine"
	"kprobelab/x86"
)

// A booted machine continues from a dump of a kernel's memory. The differences from a kernel that
// has not booted:
//
//   - addresses go through the guest's own page tables (shim_walk.c), but for the
//     regions that the machine adds in module space, for its stubs, for slots and
//     for its heap;
//   - exceptions that are not kprobes' own, interrupts and system calls enter the
//     guest's kernel as the processor does it (shim_enter.c);
//   - a local APIC and its timer live in virtual time (shim_apic.c), and where the
//     guest waits in hlt, the clock moves on to the timer's next interrupt;
//   - tasks are the guest's, switched by its own scheduler: the machine's one task stands for
//     all that the CPU executes.

// booted is the engine's state for a kernel that has booted.
type booted struct {
	src  machine.BootedSource
	core *vmcore.Core
	ram  []mapping
	// cpu are the registers of the dump's processors.
	cpu []vmcore.CPU
	// seen are the pages that the guest reads in place of its text (shim_views.c).
	seen []byte
	// current is the per-CPU variable that has the running task's address.
	current x86.Addr
	// direct is the address of the map of all physical memory (page_offset_base).
	direct x86.Addr
	tasks  fromdump.Tasks
	// graceAt is the virtual time at which the last grace period ended.
	graceAt uint64
	// text is the kernel's text, in one piece of physical memory from textPhys on.
	text     x86.Range
	textPhys uint64
	// turnEnd is the instruction count at which another CPU has its turn.
	turnEnd uint64
	// chance varies turns and timers.
	chance fromdump.Chance
	// alone: no other CPU has a turn while one does not wait.
	alone bool
	// lost is the error for which the machine cannot continue, nil if it can.
	lost error
	// hostCall receives system calls for the host.
	hostCall func(*x86.PtRegs) bool
	// seeCall is shown system calls that the kernel gets.
	seeCall func(*x86.PtRegs)
	// executed is shown the instructions in shown before they are executed.
	executed func(*x86.PtRegs)
	shown    map[x86.Addr]bool
	// caller is the task that makes a call of the host's, 0 without one.
	caller x86.Addr
	// hooked are the instructions that have a hook of their own.
	hooked map[x86.Addr]bool
}

// mapping is a range of physical memory in the host's.
type mapping struct {
	phys      uint64
	mem, attr []byte
}

// maxHooked is the most instructions with a hook of their own: the engine looks through all of them
// for each instruction that it translates.
const maxHooked = 1024

// layMemory maps the dump's memory, copy on write.
func (b *booted) layMemory(e *engine) error {
	pieces, err := b.core.Map()
	if err != nil {
		return err
	}
	for _, r := range b.core.RAM() {
		at := mapping{phys: r.Phys}
		if at.mem, err = reserve(int64(r.Size)); err == nil {
			at.attr, err = reserve(int64(r.Size / machine.PageSize))
		}
		b.ram = append(b.ram, at) // Close frees it, whatever fails below
		if err != nil {
			return engineError(fmt.Sprintf("%d bytes of host memory", r.Size), err)
		}
		for i := range at.attr {
			if b.core.Present(r.Phys+uint64(i)*machine.PageSize) == nil {
				at.attr[i] = attrR | attrW | attrX
			}
		}
		if C.kpl_add_ram(e.c, C.uint64_t(r.Phys), C.uint64_t(r.Size), (*C.uint8_t)(&at.mem[0]), (*C.uint8_t)(&at.attr[0])) != 0 {
			return fmt.Errorf("the dump's memory is in more than %d ranges: %w", C.KPL_MAX_RAM, machine.ErrNoMemory)
		}
	}
	if b.seen, err = reserve(C.KPL_MAX_VIEWS * machine.PageSize); err != nil {
		return engineError("host memory for the guest's view of text", err)
	}
	C.kpl_view_init(e.c, (*C.uint8_t)(&b.seen[0]))
	for _, p := range pieces {
		r := b.find(p.Phys)
		if p.File == nil || r == nil {
			continue
		}
		to := unsafe.Pointer(&r.mem[p.Phys-r.phys])
		if _, err := unix.MmapPtr(int(p.File.Fd()), p.Off, to, uintptr(p.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE); err != nil {
			return engineError(fmt.Sprintf("map %d bytes of the dump", p.Size), err)
		}
	}
	return nil
}

// find is the range that holds a physical address.
func (b *booted) find(pa uint64) *mapping {
	for i := range b.ram {
		if r := &b.ram[i]; pa-r.phys < uint64(len(r.mem)) {
			return r
		}
	}
	return nil
}

func (b *booted) free() {
	for _, r := range b.ram {
		for _, h := range [][]byte{r.mem, r.attr} {
			if h != nil {
				_ = unix.Munmap(h) // it is ours, and mapped
			}
		}
	}
	if b.seen != nil {
		_ = unix.Munmap(b.seen)
	}
	b.ram, b.seen = nil, nil
}

// open finishes a CPU of a booted machine: its engine gets the dump's memory and
// the devices.
func (b *booted) open(c *cpu) error {
	for _, r := range b.ram {
		if err := c.uc.MemMapPtr(r.phys, uint64(len(r.mem)), unicorn.PROT_ALL, unsafe.Pointer(&r.mem[0])); err != nil {
			return engineError(fmt.Sprintf("map physical memory at %#x", r.phys), err)
		}
	}
	if err := c.uc.MemMapPtr(C.KPL_SEEN, uint64(len(b.seen)), unicorn.PROT_ALL, unsafe.Pointer(&b.seen[0])); err != nil {
		return engineError("map the guest's view of text", err)
	}
	if e := C.kpl_add_devices(c.c); e != unicorn.ERR_OK {
		return engineError("add devices", unicorn.UcError(e))
	}
	return knownState(c)
}

// knownState finds out whether the engine keeps its state where this package looks.
func knownState(c *cpu) error {
	if C.kpl_env_find(c.c) == 0 {
		return engineError("find the engine's own state", fmt.Errorf("%s keeps it in a way that is not known here", Engine()))
	}
	return nil
}

// Model specific registers (SDM Vol. 4).
const (
	msrEFER     = 0xc0000080
	msrSTAR     = 0xc0000081
	msrLSTAR    = 0xc0000082
	msrFMASK    = 0xc0000084
	msrFSBase   = 0xc0000100
	msrGSBase   = 0xc0000101
	msrKernelGS = 0xc0000102
	msrTSCAux   = 0xc0000103

	eferLinux = 0xd01 // SCE, LME, LMA, NXE
	// What Linux sets them to (arch/x86/kernel/cpu/common.c, syscall_init).
	starLinux  = 0x0023001000000000
	fmaskLinux = 0x257fd5
)

// resume sets the CPU to its state in the dump.
func (b *booted) resume(e *engine, c *cpu) error {
	s := &b.cpu[c.n]
	k := s.Control
	entry, err := e.kernel().Entry()
	if err != nil {
		return err
	}
	for _, r := range []struct {
		reg   int
		value uint64
	}{
		{unicorn.X86_REG_CR0, k.CR0},
		{unicorn.X86_REG_CR4, k.CR4},
		{unicorn.X86_REG_CR3, k.CR3},
		{unicorn.X86_REG_MXCSR, 0x1f80},
		{unicorn.X86_REG_FPCW, 0x37f},
		{unicorn.X86_REG_FPTAG, 0xffff},
	} {
		if err := c.uc.RegWrite(r.reg, r.value); err != nil {
			return engineError("set control registers", err)
		}
	}
	for reg, t := range map[int]vmcore.Segment{unicorn.X86_REG_GDTR: k.GDT, unicorn.X86_REG_IDTR: k.IDT, unicorn.X86_REG_TR: k.TR} {
		if err := c.uc.RegWriteMmr(reg, &unicorn.X86Mmr{Selector: uint16(t.Selector), Base: t.Base, Limit: t.Limit, Flags: t.Flags}); err != nil {
			return engineError("set descriptor tables", err)
		}
	}
	c.gs = x86.Addr(s.GSBase)
	if s.User() {
		c.gs = x86.Addr(k.KernelGSBase)
	}
	for msr, v := range map[C.uint32_t]uint64{
		msrEFER: eferLinux, msrSTAR: starLinux, msrLSTAR: uint64(entry), msrFMASK: fmaskLinux,
		msrFSBase: s.FSBase, msrGSBase: s.GSBase, msrKernelGS: k.KernelGSBase, msrTSCAux: uint64(c.n),
	} {
		C.kpl_set_msr(c.c, msr, C.uint64_t(v))
	}
	C.kpl_set_mode(c.c, C.uint16_t(s.Regs.CS), C.uint16_t(s.Regs.SS))
	C.kpl_change_all(c.c, (*C.kpl_regs)(unsafe.Pointer(&s.Regs)))
	e.debugRegisters(c)
	return nil
}

// debugRegisters gives the CPU the breakpoints that the kernel says it has set: no dump has the
// registers (arch/x86/kernel/hw_breakpoint.c, cpu_dr7 and cpu_debugreg).
func (e *engine) debugRegisters(c *cpu) {
	C.kpl_debug_reset(c.c)
	dr7, addrs := e.variable("cpu_dr7"), e.variable("cpu_debugreg")
	if dr7 == 0 || addrs == 0 {
		return
	}
	c.c.dr[7] |= C.uint64_t(uint32(e.word(c.gs + dr7)))
	for n := range 4 {
		c.c.dr[n] = C.uint64_t(e.word(c.gs + addrs + x86.Addr(8*n)))
	}
}

// word reads a word of the guest's memory, 0 if the address is not mapped.
func (e *engine) word(at x86.Addr) uint64 { return e.kernel().Word(at) }
