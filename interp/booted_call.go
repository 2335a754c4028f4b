package interp

import (
	"errors"
	"fmt"
	"math"

	"kprobelab/errno"
	"kprobelab/internal/contract"
	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Call calls a function on the stack of the task in which the dump stopped, below the task's own
// frames.
func (e bootedEngine) Call(addr x86.Addr, args []uint64) (end x86.PtRegs, err error) {
	b, c := e.b, e.b.cur
	if b.lost != nil {
		return end, b.lost
	}
	if c.user {
		return end, fmt.Errorf("the dump's task is in user mode, not inside a system call; --as TASK calls as another one: %w", errno.EINVAL)
	}
	before := b.interrupted()
	if err := e.host.Enter(c.n, addr, args); err != nil {
		return end, err
	}
	b.caller = b.running()
	defer func() { b.caller = 0 }()
	if err := b.run(c); err != nil {
		return end, err
	}
	end = *b.cur.Regs()
	end.IP = uint64(e.OuterEnd)
	b.putBack(before)
	return end, nil
}

// run lets the guest run until the host's call has ended. If it fails before that, the
// machine is lost.
func (b *booted) run(c *cpu) error {
	e := b.e
	b.turnEnd = e.Instrs + fromdump.Slice
	e.host.Begin(b.running())
	out, err := e.host.Run(c.n, math.MaxUint64)
	b.tellTaken()
	if errors.Is(err, machine.ErrClosed) {
		return err
	}
	if err == nil && out != contract.Returned {
		err = fmt.Errorf("the guest used a hypercall that a booted kernel has not: %w", errno.EINVAL)
	}
	if err != nil {
		err = e.host.Failed(err)
		b.lost = fmt.Errorf("%w, which ended so: %w", machine.ErrLost, err)
	}
	return err
}

// SystemCalls makes a system call n times through the kernel's own entry.
func (e bootedEngine) SystemCalls(n, nr uint64, args []uint64) (int64, error) {
	b, c := e.b, e.b.cur
	if b.lost != nil {
		return 0, b.lost
	}
	sp := x86.Addr(c.r[rsp])
	user, err := b.guest.UserRegs(sp)
	if err != nil {
		return 0, err
	}
	before := b.interrupted()
	// The kernel enters at the top of the task's stack, where the interrupted call is.
	stack := make([]byte, fromdump.StackTop(sp).Sub(sp))
	if err := e.host.Machine().ReadMem(sp, stack); err != nil {
		return 0, err
	}
	b.enterUser(c, user.SP, max(n, 1), nr, args)
	defer func() { b.caller = 0 }()
	if err := b.run(c); err != nil {
		return 0, err
	}
	ret := int64(b.cur.r[rax])
	b.putBack(before)
	return ret, e.host.Machine().WriteMem(sp, stack)
}

// enterUser puts the CPU into user mode, before the system calls.
func (b *booted) enterUser(c *cpu, sp, n, nr uint64, args []uint64) {
	b.caller = b.running()
	regs := fromdump.Caller(x86.Addr(b.ownSyscall-fromdump.OwnSyscall), sp, n, nr, args)
	c.gs, c.kernelGS = c.kernelGS, c.gs
	c.setRegs(&regs)
	c.ip = regs.IP
	c.setPrivilege(x86.UserCS, x86.UserDS)
}

// hostCall reports whether the host takes the system call: one that it made itself has returned, or
// one whose number is for it.
func (c *cpu) hostCall(o *op) bool {
	b := c.e.b
	nr := c.r[rax]
	if o.ip != b.ownSyscall && (b.hostGroup == 0 || nr>>16 != b.hostGroup) {
		if nr < 512 && b.seen512[nr/64]>>(nr%64)&1 != 0 {
			c.show(o, b.onSeen)
		}
		return false
	}
	regs := c.takeFrame()
	defer c.putFrame(regs)
	c.regs(regs)
	regs.IP = o.ip
	answer := c.host(func(h *machine.Host) contract.HostAnswer {
		return h.Call(func() contract.HostAnswer { return b.answerHost(regs) })
	})
	if answer == contract.NotMine { // the kernel's after all, as the host has changed it
		c.setRegs(regs)
		return false
	}
	c.r[rax], c.r[rcx], c.ip = regs.AX, o.next, o.next
	if answer != contract.Resume && c.reason == reasonNone {
		c.reason = reasonReturn
	}
	return true
}

// answerHost is the host's answer to a system call for it.
func (b *booted) answerHost(regs *x86.PtRegs) contract.HostAnswer {
	if regs.IP != b.ownSyscall {
		if b.onHost(regs) {
			return contract.Stop
		}
		return contract.Resume
	}
	if b.running() == b.caller {
		return contract.Stop
	}
	const exit = 60 // a child that the system call has forked comes here, too, and is let go
	regs.AX, regs.DI = exit, 0
	return contract.NotMine
}

// show shows the registers before an instruction to a function of the host's.
func (c *cpu) show(o *op, fn func(*x86.PtRegs)) {
	if fn == nil {
		return
	}
	regs := c.takeFrame()
	defer c.putFrame(regs)
	c.regs(regs)
	regs.IP = o.ip
	c.host(func(h *machine.Host) contract.HostAnswer {
		return h.Call(func() contract.HostAnswer {
			fn(regs)
			return contract.Resume
		})
	})
}

// OnHostCall makes the machine call fn for system calls with group in the upper half of their numbers.
func (e bootedEngine) OnHostCall(group uint16, fn func(regs *x86.PtRegs) (done bool)) {
	e.b.hostGroup, e.b.onHost = uint64(group), fn
}

// OnSystemCalls makes the machine call fn when a program makes a system call of one of the numbers, before the kernel
// gets it. No numbers end that.
func (e bootedEngine) OnSystemCalls(numbers []uint64, fn func(regs *x86.PtRegs)) {
	e.b.seen512 = [8]uint64{}
	for _, n := range numbers {
		e.b.seen512[n/64] |= 1 << (n % 64)
	}
	e.b.onSeen = fn
}

// OnExecuted makes the machine call fn before an instruction is executed, in place of the fn before.
func (e bootedEngine) OnExecuted(fn func(regs *x86.PtRegs)) { e.b.executed = fn }

// maxShown is the most instructions of ShowExecuted, as on the engine in C.
const maxShown = 1024

// ShowExecuted adds an instruction to the ones of OnExecuted.
func (e bootedEngine) ShowExecuted(at x86.Addr) bool {
	b := e.b
	if b.shown[at] {
		return true
	}
	if len(b.shown) >= maxShown {
		return false
	}
	b.shown[at] = true
	b.addHook(at, func(c *cpu, o *op) bool {
		c.show(o, b.executed)
		return true
	})
	return true
}

// Resume lets the guest go on from where it stands, until a host call is done
// (OnHostCall) or the CPU arrives at stop, if that is not 0. It reports whether it
// arrived.
func (e bootedEngine) Resume(stop x86.Addr) (bool, error) {
	b := e.b
	if b.lost != nil {
		return false, b.lost
	}
	if stop != 0 {
		b.hookStop(stop)
		if x86.Addr(b.cur.ip) == stop { // one block, so that the CPU is not any more where the run ends
			if _, err := e.host.Run(b.cur.n, e.Instrs+1); err != nil {
				return false, err
			}
		}
	}
	b.stopAt = stop
	defer func() { b.stopAt = 0 }()
	err := b.run(b.cur)
	return err == nil && stop != 0 && x86.Addr(b.cur.ip) == stop, err
}

// hookStop makes a run that is to end at an address end there.
func (b *booted) hookStop(at x86.Addr) {
	if b.stops[at] {
		return
	}
	b.stops[at] = true
	b.addHook(at, func(c *cpu, o *op) bool {
		if at != b.stopAt || c.depth != 1 {
			return true
		}
		c.reason = reasonReturn
		return false
	})
}

func (e bootedEngine) Alone(on bool)           { e.b.alone = on }
func (e bootedEngine) Stopped() x86.PtRegs     { return *e.b.cur.Regs() }
func (e bootedEngine) GSBase(cpu int) x86.Addr { return e.b.gs[cpu] }

// Interrupts counts the interrupts since the machine was made or restored.
func (e bootedEngine) Interrupts() (n, digest uint64) { return e.b.interrupts, e.b.digest }

// DirectMapped returns the address in the guest's map of all physical memory of the byte that the
// running task sees at addr.
func (e bootedEngine) DirectMapped(addr x86.Addr) (x86.Addr, error) {
	p, what := e.b.walk(e.b.cur.sys.cr[3], uint64(addr), attrR, 0, false)
	if what != foundPage {
		return 0, fmt.Errorf("no physical memory at %s: %w", addr, errno.EFAULT)
	}
	return e.b.direct + x86.Addr(p.pa), nil
}
