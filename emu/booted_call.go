//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/x86"
)

// ErrLost: an earlier run ended before the task that it began in came back. A booted
// machine then has to be restored, or made anew.
var ErrLost = errors.New("the guest is in the middle of an earlier run")

// callBooted is CallAddr on a booted kernel: on the stack of the task that the dump
// stopped in, below what the task has there.
func (m *Machine) callBooted(addr x86.Addr, args []uint64) (uint64, error) {
	c := m.cur
	if m.b.lost != nil {
		return 0, m.b.lost
	}
	if c.readRegs().CS&3 != 0 {
		return 0, fmt.Errorf("the dump's task is in user mode, not inside a system call: %w", errno.EINVAL)
	}
	before := m.interrupt(c)
	sp := (x86.Addr(c.regs().SP) - redZone) &^ 15
	if err := m.enter(c, sp, args); err != nil {
		return 0, err
	}
	C.kpl_cpu_set_ip(c.c, C.uint64_t(addr))
	if err := m.runBooted(c); err != nil {
		return 0, err
	}
	m.last = *m.cur.readRegs()
	m.last.IP = uint64(m.c.outer_end)
	return m.last.AX, m.putBack(before)
}

// userTables are the bits of CR3 that say: those of user mode (page table isolation,
// arch/x86/entry/calling.h).
const userTables = 1<<12 | 1<<11

// runBooted lets the guest run until what the host began has come to its end. If it
// fails before that, the machine is lost.
func (m *Machine) runBooted(c *cpu) error {
	m.allow()
	defer m.startTimer()()
	m.b.turnEnd = uint64(m.c.instrs) + bootedSlice
	out, err := m.run(c, x86.Addr(C.kpl_cpu_ip(c.c)), math.MaxUint64)
	if m.closed {
		return ErrClosed
	}
	if err == nil && out != returned {
		err = fmt.Errorf("the guest used a hypercall that a booted kernel has not: %w", errno.EINVAL)
	}
	if err != nil {
		m.b.lost = fmt.Errorf("%w, which ended so: %w", ErrLost, err)
	}
	return err
}

// OnHostCall makes the machine call fn when a program of a booted kernel makes a
// system call whose number has group in its upper half: no kernel has such. fn changes
// regs.AX to what it returns. Where done is true, the run of Resume ends.
func (m *Machine) OnHostCall(group uint16, fn func(regs *x86.PtRegs) (done bool)) {
	m.c.host_calls = C.uint32_t(group)
	m.b.hostCall = fn
}

//export kplSyscall
func kplSyscall(h C.uintptr_t, cpu C.int, regs *C.kpl_regs) (answer C.int) {
	m, returned := machineOf(h), false
	defer m.border(&answer, &returned)
	answer = m.hostCall((*x86.PtRegs)(unsafe.Pointer(regs)))
	returned = true
	return answer
}

func (m *Machine) hostCall(regs *x86.PtRegs) C.int {
	if x86.Addr(regs.IP) == x86.Addr(m.c.own_syscall) {
		return m.systemCallReturns(regs)
	}
	done := m.b.hostCall(regs)
	switch {
	case m.err != nil:
		return C.KPL_STOP
	case done:
		return C.KPL_STOP
	}
	return C.KPL_RESUME
}

// systemCall is user code that makes a system call, and another one by which the host
// sees that it has returned.
var systemCall = []byte{0x0f, 0x05, 0x0f, 0x05, 0xeb, 0xfe} // syscall; syscall; jmp .

// The selectors of 64-bit user code (arch/x86/include/asm/segment.h).
const (
	userCS = 0x33
	userDS = 0x2b
)

// SystemCall makes a system call as the task that the dump stopped in, through the
// kernel's own entry. The result is what user mode gets in rax: a negative errno where
// it failed.
func (m *Machine) SystemCall(nr uint64, args ...uint64) (int64, error) {
	if err := m.outside(); err != nil {
		return 0, err
	}
	if m.b == nil {
		return 0, fmt.Errorf("the kernel has not booted: %w", errno.EINVAL)
	}
	outermost, err := m.take()
	if err != nil {
		return 0, err
	}
	defer m.give(outermost)
	if m.b.lost != nil {
		return 0, m.b.lost
	}
	c := m.cur
	user, err := m.userRegs(x86.Addr(c.readRegs().SP))
	if err != nil {
		return 0, err
	}
	before := m.interrupt(c)
	// The kernel enters at the top of the task's stack, where the interrupted call is.
	top := (x86.Addr(c.regs().SP) | (ThreadSize - 1)) + 1
	stack := make([]byte, top.Sub(x86.Addr(c.regs().SP)))
	if err := m.ReadMem(x86.Addr(c.regs().SP), stack); err != nil {
		return 0, err
	}
	at := x86.Addr(c.regs().SP)
	m.enterUser(c, user, nr, args)
	if err := m.runBooted(c); err != nil {
		return 0, err
	}
	ret := int64(m.cur.readRegs().AX)
	if err := m.putBack(before); err != nil {
		return 0, err
	}
	return ret, m.WriteMem(at, stack)
}

// userRegs is the frame of the task's user mode: at the top of its stack, below what
// kernels with FRED leave free there.
func (m *Machine) userRegs(sp x86.Addr) (*x86.PtRegs, error) {
	top := (sp | (ThreadSize - 1)) + 1
	for _, padding := range []x86.Addr{0, 16} {
		var b [x86.PtRegsSize]byte
		if m.ReadMem(top-padding-x86.PtRegsSize, b[:]) != nil {
			continue
		}
		if r := (*x86.PtRegs)(unsafe.Pointer(&b[0])); r.CS == userCS && r.SS == userDS {
			regs := *r
			return &regs, nil
		}
	}
	return nil, fmt.Errorf("the dump's task is not in a system call of a 64-bit program: %w", errno.EINVAL)
}

// makeSystemCall puts the code of systemCall into user memory.
func (m *Machine) makeSystemCall() error {
	at, err := m.user.pages(PageSize)
	if err != nil {
		return err
	}
	m.user.r.set(at, at+PageSize, attrX)
	m.c.own_syscall = C.uint64_t(at + 2)
	return m.PokeText(at, systemCall)
}

// enterUser puts the CPU into user mode, before the system call.
func (m *Machine) enterUser(c *cpu, user *x86.PtRegs, nr uint64, args []uint64) {
	var six [6]uint64
	copy(six[:], args)
	regs := x86.PtRegs{
		AX: nr, DI: six[0], SI: six[1], DX: six[2], R10: six[3], R8: six[4], R9: six[5],
		SP: user.SP, Flags: x86.FlagIF | 2, IP: uint64(m.c.own_syscall) - 2,
	}
	kernel, userGS := C.kpl_msr(c.c, msrGSBase), C.kpl_msr(c.c, msrKernelGS)
	C.kpl_set_msr(c.c, msrGSBase, userGS)
	C.kpl_set_msr(c.c, msrKernelGS, kernel)
	C.kpl_set_mode(c.c, userCS, userDS)
	C.kpl_change_all(c.c, (*C.kpl_regs)(unsafe.Pointer(&regs)))
	m.b.caller = m.current(c)
}

// systemCallReturns is the end of the host's system call. A child that it has forked
// comes here, too, and is let go.
func (m *Machine) systemCallReturns(regs *x86.PtRegs) C.int {
	if m.current(m.cur) == m.b.caller {
		return C.KPL_STOP
	}
	const exit = 60
	regs.AX, regs.DI = exit, 0
	return C.KPL_NOT_MINE
}

// Resume lets the guest go on from where it stands, until a host call is done
// (OnHostCall) or the CPU arrives at stop, if that is not 0. It reports whether it
// arrived.
func (m *Machine) Resume(stop x86.Addr) (bool, error) {
	if err := m.outside(); err != nil {
		return false, err
	}
	if m.b == nil {
		return false, fmt.Errorf("the kernel has not booted: %w", errno.EINVAL)
	}
	outermost, err := m.take()
	if err != nil {
		return false, err
	}
	defer m.give(outermost)
	if m.b.lost != nil {
		return false, m.b.lost
	}
	c := m.cur
	if stop != 0 {
		m.hookStop(stop)
		if x86.Addr(c.readRegs().IP) == stop {
			if err := m.leave(c); err != nil {
				return false, err
			}
		}
	}
	m.c.stop_at_ip = C.uint64_t(stop)
	defer func() { m.c.stop_at_ip = 0 }()
	err = m.runBooted(c)
	return err == nil && stop != 0 && x86.Addr(C.kpl_cpu_ip(m.cur.c)) == stop, err
}

// hookStop makes a run that is to end at an address end there.
func (m *Machine) hookStop(at x86.Addr) {
	if !m.b.hooked[at] {
		m.b.hooked[at] = true
		C.kpl_hook_stop(m.cur.c, C.uint64_t(at))
		C.kpl_cpu_drop(m.cur.c, C.uint64_t(at), C.uint64_t(at+1))
	}
}

// leave runs one block, so that the CPU is not any more where the next run ends.
func (m *Machine) leave(c *cpu) error {
	m.allow()
	_, err := m.run(c, x86.Addr(C.kpl_cpu_ip(c.c)), uint64(m.c.instrs)+1)
	return err
}

// Stopped are the registers of the CPU that the machine stands in.
func (m *Machine) Stopped() x86.PtRegs {
	if m.c == nil {
		return x86.PtRegs{}
	}
	return *m.cur.readRegs()
}
