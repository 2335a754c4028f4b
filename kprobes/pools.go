package kprobes

import (
	"slices"

	"kprobelab/kprobes/pool"
	"kprobelab/x86"
)

// Executes holds the methods that a machine has beside Machine if it can tell of the execution of instructions.
type Executes interface {
	// OnExecuted calls fn before an instruction that ShowExecuted has named. ShowExecuted returns false if there are too many.
	OnExecuted(fn func(regs *x86.PtRegs)) (end func())
	ShowExecuted(at x86.Addr) bool
}

// pools follows the calls that return probes have an instance for, or lack one.
type pools struct {
	// tells is the machine, nil if it cannot tell of the return of a call without an instance.
	tells Executes
	place func(task int, regs *x86.PtRegs) pool.Place
	// lacking are the calls without an instance that have not returned, by the address to which they return.
	lacking map[x86.Addr][]lackingCall
}

// lackingCall is a call for which a pool had no instance. frame is the stack slot of its return address.
type lackingCall struct {
	account *pool.Account[int]
	task    int
	frame   x86.Addr
}

// FollowPools keeps accounts of the return probes that are registered later (Kretprobe.Usage). place tells about a task, and
// about its stack from a function's entry on. The guest is as without.
func (k *Kprobes) FollowPools(place func(task int, regs *x86.PtRegs) pool.Place) {
	k.pools = &pools{place: place, lacking: map[x86.Addr][]lackingCall{}}
	if tells, ok := k.m.(Executes); ok {
		k.pools.tells = tells
		tells.OnExecuted(k.returnsWithout)
	}
}

// Usage is the account of the probe's instances; false without FollowPools before its registration.
func (rp *Kretprobe) Usage() (u pool.Usage, ok bool) {
	if rp.account == nil {
		return u, false
	}
	u = rp.account.Usage
	u.Missed, u.MaxActive = rp.Nmissed, rp.MaxActive
	return u, true
}

// account begins the account of a return probe that is being registered.
func (k *Kprobes) account(rp *Kretprobe) {
	rp.account = nil
	if k.pools != nil {
		rp.account = &pool.Account[int]{}
	}
}

// holds: an instance is in use.
func (k *Kprobes) holds(rp *Kretprobe, i *Instance, regs *x86.PtRegs) {
	if i.account = rp.account; i.account != nil {
		k.enters(rp, i.Task, false, regs)
	}
}

func (k *Kprobes) enters(rp *Kretprobe, task int, lacks bool, regs *x86.PtRegs) {
	at := *regs
	at.IP = uint64(rp.KP.Addr) // an int3 is past it
	rp.account.Enter(task, lacks, func() pool.Place { return k.pools.place(task, &at) })
}

// gives: an instance is in the pool again.
func (i *Instance) gives() {
	if i.account != nil {
		i.account.Leave(i.Task, false)
		i.account = nil
	}
}

// lacks: there was no instance for a call.
func (k *Kprobes) lacks(cpu *cpuState, rp *Kretprobe, regs *x86.PtRegs) {
	if rp.account == nil {
		return
	}
	frame, task := x86.Addr(regs.SP), k.task()
	word, err := k.readWord(cpu, frame)
	to := x86.Addr(word)
	for i := k.head(task); i != nil; i = i.next { // another return probe of the function has the call
		if i.frame == frame && i.RetAddr != k.kret.trampoline {
			to = i.RetAddr
		}
	}
	// A call of this task further in the stack has ended, and was not seen to return.
	k.forgetLacking(func(c *lackingCall) bool {
		return c.task == task && c.account == rp.account && c.frame <= frame && sameStack(c.frame, frame)
	})
	if err != nil || k.pools.tells == nil || !k.pools.tells.ShowExecuted(to) {
		rp.account.AtLeast = true
		return
	}
	k.enters(rp, task, true, regs)
	k.pools.lacking[to] = append(k.pools.lacking[to], lackingCall{rp.account, task, frame})
}

// sameStack reports whether two addresses are of one stack.
func sameStack(a, b x86.Addr) bool { return a&^(x86.ThreadSize-1) == b&^(x86.ThreadSize-1) }

// returnsWithout is called before an instruction to which calls without an instance return.
func (k *Kprobes) returnsWithout(regs *x86.PtRegs) {
	at := x86.Addr(regs.IP)
	if len(k.pools.lacking[at]) == 0 {
		return
	}
	task := k.task()
	k.endLacking(at, func(c *lackingCall) bool { return c.task == task && c.frame+8 == x86.Addr(regs.SP) })
}

// forgetLacking ends the calls that which accepts.
func (k *Kprobes) forgetLacking(which func(*lackingCall) bool) {
	for at := range k.pools.lacking {
		k.endLacking(at, which)
	}
}

// endLacking ends the calls to an address that which accepts.
func (k *Kprobes) endLacking(at x86.Addr, which func(*lackingCall) bool) {
	list := slices.DeleteFunc(k.pools.lacking[at], func(c lackingCall) bool {
		if !which(&c) {
			return false
		}
		c.account.Leave(c.task, true)
		return true
	})
	if len(list) == 0 {
		delete(k.pools.lacking, at)
		return
	}
	k.pools.lacking[at] = list
}
