package interp

import (
	"fmt"

	"kprobelab/internal/contract"
	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

// loopBooted runs block after block.
func (c *cpu) loopBooted() {
	e, b := c.e, c.e.b
	inner := c.depth > 1
	for {
		switch {
		case c.reason != reasonNone:
			return
		case c.sys.hits != 0 && e.watch.off == 0:
			c.debugTrap()
			continue
		case inner && c.ip == uint64(e.InnerEnd):
			c.reason = reasonReturn
			return
		case e.Instrs >= e.StopAt.Load() && c.due():
			continue
		}
		stepping := c.flags&x86.FlagTF != 0
		alone := stepping || c.single
		k := b.recent[slotOf(c.ip)]
		if k == nil || k.pc != c.ip || k.view != c.view || alone {
			var ok bool
			if k, ok = c.bootedBlock(c.ip, alone); !ok {
				if c.event.kind == eventFault {
					c.reason = reasonFault
				}
				continue
			}
		}
		c.alone, c.single = c.single, false
		c.running = k
		e.Begun = e.Instrs
		ran := c.runCounted(k)
		if ran && stepping && c.reason == reasonNone {
			c.trap(machine.VectorDebug)
		}
	}
}

// runCounted counts a block and runs it.
func (c *cpu) runCounted(k *block) bool {
	e := c.e
	switch {
	case e.watch.on():
		return c.runWatching(k)
	case e.opt.EveryInstruction:
		return c.runCounting(k)
	case e.opt.FreeHits && x86.Addr(k.pc).In(e.host.Exec().Start, e.host.Exec().End):
	default:
		e.Instrs += uint64(len(k.ops))
	}
	e.Work += k.work
	return c.runBlock(k)
}

// due does the pending work before a block: it returns true if the loop has to look again.
func (c *cpu) due() bool {
	e, b := c.e, c.e.b
	if b.board.Turn || e.Instrs >= b.board.Limit || e.Work > e.Allowance || e.Expired.Load() != 0 {
		c.reason = reasonTime
		return true
	}
	// A handler of the host's runs as the kernel's does, with interrupts off.
	taken := c.depth == 1 && b.board.Pending(c.n) && c.interrupt()
	b.board.Aim()
	return taken
}

// interrupt delivers an interrupt that waits, if the CPU takes interrupts. It reports whether it was.
func (c *cpu) interrupt() bool {
	b := c.e.b
	apic := b.board.CPU(c.n)
	vector := apic.Next()
	switch {
	case apic.NMI:
		apic.NMI = false
		c.enter(vectorNMI, fromdump.NoCode, c.ip)
		return true
	case vector < 0, c.flags&x86.FlagIF == 0, c.flags&x86.FlagTF != 0, c.afterSti():
		return false
	}
	apic.Take(vector)
	b.interrupts++
	b.digest = fnv(fnv(fnv(b.digest, uint64(vector)), b.board.TSC()), c.ip)
	c.enter(vector, fromdump.NoCode, c.ip)
	return true
}

// afterSti: sti lets one more instruction run: hlt, in the idle loop.
func (c *cpu) afterSti() bool {
	p := c.e.page(x86.Addr(c.ip-1), attrX)
	return p != nil && p[(c.ip-1)%pageSize] == 0xfb
}

// fnv is FNV-1a, by words (draft-eastlake-fnv).
func fnv(d, word uint64) uint64 { return (d ^ word) * 0x100000001b3 }

// enter delivers, or ends the run.
func (c *cpu) enter(vector int, code int64, ip uint64) {
	if !c.deliver(vector, code, ip) {
		c.e.b.fail(c.shutDown())
	}
}

// shutDown is an exception that could not be delivered: the processor would reset.
func (c *cpu) shutDown() error {
	r := *c.Regs()
	h := c.e.host
	h.Last(&r)
	at := x86.Addr(r.IP)
	return &machine.Fault{Vector: machine.VectorDouble, IP: at, Symbol: h.Machine().Symbolize(at), Regs: r, CPU: c.n, Task: h.Task()}
}

// start lets the CPU run from ip until it stops.
func (c *cpu) start(ip x86.Addr) {
	c.ip, c.reason, c.event = uint64(ip), reasonNone, event{}
	if c.e.b.err != nil {
		c.reason = reasonEngine
	}
	c.changeMode()
	c.depth++
	defer func() { c.depth-- }()
	c.loopBooted()
}

// startBooted is Start on a booted kernel: the CPU may be another one at the end.
func (c *cpu) startBooted(ip x86.Addr) contract.Exit {
	e, b := c.e, c.e.b
	b.takeTurn(c)
	for {
		c.start(ip)
		ip = x86.Addr(c.ip)
		var err error
		switch c.reason {
		case reasonTime:
			if b.overdue() || e.Instrs >= b.limit {
				return c.exit()
			}
			switch {
			case c.depth > 0: // a handler's call keeps its CPU, as with interrupts off
				b.board.Turn, b.turnEnd = false, e.Instrs+fromdump.Slice
			case b.alone:
				b.board.Turn = false
			default:
				if o := b.next(c); o != nil {
					c, ip = o, x86.Addr(o.ip)
				}
			}
		case reasonHalt:
			if c.depth > 0 {
				return c.exit()
			}
			if c, err = b.wait(c); err == nil {
				ip = x86.Addr(c.ip)
			}
		case reasonFault:
			if err = c.guestException(); err == nil {
				ip = x86.Addr(c.ip)
				e.PayFault()
			}
		case reasonEngine:
			err, b.err = b.err, nil
		default:
			return c.exit()
		}
		if err != nil {
			return contract.Exit{Why: contract.Failed, Err: err}
		}
		if b.overdue() || e.Instrs >= e.Budget {
			return contract.Exit{Why: contract.TimeUp, IP: ip}
		}
		b.aim(min(b.limit, e.Budget))
	}
}

func (c *cpu) exit() contract.Exit {
	return contract.Exit{Why: exits[c.reason], IP: x86.Addr(c.ip), Arg: c.arg}
}

// overdue reports whether the run's work or time is used up.
func (b *booted) overdue() bool { return b.e.Work > b.e.Allowance || b.e.Expired.Load() != 0 }

// next gives the turn to another CPU, if one has something to do: nil if none has.
func (b *booted) next(c *cpu) *cpu {
	e := b.e
	b.board.Turn = false
	b.turnEnd = e.Instrs + fromdump.Slice - b.chance.UpTo(fromdump.Slice-1)
	first := 1 + int(b.chance.UpTo(uint64(len(e.cpus))))
	for i := first; i < first+len(e.cpus); i++ {
		o := e.cpus[(c.n+i)%len(e.cpus)]
		if o.halted && !b.board.Pending(o.n) {
			continue
		}
		o.halted = false
		b.takeTurn(o)
		return o
	}
	return nil
}

// wait lets time pass, for c is in hlt, until an interrupt comes for some CPU.
func (b *booted) wait(c *cpu) (*cpu, error) {
	e := b.e
	if c.flags&x86.FlagIF == 0 && !b.board.CPU(c.n).NMI {
		return nil, fmt.Errorf("%w at %s with interrupts off", machine.ErrHalted, e.host.Machine().Symbolize(x86.Addr(c.ip)))
	}
	c.halted = true
	for {
		if o := b.next(c); o != nil {
			return o, nil
		}
		if err := e.host.Idle(); err != nil {
			return nil, err
		}
		at := b.board.NextEvent()
		if at == 0 {
			return nil, fmt.Errorf("%w at %s: no interrupt can end it", machine.ErrHalted, e.host.Machine().Symbolize(x86.Addr(c.ip)))
		}
		e.Extra = at - e.Instrs + b.chance.UpTo(fromdump.Latency)
	}
}

// guestException gives an exception to the receiver of traps, if it is the kernel's
// own code that raised it and the receiver wants it, and else to the guest.
func (c *cpu) guestException() error {
	e, b, v := c.e, c.e.b, c.event
	e.Extra += e.opt.TrapCost + b.chance.UpTo(fromdump.TrapLatency)
	regs := *c.Regs()
	e.host.Last(&regs)
	if c.missing != "" {
		return c.lacks(c.missing)
	}
	if !c.user && v.vector != machine.VectorInt3 && v.vector != machine.VectorDebug {
		b.noteTask()
		mine, err := e.host.Fault(&regs, v.vector)
		if err != nil {
			return err
		}
		if mine {
			c.setRegs(&regs)
			c.ip = regs.IP
			return nil
		}
	}
	if v.vector == machine.VectorPage {
		c.sys.cr[2] = v.addr
		if v.access == machine.AccessFetch {
			c.unfetched = c.ip
		}
	}
	if !c.deliver(v.vector, fromdump.ErrorCode(v.vector, v.access, v.present, c.user), c.ip) {
		return c.shutDown()
	}
	return nil
}

// lacks is the end of a run at what this engine does not do.
func (c *cpu) lacks(what string) error {
	mode := "the kernel"
	if c.user {
		mode = "a program"
	}
	c.missing = ""
	return fmt.Errorf("%w: %s comes to %s at %s, which this engine does not execute", machine.ErrNeedsUnicorn, mode, what,
		c.e.host.Machine().Symbolize(x86.Addr(c.ip)))
}

// noteTask makes the guest's running task the machine's.
func (b *booted) noteTask() { b.e.host.SetTask(b.tasks.Of(b.running())) }

// running is the address of the task that runs.
func (b *booted) running() x86.Addr { return x86.Addr(b.guest.Word(b.gs[b.cur.n] + b.current)) }

// beforeTrap is what precedes a trap of the kernel's. It returns false after a trap of user mode, which is the
// guest's.
func (b *booted) beforeTrap(c *cpu, vector int) bool {
	if vector == machine.VectorDebug && c.user {
		c.noteDebug(dr6Step)
	}
	if c.user {
		c.reason = reasonFault
		c.event = event{kind: eventFault, vector: vector, addr: afterInstruction}
		return false
	}
	b.beforeCall()
	return true
}

// beforeCall precedes a call of the host's receiver of traps.
func (b *booted) beforeCall() {
	b.noteTask()
	b.tellTaken()
}
