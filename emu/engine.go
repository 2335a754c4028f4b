//go:build cgo && linux && amd64

package emu

// The binding links -lunicorn alone. A static archive needs libm after it, so it
// is named here once more. Nothing else of the package is compiled where the
// #error is met.

/*
#cgo LDFLAGS: -lunicorn -lm -lpthread

#if __has_include(<unicorn/unicorn.h>)
#include <unicorn/unicorn.h>
#endif
#if !defined(UC_API_MAJOR) || UC_API_MAJOR != 2 || UC_API_MINOR < 1
#line 1 "Unicorn"
#error Unicorn 2.1 is not set up here: run make deps, then eval "$(make env)"
#endif

#cgo nocallback kpl_cpu_setup
#cgo nocallback kpl_cpu_drop_all
#cgo nocallback kpl_read_regs
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"
	"golang.org/x/sys/unix"

	"kprobelab/x86"
)

// Engine names the engine and its version. (The binding's Version leaves out
// the patch level.)
func Engine() string {
	v := C.uc_version(nil, nil)
	return fmt.Sprintf("Unicorn %d.%d.%d", v>>24, v>>16&0xff, v>>8&0xff)
}

// engineError is a failure of the engine itself, and what it was to do.
func engineError(what string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrEngine, what, err)
}

// cpu is one engine over the machine's memory.
type cpu struct {
	uc unicorn.Unicorn
	c  *C.kpl_cpu
	n  int
	// booted is the engine's own state before the first instruction.
	booted unicorn.Context
	// failure is why the engine gave up its last run, nil if it did not.
	failure error
	// task is the one whose registers the engine has, nil for none.
	task *Task
	// area is its per-CPU area, gs its GS base, preempt the address of its
	// preempt count (0 where the image has none).
	area, gs, preempt x86.Addr
	// local is its own page after the area, words the page's memory.
	local x86.Addr
	words []uint64
	// stale is poked text of which it may have old translations.
	stale []x86.Range
	// shares is true of a CPU that uses another one's engine.
	shares bool
	// spare is room for the registers of interrupted runs, ready to be used.
	spare []*C.kpl_state
}

// open adds a CPU: an engine with the machine's memory and hooks, in kernel mode.
func (m *Machine) open(model int) error {
	if m.b != nil && len(m.cpus) > 0 {
		return m.share()
	}
	uc, err := unicorn.NewUnicorn(unicorn.ARCH_X86, unicorn.MODE_64)
	if err != nil {
		return engineError("open", err)
	}
	c := &cpu{uc: uc, n: len(m.cpus)}
	m.cpus = append(m.cpus, c) // Close closes it, whatever fails below
	if c.c = (*C.kpl_cpu)(C.calloc(1, C.sizeof_kpl_cpu)); c.c == nil {
		return ErrNoMemory
	}
	c.c.m, c.c.n, c.c.uc = m.c, C.int(c.n), unsafe.Pointer(uc.Handle())
	if err := uc.SetCPUModel(model); err != nil {
		return engineError("set the cpu model", err)
	}
	if err := roomForTranslations(); err != nil {
		return engineError("memory for translations", err)
	}
	if e := C.kpl_cpu_setup(c.c); e != unicorn.ERR_OK {
		return engineError("set up", unicorn.UcError(e))
	}
	for _, r := range m.regions {
		if err := uc.MemMapPtr(alias(r.Start), r.Len(), unicorn.PROT_ALL, unsafe.Pointer(&r.mem[0])); err != nil {
			return engineError("map "+r.Start.String(), err)
		}
	}
	if m.b != nil {
		return m.b.open(c)
	}
	if err := c.setModes(); err != nil {
		return engineError("set the boot registers", err)
	}
	return nil
}

// roomForTranslations asks the host for as much as the engine is about to reserve
// for translations. An engine that does not get it ends the process.
func roomForTranslations() error {
	b, err := reserve(bufferSize)
	if err != nil {
		return err
	}
	return unix.Munmap(b)
}

// alias is what the engine takes for the physical address of a guest address:
// its low 48 bits, which still tell canonical addresses apart. The engine
// refuses to fetch above 2^52.
func alias(a x86.Addr) uint64 { return uint64(a) & (1<<48 - 1) }

// setModes brings the CPU to where a booted kernel leaves it: paging, write
// protection, SSE, the kernel's segments.
func (c *cpu) setModes() error {
	cr4, err := c.uc.RegRead(unicorn.X86_REG_CR4) // with OSXSAVE where the model has it
	if err != nil {
		return err
	}
	for _, r := range []struct {
		reg   int
		value uint64
	}{
		{unicorn.X86_REG_CR4, cr4 | 0x6f0},
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

// boot sets GS base and keeps the CPU's state for forgetException.
func (c *cpu) boot() (err error) {
	if err = c.uc.RegWrite(unicorn.X86_REG_GS_BASE, uint64(c.gs)); err == nil {
		c.booted, err = c.uc.ContextSave(nil)
	}
	if err != nil {
		return engineError("boot", err)
	}
	return nil
}

// forgetException tells the engine that an exception was delivered. Otherwise it
// would turn the next one into a double fault. Only restoring its whole context
// does that; what the guest wrote to system registers since boot is lost with
// it, except for the segment bases.
func (c *cpu) forgetException() error {
	gs, err := c.uc.RegRead(unicorn.X86_REG_GS_BASE)
	fs, err2 := c.uc.RegRead(unicorn.X86_REG_FS_BASE)
	err = errors.Join(err, err2, c.uc.ContextRestore(c.booted),
		c.uc.RegWrite(unicorn.X86_REG_GS_BASE, gs), c.uc.RegWrite(unicorn.X86_REG_FS_BASE, fs))
	if err != nil {
		return engineError("take an exception", err)
	}
	return nil
}

// close frees the engine and what belongs to it.
func (c *cpu) close() {
	for _, s := range c.spare {
		C.free(unsafe.Pointer(s))
	}
	if !c.shares {
		_ = c.uc.Close() // nothing can be done about one that does not
	}
	C.kpl_env_free(c.c)
	C.free(unsafe.Pointer(c.c))
}

// maxDepth is how deep runs inside hooks may nest. The engine says 64, and
// crashes in the last of them.
const maxDepth = 63

// readRegs reads the engine's registers, all in one crossing.
func (c *cpu) readRegs() *x86.PtRegs {
	C.kpl_read_regs(c.c, &c.c.regs)
	return c.regs()
}

// regs is what was read last.
func (c *cpu) regs() *x86.PtRegs { return (*x86.PtRegs)(unsafe.Pointer(&c.c.regs)) }

// start lets the engine run from ip until it stops. c.c says why it did.
//
// The outermost run ends by a stop; a run inside a hook ends when it arrives at
// m.c.inner_end. stubs.go says why.
func (c *cpu) start(m *Machine, ip x86.Addr) {
	k := c.c
	k.miss, k.at, k.reason = 0, 0, C.KPL_NONE
	nested := k.depth > 0
	if !nested && c.translated(m) >= C.KPL_FLUSH_AT {
		C.kpl_cpu_drop_all(k)
	}
	if c.translated(m) > C.KPL_NEVER_ABOVE {
		k.reason = C.KPL_CROWDED
		return
	}
	if k.depth == maxDepth {
		k.reason, k.ip, c.failure = C.KPL_ENGINE, C.uint64_t(ip), unicorn.UcError(unicorn.ERR_RESOURCE)
		return
	}
	until := uint64(0)
	if nested {
		until = uint64(m.c.inner_end)
	}
	if k.broken != 0 {
		k.reason, k.ip, c.failure = C.KPL_ENGINE, C.uint64_t(ip), errBroken
		return
	}
	k.depth++
	err := c.begin(ip, until)
	k.depth--
	if k.broken != 0 {
		k.reason, k.ip, c.failure = C.KPL_ENGINE, C.uint64_t(ip), errBroken
		return
	}
	if k.reason != C.KPL_RETURN {
		c.classify(m, err)
	}
	if nested && k.reason != C.KPL_RETURN {
		c.takeBackStop(m)
	}
}

// begin lets the engine run from ip to until.
func (c *cpu) begin(ip x86.Addr, until uint64) error {
	if e := C.kpl_start(c.c, C.uint64_t(ip), C.uint64_t(until)); e != unicorn.ERR_OK {
		return unicorn.UcError(e)
	}
	return nil
}

// rescue makes an abort of the engine end its run, not the process.
var rescue = sync.OnceFunc(func() { C.kpl_rescue() })

// errBroken is the failure of an engine that has called abort (shim_rescue.c).
var errBroken = errors.New("the engine gave up while it translated, and cannot be used again")

// bufferSize is the size of the engine's buffer of translations, in bytes.
const bufferSize = C.KPL_BUFFER

// translated is the estimated size of what the engine has translated since its
// translations were dropped, in bytes.
func (c *cpu) translated(m *Machine) C.uint64_t { return m.c.translated - c.c.flushed }

// classify decides why a run ended, where the hooks did not say "returned".
func (c *cpu) classify(m *Machine, err error) {
	k := c.c
	if k.depth > 0 {
		k.ip = C.uint64_t(c.readRegs().IP) // callNested wants them all
	} else {
		k.ip = C.kpl_cpu_ip(k)
	}
	switch {
	case k.reason >= C.KPL_EXIT:
	case (k.miss == C.KPL_FILTERED || k.miss == C.KPL_NO_RAM) && errors.Is(err, unicorn.UcError(unicorn.ERR_EXCEPTION)):
		k.reason, k.addr = C.KPL_NO_PAGE, k.miss_addr
	case k.miss != 0 && errors.Is(err, unicorn.UcError(unicorn.ERR_EXCEPTION)):
		k.reason, k.addr, k.access, k.vector = C.KPL_FAULT, k.miss_addr, k.miss_access, VectorPage
		if !canonical(x86.Addr(k.addr)) {
			k.vector = VectorGP
		}
	case k.reason != C.KPL_NONE:
	case err != nil:
		k.reason, c.failure = C.KPL_ENGINE, err
	case k.ip == m.c.inner_end:
		k.reason = C.KPL_RETURN
	default:
		k.reason = C.KPL_HALT
	}
}

func canonical(a x86.Addr) bool { return x86.Addr(int64(a)<<16>>16) == a }

// takeBackStop clears the engine's request to stop. A run inside a hook that
// was stopped leaves it set, and it would end the outer run too, in a callout
// even in the middle of a block. A run that begins at its end clears it.
func (c *cpu) takeBackStop(m *Machine) {
	k := c.c
	reason, ip := k.reason, k.ip
	k.reason = C.KPL_NONE
	k.depth++
	err := c.begin(x86.Addr(m.c.inner_end), uint64(m.c.inner_end))
	k.depth--
	k.reason = reason
	if err == nil && k.in_callout == 0 {
		err = c.uc.RegWrite(unicorn.X86_REG_RIP, uint64(ip))
	}
	if err != nil {
		k.reason, c.failure = C.KPL_ENGINE, err
	}
}
