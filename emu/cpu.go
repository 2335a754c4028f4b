//go:build unicorn && cgo && linux && amd64

package emu

// #cgo nocallback kpl_cpu_setup
// #cgo nocallback kpl_cpu_drop_all
// #cgo nocallback kpl_read_regs
// #cgo noescape kpl_call
// #cgo nocallback kpl_call
// #cgo nocallback kpl_cpu_ip
// #cgo nocallback kpl_cpu_set_ip
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"
	"golang.org/x/sys/unix"

	"kprobelab/internal/contract"
	"kprobelab/machine"
	"kprobelab/x86"
)

// cpu is one engine over the machine's memory.
type cpu struct {
	uc unicorn.Unicorn
	c  *C.kpl_cpu
	n  int
	// booted is the engine's own state before the first instruction.
	booted unicorn.Context
	// user is the same in user mode, of a machine that has one.
	user unicorn.Context
	// failure is the engine's error in its last run, nil without one.
	failure error
	e       *engine
	// gs is its GS base.
	gs x86.Addr
	// shares is true of a CPU that uses another one's engine of Unicorn.
	shares bool
	// read is true while c.regs are the engine's registers.
	read bool
	// spare is room for the registers of runs that faulted.
	spare []*C.kpl_state
}

// Open adds a CPU: an engine with the machine's memory and hooks, in kernel mode.
func (e *engine) Open() (machine.CPU, error) {
	if e.b != nil && len(e.cpus) > 0 {
		return e.share()
	}
	uc, err := unicorn.NewUnicorn(unicorn.ARCH_X86, unicorn.MODE_64)
	if err != nil {
		return nil, engineError("open", err)
	}
	c := &cpu{uc: uc, e: e, n: len(e.cpus)}
	e.cpus = append(e.cpus, c) // Close closes it, whatever fails below
	if c.c = (*C.kpl_cpu)(C.calloc(1, C.sizeof_kpl_cpu)); c.c == nil {
		return nil, machine.ErrNoMemory
	}
	c.c.buffer = &c.c.own_buffer
	c.c.m, c.c.n, c.c.uc = e.c, C.int(c.n), unsafe.Pointer(uc.Handle())
	if e.cur == nil {
		e.cur, e.c.cur = c, c.c
		own := e.host.Exec()
		e.c.own_start, e.c.own_end = C.uint64_t(own.Start), C.uint64_t(own.End)
	}
	if err := uc.SetCPUModel(e.model); err != nil {
		return nil, engineError("set the cpu model", err)
	}
	if err := roomForTranslations(int64(e.c.room.size)); err != nil {
		return nil, engineError("memory for translations", err)
	}
	if n := C.kpl_cpu_setup(c.c); n != unicorn.ERR_OK {
		return nil, engineError("set up", unicorn.UcError(n))
	}
	for _, r := range e.regions {
		if err := c.mapRegion(r); err != nil {
			return nil, err
		}
	}
	if e.b != nil {
		return c, e.b.open(c)
	}
	if err := c.setModes(); err != nil {
		return nil, engineError("set the boot registers", err)
	}
	if e.opt.UserMode {
		if err := knownState(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *cpu) mapRegion(r *region) error {
	if err := c.uc.MemMapPtr(alias(r.Start), r.Len(), unicorn.PROT_ALL, unsafe.Pointer(&r.mem[0])); err != nil {
		return engineError("map "+r.Start.String(), err)
	}
	return nil
}

// roomForTranslations checks that the host has the memory that the engine is about to reserve for
// translations. An engine that does not get the memory ends the process.
func roomForTranslations(size int64) error {
	b, err := reserve(size)
	if err != nil {
		return err
	}
	return unix.Munmap(b)
}

// alias returns the engine's physical address for a guest address: its low 48 bits, which still
// distinguish canonical addresses. The engine refuses to fetch above 2^52.
func alias(a x86.Addr) uint64 { return uint64(a) & (1<<48 - 1) }

// setModes sets the modes of a booted kernel's CPU: paging, write protection, SSE, the kernel's
// segments.
func (c *cpu) setModes() error {
	for _, r := range []struct {
		reg   int
		value uint64
	}{
		{unicorn.X86_REG_CR4, 0x6f0}, // without OSXSAVE and FSGSBASE, which some releases of Unicorn begin with
		{unicorn.X86_REG_CR0, 0x80050033},
		{unicorn.X86_REG_CS, x86.KernelCS},
		{unicorn.X86_REG_SS, x86.KernelDS},
		{unicorn.X86_REG_MXCSR, 0x1f80},
		{unicorn.X86_REG_FPCW, 0x37f},
		{unicorn.X86_REG_FPTAG, 0xffff},
	} {
		if err := c.uc.RegWrite(r.reg, r.value); err != nil {
			return err
		}
	}
	return nil
}

// Boot sets GS base and keeps the CPU's state for forgetException.
func (c *cpu) Boot(gs x86.Addr) (err error) {
	c.gs = gs
	if err = c.uc.RegWrite(unicorn.X86_REG_GS_BASE, uint64(c.gs)); err == nil {
		c.booted, err = c.uc.ContextSave(nil)
	}
	if err == nil && c.e.opt.UserMode {
		C.kpl_set_user(c.c, 1)
		c.user, err = c.uc.ContextSave(nil)
		C.kpl_set_user(c.c, 0)
	}
	if err != nil {
		return engineError("boot", err)
	}
	return nil
}

func (c *cpu) Answer() *contract.Answer { return (*contract.Answer)(unsafe.Pointer(&c.c.answer)) }
func (c *cpu) Depth() int               { return int(c.c.depth) }

// forgetException tells the engine that an exception was delivered. Otherwise it would turn the
// next one into a double fault. Only restoring its whole context does that, which also loses the
// guest's writes to system registers since boot, except for the segment bases.
func (c *cpu) forgetException() error {
	before := c.booted
	if c.c.user != 0 {
		before = c.user
	}
	gs, err := c.uc.RegRead(unicorn.X86_REG_GS_BASE)
	fs, err2 := c.uc.RegRead(unicorn.X86_REG_FS_BASE)
	err = errors.Join(err, err2, c.uc.ContextRestore(before),
		c.uc.RegWrite(unicorn.X86_REG_GS_BASE, gs), c.uc.RegWrite(unicorn.X86_REG_FS_BASE, fs))
	if err != nil {
		return engineError("take an exception", err)
	}
	return nil
}

// close frees the engine and its memory.
func (c *cpu) close() {
	if !c.shares {
		_ = c.uc.Close() // a failure has no remedy
	}
	C.kpl_env_free(c.c)
	C.free(unsafe.Pointer(c.c))
}

// readRegs reads the engine's registers, all in one crossing.
func (c *cpu) readRegs() *x86.PtRegs {
	C.kpl_read_regs(c.c, &c.c.regs)
	return c.regs()
}

// Regs is readRegs, but where the end of a run has just read them.
func (c *cpu) Regs() *x86.PtRegs {
	if c.read {
		c.read = false
		return c.regs()
	}
	return c.readRegs()
}

func (c *cpu) Flags() uint64 { return c.readRegs().Flags }

func (c *cpu) IP() x86.Addr { return x86.Addr(C.kpl_cpu_ip(c.c)) }

func (c *cpu) SetIP(ip x86.Addr) {
	c.read = false
	C.kpl_cpu_set_ip(c.c, C.uint64_t(ip))
}

// Enter sets the registers at a function's first instruction.
func (c *cpu) Enter(sp x86.Addr, args [6]uint64, flags uint64) {
	c.read = false
	if c.c.user != 0 {
		C.kpl_set_user(c.c, 0)
	}
	C.kpl_call(c.c, C.uint64_t(sp), (*C.uint64_t)(&args[0]), C.uint64_t(flags))
}

func (c *cpu) Save(s contract.State) { C.kpl_save(c.c, s.(*C.kpl_state)) }

// Load leaves RIP alone in a callout: the engine would leave the block for it.
func (c *cpu) Load(s contract.State) {
	c.read = false
	C.kpl_load(c.c, s.(*C.kpl_state), 1-c.c.in_callout)
}

// takeState is room for registers; putState takes it back.
func (c *cpu) takeState() *C.kpl_state {
	if n := len(c.spare); n > 0 {
		s := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return s
	}
	return c.e.NewState().(*C.kpl_state)
}

func (c *cpu) putState(s *C.kpl_state) { c.spare = append(c.spare, s) }

// regs returns the registers that were read last.
func (c *cpu) regs() *x86.PtRegs { return (*x86.PtRegs)(unsafe.Pointer(&c.c.regs)) }
