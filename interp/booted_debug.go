package interp

import (
	"kprobelab/internal/contract"
	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

// The debug registers of a booted kernel's CPUs, and the breakpoints that they hold (SDM Vol. 3B, "Debug Registers" and
// "Debug Exceptions"). The breakpoints are watched memory, as the host's is (watch.go).

// The Ones of DR6 and DR7 are always set; a write changes the bits Used.
const (
	dr6Ones, dr6Used = 0xffff0ff0, 0xf | dr6Move | 3<<14
	dr6Move          = 1 << 13 // a move from or to a debug register was detected
	dr6Step          = 1 << 14
	dr7Ones, dr7Used = 0x400, 0xffff03ff | dr7Detect
	dr7Detect        = 1 << 13 // detect the next move
	dr7Enabled       = 0xff
	cr4DE            = 1 << 3
)

// breakpoint is one of a debug register of a CPU.
type breakpoint struct {
	machine.Watch
	cpu *cpu
}

// breakpoints adds the enabled breakpoints of DR7 to a list. An address counts from a multiple of the length. Breakpoints of ports are left
// out: they need CR4.DE, which Linux does not set.
func (c *cpu) breakpoints(to []breakpoint) []breakpoint {
	kinds := [4]uint32{machine.WatchExec, machine.WatchWrite, 0, machine.WatchRead | machine.WatchWrite}
	lengths := [4]uint32{1, 2, 8, 4}
	for n := range 4 {
		field := c.sys.dr[7] >> (16 + 4*n) & 15
		kind, size := kinds[field&3], lengths[field>>2]
		if kind == machine.WatchExec {
			size = 1
		}
		if c.sys.dr[7]>>(2*n)&3 != 0 && kind != 0 {
			at := x86.Addr(c.sys.dr[n]) &^ x86.Addr(size-1)
			to = append(to, breakpoint{machine.Watch{Addr: at, Len: size, Kinds: kind, Number: int32(n)}, c})
		}
	}
	return to
}

// movDebugMaker: there are no more than eight.
func movDebugMaker(d *dec) func(c *cpu, o *op) bool {
	d.op.mem = false
	d.op.rm = d.i.ModRM&7 | d.i.REX&1<<3
	if d.c.e.b == nil {
		if d.i.Opcode == 0x21 {
			return opMovFromDebug
		}
		d.last = true
		return opMovToDebug
	}
	d.last = true
	d.op.sub = d.i.Opcode
	if d.op.reg > 7 {
		return opInvalid
	}
	return opMovDebugBooted
}

// opMovDebugBooted is a move from or to a debug register.
func opMovDebugBooted(c *cpu, o *op) bool {
	if o.reg&^1 == 4 && c.sys.cr[4]&cr4DE != 0 {
		return c.fault(machine.VectorInvalid)
	}
	n := debugRegister(o.reg)
	if c.sys.dr[7]&dr7Detect != 0 {
		c.sys.dr[7] &^= dr7Detect
		c.sys.dr[6] |= dr6Move
		c.event = event{kind: eventFault, vector: machine.VectorDebug}
		return false
	}
	if o.sub == 0x21 {
		c.r[o.rm] = c.sys.dr[n]
		return c.leave(o)
	}
	v := c.r[o.rm]
	if n >= 6 && v>>32 != 0 {
		return c.fault(machine.VectorGP)
	}
	c.setDebug(n, v)
	c.ip = o.next
	return true
}

// setDebug sets a debug register.
func (c *cpu) setDebug(n uint8, v uint64) {
	old, enabled := c.sys.dr[n], c.sys.dr[7]
	switch n {
	case 6:
		v = v&dr6Used | dr6Ones
	case 7:
		v = v&dr7Used | dr7Ones
		enabled |= v
	}
	c.sys.dr[n] = v
	if n != 6 && v != old && enabled&dr7Enabled != 0 {
		c.e.watchAgain()
	}
}

// noteDebug: DR6 says why the debug exception comes that is about to.
func (c *cpu) noteDebug(bits uint64) {
	c.sys.dr[6] |= bits | uint64(c.sys.hits)
	c.sys.hits = 0
}

// debugTrap is the debug exception of the breakpoints that were hit.
func (c *cpu) debugTrap() {
	e := c.e
	c.noteDebug(0)
	e.Extra += e.opt.TrapCost
	c.enter(machine.VectorDebug, fromdump.NoCode, c.ip)
	// No instruction runs where the handler's first one has a breakpoint: the work ends that.
	e.addWork(contract.WorkTrap)
}

// hitBreakpoints notes the breakpoints of the running CPU that an access to n bytes meets.
func (e *engine) hitBreakpoints(a uint64, n int, kind uint32) {
	for i := range e.watch.guests {
		g := &e.watch.guests[i]
		if g.cpu == e.b.cur && g.Kinds&kind != 0 && (uint64(g.Addr)-a < uint64(n) || a-uint64(g.Addr) < uint64(g.Len)) {
			g.cpu.sys.hits |= 1 << g.Number
		}
	}
}

// goesOn reports whether the instruction at ip has met its breakpoint already: it has had an iteration, or an exception
// or the guest's handler has returned to it. A processor meets the breakpoint before it fetches the instruction, and
// this engine after that: a fault of the fetch comes first here.
func (c *cpu) goesOn(ip uint64) bool {
	if c.e.b == nil || c.resumed == ip {
		return c.resumed == ip
	}
	if c.unfetched == ip {
		c.unfetched = none
		return false
	}
	return c.flags&flagRF != 0
}

// resumeFlag is RF for the flags that an exception or interrupt saves: the instruction at ip goes on without a breakpoint.
func (c *cpu) resumeFlag(ip uint64) uint64 {
	if c.flags&flagRF != 0 || c.resumed == ip && c.e.watch.executed(ip) {
		return flagRF
	}
	return 0
}
