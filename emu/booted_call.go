//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/internal/contract"
	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Call calls a function on the stack of the task in which the dump stopped, below the task's own
// frames.
func (e *engine) Call(addr x86.Addr, args []uint64) (end x86.PtRegs, err error) {
	c := e.cur
	if e.b.lost != nil {
		return end, e.b.lost
	}
	if c.readRegs().CS&3 != 0 {
		return end, fmt.Errorf("the dump's task is in user mode, not inside a system call; --as TASK calls as another one: %w", errno.EINVAL)
	}
	before := e.interrupt(c)
	if err := e.host.Enter(c.n, addr, args); err != nil {
		return end, err
	}
	e.b.caller = e.Current()
	defer func() { e.b.caller = 0 }()
	if err := e.runBooted(c); err != nil {
		return end, err
	}
	end = *e.cur.readRegs()
	end.IP = uint64(e.c.outer_end)
	return end, e.putBack(before)
}

// userTables are the bits of CR3 that select the page tables of user mode (page table isolation,
// arch/x86/entry/calling.h).
const userTables = 1<<12 | 1<<11

// runBooted lets the guest run until the host's call has ended. If it fails before that, the
// machine is lost.
func (e *engine) runBooted(c *cpu) error {
	e.b.turnEnd = e.sh.Instrs + fromdump.Slice
	e.host.Begin(e.Current())
	out, err := e.host.Run(c.n, math.MaxUint64)
	e.settleViews()
	e.tellTaken()
	if errors.Is(err, machine.ErrClosed) {
		return err
	}
	if err == nil && out != contract.Returned {
		err = fmt.Errorf("the guest used a hypercall that a booted kernel has not: %w", errno.EINVAL)
	}
	if err != nil {
		err = e.host.Failed(err)
		e.b.lost = fmt.Errorf("%w, which ended so: %w", machine.ErrLost, err)
	}
	return err
}

// OnHostCall makes the machine call fn when a program of a booted kernel makes a system call whose
// number has group in its upper half: no kernel has such numbers. fn puts the result into regs.AX.
// If done is true, the run of Resume ends.
func (e *engine) OnHostCall(group uint16, fn func(regs *x86.PtRegs) (done bool)) {
	e.c.host_calls = C.uint32_t(group)
	e.b.hostCall = fn
}

// OnSystemCalls makes the machine call fn when a program makes a system call of one of the numbers, before the kernel
// gets it. No numbers end that.
func (e *engine) OnSystemCalls(numbers []uint64, fn func(regs *x86.PtRegs)) {
	e.c.seen_calls = [8]C.uint64_t{}
	for _, n := range numbers {
		e.c.seen_calls[n/64] |= 1 << (n % 64)
	}
	e.b.seeCall = fn
}

//export kplSeeSyscall
func kplSeeSyscall(h C.uintptr_t, regs *C.kpl_regs) {
	e := engineOf(h)
	e.host.Call(func() contract.HostAnswer {
		e.b.seeCall((*x86.PtRegs)(unsafe.Pointer(regs)))
		return contract.Resume
	})
}

// OnExecuted makes the machine call fn before an instruction is executed, in place of the fn before.
func (e *engine) OnExecuted(fn func(regs *x86.PtRegs)) { e.b.executed = fn }

// ShowExecuted adds an instruction to the ones of OnExecuted.
func (e *engine) ShowExecuted(at x86.Addr) bool {
	if e.b.shown[at] {
		return true
	}
	if len(e.b.shown) >= maxHooked {
		return false
	}
	e.b.shown[at] = true
	C.kpl_hook_shown(e.cur.c, C.uint64_t(at))
	C.kpl_cpu_drop(e.cur.c, C.uint64_t(at), C.uint64_t(at+1))
	return true
}

//export kplExecuted
func kplExecuted(h C.uintptr_t, regs *C.kpl_regs) {
	e := engineOf(h)
	if e.b.executed == nil {
		return
	}
	e.host.Call(func() contract.HostAnswer {
		e.b.executed((*x86.PtRegs)(unsafe.Pointer(regs)))
		return contract.Resume
	})
}

//export kplSyscall
func kplSyscall(h C.uintptr_t, cpu C.int, regs *C.kpl_regs) C.int {
	e := engineOf(h)
	return C.int(e.host.Call(func() contract.HostAnswer { return e.hostCall((*x86.PtRegs)(unsafe.Pointer(regs))) }))
}

func (e *engine) hostCall(regs *x86.PtRegs) contract.HostAnswer {
	if x86.Addr(regs.IP) == x86.Addr(e.c.own_syscall) {
		return e.systemCallReturns(regs)
	}
	if e.b.hostCall(regs) {
		return contract.Stop
	}
	return contract.Resume
}

// SystemCalls makes a system call n times through the kernel's own entry.
func (e *engine) SystemCalls(n, nr uint64, args []uint64) (int64, error) {
	if e.b.lost != nil {
		return 0, e.b.lost
	}
	c := e.cur
	user, err := e.kernel().UserRegs(x86.Addr(c.readRegs().SP))
	if err != nil {
		return 0, err
	}
	before := e.interrupt(c)
	// The kernel enters at the top of the task's stack, where the interrupted call is.
	top := fromdump.StackTop(x86.Addr(c.regs().SP))
	stack := make([]byte, top.Sub(x86.Addr(c.regs().SP)))
	if err := e.host.Machine().ReadMem(x86.Addr(c.regs().SP), stack); err != nil {
		return 0, err
	}
	at := x86.Addr(c.regs().SP)
	e.enterUser(c, user, max(n, 1), nr, args)
	defer func() { e.b.caller = 0 }()
	if err := e.runBooted(c); err != nil {
		return 0, err
	}
	ret := int64(e.cur.readRegs().AX)
	if err := e.putBack(before); err != nil {
		return 0, err
	}
	return ret, e.host.Machine().WriteMem(at, stack)
}

// makeSystemCall puts the code of systemCall into user memory.
func (e *engine) makeSystemCall() error {
	at, err := e.host.UserCode(fromdump.SystemCall)
	e.c.own_syscall = C.uint64_t(at + fromdump.OwnSyscall)
	return err
}

// enterUser puts the CPU into user mode, before the system calls.
func (e *engine) enterUser(c *cpu, user *x86.PtRegs, n, nr uint64, args []uint64) {
	regs := fromdump.Caller(x86.Addr(e.c.own_syscall)-fromdump.OwnSyscall, user.SP, n, nr, args)
	kernel, userGS := C.kpl_msr(c.c, msrGSBase), C.kpl_msr(c.c, msrKernelGS)
	C.kpl_set_msr(c.c, msrGSBase, userGS)
	C.kpl_set_msr(c.c, msrKernelGS, kernel)
	C.kpl_set_mode(c.c, x86.UserCS, x86.UserDS)
	C.kpl_change_all(c.c, (*C.kpl_regs)(unsafe.Pointer(&regs)))
	e.b.caller = e.Current()
}

// systemCallReturns is the end of the host's system call. A child that it has forked
// comes here, too, and is let go.
func (e *engine) systemCallReturns(regs *x86.PtRegs) contract.HostAnswer {
	if e.Current() == e.b.caller {
		return contract.Stop
	}
	const exit = 60
	regs.AX, regs.DI = exit, 0
	return contract.NotMine
}

// Resume lets the guest go on from where it stands, until a host call is done
// (OnHostCall) or the CPU arrives at stop, if that is not 0. It reports whether it
// arrived.
func (e *engine) Resume(stop x86.Addr) (bool, error) {
	if e.b.lost != nil {
		return false, e.b.lost
	}
	c := e.cur
	if stop != 0 {
		e.hookStop(stop)
		if x86.Addr(c.readRegs().IP) == stop {
			if err := e.leave(c); err != nil {
				return false, err
			}
		}
	}
	e.c.stop_at_ip = C.uint64_t(stop)
	defer func() { e.c.stop_at_ip = 0 }()
	err := e.runBooted(c)
	return err == nil && stop != 0 && x86.Addr(C.kpl_cpu_ip(e.cur.c)) == stop, err
}

// hookStop makes a run that is to end at an address end there.
func (e *engine) hookStop(at x86.Addr) {
	if !e.b.hooked[at] {
		e.b.hooked[at] = true
		C.kpl_hook_stop(e.cur.c, C.uint64_t(at))
		C.kpl_cpu_drop(e.cur.c, C.uint64_t(at), C.uint64_t(at+1))
	}
}

// leave runs one block, so that the CPU is not any more where the next run ends.
func (e *engine) leave(c *cpu) error {
	_, err := e.host.Run(c.n, e.sh.Instrs+1)
	return err
}

// Stopped returns the registers of the current CPU.
func (e *engine) Stopped() x86.PtRegs { return *e.cur.readRegs() }

// GSBase is the kernel's GS base of a CPU.
func (e *engine) GSBase(cpu int) x86.Addr { return e.cpus[cpu].gs }
