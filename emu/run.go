//go:build unicorn && cgo && linux && amd64

package emu

// #cgo nocallback kpl_cpu_drop
// #cgo nocallback kpl_forget_counts
// #include "shim.h"
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/internal/contract"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Start lets the CPU run from ip until there is something to decide. A booted
// machine decides more by itself.
func (c *cpu) Start(ip x86.Addr) contract.Exit {
	if c.e.b != nil {
		return c.e.startBooted(c, ip)
	}
	c.start(ip)
	for c.c.reason == C.KPL_AGAIN {
		ip = x86.Addr(c.c.ip)
		if c.c.arg > 0 {
			c.Drop(ip, int(c.c.arg))
		}
		c.start(ip)
	}
	return c.exit()
}

// exit returns the end of the run for the machine.
func (c *cpu) exit() contract.Exit {
	k := c.c
	ip := x86.Addr(k.ip)
	switch k.reason {
	case C.KPL_RETURN:
		return contract.Exit{Why: contract.Returned}
	case C.KPL_YIELD:
		return contract.Exit{Why: contract.Yielded}
	case C.KPL_SLEEP:
		return contract.Exit{Why: contract.Slept, Arg: uint64(k.arg)}
	case C.KPL_EXIT:
		return contract.Exit{Why: contract.Exited}
	case C.KPL_TIME:
		return contract.Exit{Why: contract.TimeUp, IP: ip}
	case C.KPL_CROWDED:
		if k.depth > 0 {
			return contract.Exit{Why: contract.Failed, Err: machine.ErrCrowded}
		}
		return contract.Exit{Why: contract.Again, IP: ip}
	case C.KPL_FAULT:
		return contract.Exit{Why: contract.Faulted, IP: ip}
	case C.KPL_HALT:
		return contract.Exit{Why: contract.Halted, IP: ip}
	}
	return contract.Exit{Why: contract.Failed, Err: engineError("run at "+c.e.host.Machine().Symbolize(ip), c.failure)}
}

// start lets the engine run from ip until it stops. c.c says why it did.
//
// The outermost run ends by a stop; a run inside a hook ends when it arrives at
// c.e.c.inner_end. stubs.go says why.
func (c *cpu) start(ip x86.Addr) {
	k := c.c
	c.e.cur, c.read = c, false
	k.miss, k.at, k.reason = 0, 0, C.KPL_NONE
	nested := k.depth > 0
	if b := k.buffer; !nested && (b.drop != 0 || filled(b) > c.e.c.room.flush_at) {
		C.kpl_cpu_drop_all(k)
	}
	if filled(k.buffer) > c.e.c.room.never_above {
		k.reason = C.KPL_CROWDED
		return
	}
	if k.depth == contract.MaxDepth {
		k.reason, k.ip, c.failure = C.KPL_ENGINE, C.uint64_t(ip), unicorn.UcError(unicorn.ERR_RESOURCE)
		return
	}
	until := uint64(0)
	switch {
	case nested:
		until = uint64(c.e.c.inner_end)
	case k.user != 0:
		until = uint64(k.until)
	}
	if k.broken != 0 {
		k.reason, k.ip, c.failure = C.KPL_ENGINE, C.uint64_t(ip), errBroken
		return
	}
	k.depth++
	err := c.begin(ip, until)
	if c.e.c.watches != nil {
		completed := C.int(1)
		if err != nil {
			completed = 0
		}
		C.kpl_watch_end(k, completed)
	}
	k.depth--
	c.read = false
	if k.broken != 0 {
		k.reason, k.ip, c.failure = C.KPL_ENGINE, C.uint64_t(ip), errBroken
		return
	}
	if k.reason != C.KPL_RETURN {
		c.classify(err)
	}
	if nested && k.reason != C.KPL_RETURN {
		c.takeBackStop()
	}
}

// begin lets the engine run from ip to until.
func (c *cpu) begin(ip x86.Addr, until uint64) error {
	if e := C.kpl_start(c.c, C.uint64_t(ip), C.uint64_t(until)); e != unicorn.ERR_OK {
		return unicorn.UcError(e)
	}
	return nil
}

// prepare makes an abort of the engine end its run, not the process, and mends the engine's helpers.
var prepare = sync.OnceFunc(func() {
	C.kpl_rescue()
	C.kpl_learn_helpers()
})

// errBroken is the failure of an engine that has called abort (shim_rescue.c).
var errBroken = errors.New("the engine gave up while it translated, and cannot be used again")

// The rooms for the translations of a machine's functions, and of a booted kernel or a program.
var (
	roomOfFunctions = C.kpl_room{size: 128 << 20, flush_at: 8 << 20, never_above: 48 << 20}
	roomOfPrograms  = C.kpl_room{size: 256 << 20, flush_at: 100 << 20, never_above: 120 << 20}
)

// filled is the part of a buffer that is filled, in bytes.
func filled(b *C.kpl_buffer) C.uint64_t { return b.high - b.low + b.since }

// classify decides why a run ended, where the hooks did not say "returned".
func (c *cpu) classify(err error) {
	k := c.c
	if k.depth > 0 {
		k.ip = C.uint64_t(c.readRegs().IP) // who began the run wants them all
		c.read = true
	} else {
		k.ip = C.kpl_cpu_ip(k)
	}
	switch {
	case k.reason >= C.KPL_EXIT:
	case (k.miss == C.KPL_FILTERED || k.miss == C.KPL_NO_RAM) && errors.Is(err, unicorn.UcError(unicorn.ERR_EXCEPTION)):
		k.reason, k.addr = C.KPL_NO_PAGE, k.miss_addr
	case k.miss != 0 && errors.Is(err, unicorn.UcError(unicorn.ERR_EXCEPTION)):
		k.reason, k.addr, k.access, k.vector = C.KPL_FAULT, k.miss_addr, k.miss_access, machine.VectorPage
		if !canonical(x86.Addr(k.addr)) {
			k.vector = machine.VectorGP
		}
	case k.reason != C.KPL_NONE:
	case err != nil:
		k.reason, c.failure = C.KPL_ENGINE, err
	case k.ip == c.e.c.inner_end:
		k.reason = C.KPL_RETURN
	case k.user != 0: // hlt is an exception there: it is where a run was to end
		k.reason, k.until, k.arg = C.KPL_AGAIN, 0, 0
	default:
		k.reason = C.KPL_HALT
	}
}

func canonical(a x86.Addr) bool { return x86.Addr(int64(a)<<16>>16) == a }

// takeBackStop clears the engine's request to stop. A run inside a hook that
// was stopped leaves it set, and it would end the outer run too, in a callout
// even in the middle of a block. A run that begins at its end clears it.
func (c *cpu) takeBackStop() {
	k := c.c
	reason, ip := k.reason, k.ip
	k.reason = C.KPL_NONE
	k.depth++
	err := c.begin(x86.Addr(c.e.c.inner_end), uint64(c.e.c.inner_end))
	k.depth--
	k.reason = reason
	if err == nil && k.in_callout == 0 {
		err = c.uc.RegWrite(unicorn.X86_REG_RIP, uint64(ip))
	}
	if err != nil {
		k.reason, c.failure = C.KPL_ENGINE, err
	}
}

// Fault gives handle the exception that ended the run.
func (c *cpu) Fault(handle func(f *machine.Fault, regs *x86.PtRegs)) (x86.Addr, error) {
	f := &machine.Fault{Vector: int(c.c.vector), Access: accessOf(int(c.c.access))}
	page := x86.Addr(c.c.addr)
	st := c.takeState()
	defer c.putState(st)
	C.kpl_save(c.c, st)
	st.regs.ip = c.c.ip // not the engine's: a run inside a callout has put that back
	if c.c.at != 0 {
		st.regs.ip = c.c.at
	}
	if err := c.forgetException(); err != nil {
		return 0, err
	}
	regs := (*x86.PtRegs)(unsafe.Pointer(&st.regs))
	if f.Access != machine.AccessNone {
		f.Addr = c.faultAddr(regs, page, f.Access)
	}
	handle(f, regs)
	c.read = false
	C.kpl_load(c.c, st, 1-c.c.in_callout)
	return x86.Addr(regs.IP), nil
}

// accessOf is the access that a page's attribute allows.
func accessOf(attr int) machine.Access {
	switch attr {
	case C.KPL_R:
		return machine.AccessRead
	case C.KPL_W:
		return machine.AccessWrite
	case C.KPL_X:
		return machine.AccessFetch
	}
	return machine.AccessNone
}

// Drop makes the CPU see n bytes of text as they are.
func (c *cpu) Drop(addr x86.Addr, n int) {
	end := addr.Add(int64(n))
	C.kpl_cpu_drop(c.c, C.uint64_t(addr), C.uint64_t(end))
	C.kpl_forget_counts(c.e.c, C.uint64_t(addr), C.uint64_t(end))
}
