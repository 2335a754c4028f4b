//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"kprobelab/decoder"
	"kprobelab/internal/contract"
	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

func newBooted(src machine.BootedSource) *booted {
	return &booted{src: src, core: src.Core(), hooked: map[x86.Addr]bool{}, shown: map[x86.Addr]bool{}}
}

// Lay maps the dump's memory, and finds room for the machine's own.
func (e *engine) Lay(size x86.Addr) (cpus int, free x86.Addr, err error) {
	b := e.b
	if b.cpu, err = b.src.Processors(); err != nil {
		return 0, 0, err
	}
	if len(b.cpu) > C.KPL_MAX_CPUS {
		return 0, 0, fmt.Errorf("the dump has %d processors; %d are possible", len(b.cpu), C.KPL_MAX_CPUS)
	}
	if err := b.layMemory(e); err != nil {
		return 0, 0, err
	}
	control := b.cpu[0].Control
	e.c.levels = C.int(control.Levels())
	free, err = fromdump.Hole(b.core.Space(control.CR3, control.Levels()), size)
	return len(b.cpu), free, err
}

// GoOn brings the CPUs to where the dump has them.
func (e *engine) GoOn() error {
	if err := e.makeSystemCall(); err != nil {
		return err
	}
	if err := e.findException(); err != nil {
		return err
	}
	for _, c := range e.cpus {
		if err := e.takeTurn(c); err != nil {
			return err
		}
		if err := e.b.resume(e, c); err != nil {
			return fmt.Errorf("cpu %d: %w", c.n, err)
		}
	}
	e.b.findSymbols(e)
	e.watchExits()
	e.watchPanics()
	e.startClock()
	if err := e.takeTurn(e.inSystemCall()); err != nil {
		return err
	}
	return e.rewatch()
}

// inSystemCall is the CPU whose task is in a system call: calls are made there.
// Without one, it is the first.
func (e *engine) inSystemCall() *cpu {
	for _, c := range e.cpus {
		if r := &e.b.cpu[c.n].Regs; r.CS&3 == 0 {
			if _, err := e.kernel().UserRegs(x86.Addr(r.SP)); err == nil {
				return c
			}
		}
	}
	return e.cpus[0]
}

// divideByZero is code that ends in an exception: xor %ecx,%ecx; div %ecx.
var divideByZero = []byte{0x31, 0xc9, 0xf7, 0xf1}

// findException finds where the engine keeps the exception in flight.
func (e *engine) findException() error {
	at, err := e.host.ExecPage()
	if err != nil {
		return err
	}
	if err := e.host.Machine().PokeText(at, divideByZero); err != nil {
		return err
	}
	c := e.cpus[0]
	e.c.limit, e.c.allowance, e.c.stop_at = 1<<62, 1<<62, 1<<62
	ok := C.kpl_env_probe(c.c, 1) != 0
	c.start(at)
	if !ok || c.c.reason != C.KPL_FAULT || C.kpl_env_probe(c.c, 0) == 0 {
		return engineError("find the engine's own state", fmt.Errorf("%s keeps it in a way that is not known here", Engine()))
	}
	for _, o := range e.cpus {
		o.c.old_exception = c.c.old_exception
	}
	C.kpl_forget_exception(c.c)
	e.sh.Instrs = 0
	return nil
}

// findSymbols finds the variables of the guest that the machine itself reads.
func (b *booted) findSymbols(e *engine) {
	variable := e.variable
	b.current = e.kernel().CurrentTask()
	if start, end := variable("_stext"), variable("_etext"); start != 0 && end > start {
		var p C.kpl_place
		if C.kpl_walk(e.c, C.kpl_cr3(e.cur.c), C.uint64_t(start), 0, 0, &p) == C.KPL_FOUND {
			b.text, b.textPhys = x86.Range{Start: start, End: end}, uint64(p.pa)
		}
	}
	b.direct = e.kernel().DirectMap()
}

// guestException gives an exception to the receiver of traps, if it is the kernel's
// own code that raised it and the receiver wants it, and else to the guest.
func (e *engine) guestException(c *cpu) (x86.Addr, error) {
	vector, access := int(c.c.vector), int(c.c.access)
	page, miss := x86.Addr(c.c.addr), c.c.miss
	e.sh.Extra += e.opt.TrapCost + e.b.chance.UpTo(fromdump.TrapLatency)
	regs := c.readRegs()
	regs.IP = uint64(c.c.ip)
	if c.c.at != 0 {
		regs.IP = uint64(c.c.at)
	}
	e.host.Last(regs)
	user := regs.CS&3 == 3
	if !user && vector != machine.VectorInt3 && vector != machine.VectorDebug {
		e.noteTask()
		mine, err := e.host.Fault(regs, vector)
		if err != nil {
			return 0, err
		}
		if mine {
			C.kpl_change_all(c.c, (*C.kpl_regs)(unsafe.Pointer(regs)))
			C.kpl_forget_exception(c.c)
			return x86.Addr(regs.IP), nil
		}
	}
	if vector == machine.VectorPage {
		C.kpl_set_cr2(c.c, C.uint64_t(c.faultAddr(regs, page, accessOf(access))))
	}
	code := C.int64_t(fromdump.ErrorCode(vector, accessOf(access), miss == C.KPL_FORBIDDEN, user))
	if C.kpl_deliver(c.c, C.int(vector), code, C.uint64_t(regs.IP), 0) == 0 {
		return 0, e.shutDown(c)
	}
	return x86.Addr(C.kpl_cpu_ip(c.c)), nil
}

// shutDown is an exception that could not be delivered: the processor would reset.
func (e *engine) shutDown(c *cpu) error {
	r := c.readRegs()
	e.host.Last(r)
	return &machine.Fault{Vector: machine.VectorDouble, IP: x86.Addr(r.IP), Symbol: e.host.Machine().Symbolize(x86.Addr(r.IP)), Regs: *r, CPU: c.n, Task: e.host.Task()}
}

// noPage is memory that the dump has not.
func (e *engine) noPage(ip x86.Addr, phys uint64) error {
	if err := e.b.core.Present(phys); err != nil {
		return fmt.Errorf("%s: %w", e.host.Machine().Symbolize(ip), err)
	}
	return fmt.Errorf("%s: no memory and no device is at physical address %#x", e.host.Machine().Symbolize(ip), phys)
}

// hookInstructions gives hooks to the instructions of a block that the engine would
// answer from the host, or not at all. It reports whether one is new: the block has to
// be translated again.
func (e *engine) hookInstructions(c *cpu, pc x86.Addr, code []byte) (again bool) {
	for at := 0; at < len(code); {
		i, err := e.reads.Decode(code[at:])
		if err != nil || i.Length == 0 {
			break
		}
		a := pc.Add(int64(at))
		if i.Encoding != decoder.EncPrimary && !e.b.hooked[a] && len(e.b.hooked) < maxHooked && C.kpl_special(e.c, C.uint64_t(a)) != 0 {
			C.kpl_hook_instruction(c.c, C.uint64_t(a))
			e.b.hooked[a], again = true, true
		}
		at += i.Length
	}
	return again
}

// startBooted is Start on a booted kernel: the CPU may be another one at the end.
func (e *engine) startBooted(c *cpu, ip x86.Addr) contract.Exit {
	for {
		c.start(ip)
		k := c.c
		ip = x86.Addr(k.ip)
		var err error
		switch k.reason {
		case C.KPL_TIME:
			if e.overdue() || e.sh.Instrs >= e.limit {
				return c.exit()
			}
			switch {
			case k.depth > 0: // a handler's call keeps its CPU, as with interrupts off
				e.c.turn, e.b.turnEnd = 0, e.sh.Instrs+fromdump.Slice
			case e.b.alone:
				e.c.turn = 0
			default:
				c, ip, err = e.next(c)
			}
		case C.KPL_HALT:
			if k.depth > 0 {
				return c.exit()
			}
			c, ip, err = e.wait(c)
		case C.KPL_CROWDED:
			if k.depth > 0 {
				return c.exit()
			}
		case C.KPL_AGAIN:
			c.Drop(ip, int(k.arg))
		case C.KPL_FAULT:
			if ip, err = e.guestException(c); err == nil {
				e.sh.PayFault()
			}
		case C.KPL_NO_PAGE:
			err = e.noPage(ip, uint64(k.addr))
		case C.KPL_TRIPLE:
			err = e.shutDown(c)
		case C.KPL_DEAD:
			err = machine.ErrTaskExited
		case C.KPL_PANIC:
			err = fromdump.Panicked(string(e.Console()))
		case C.KPL_RESET:
			err = machine.ErrReset
		default:
			return c.exit()
		}
		if err != nil {
			return contract.Exit{Why: contract.Failed, Err: err}
		}
		if e.overdue() || e.sh.Instrs >= e.sh.Budget {
			return contract.Exit{Why: contract.TimeUp, IP: ip}
		}
		e.Aim(min(e.limit, e.sh.Budget))
	}
}

// overdue reports whether the run's work or time is used up.
func (e *engine) overdue() bool { return e.sh.Work > e.sh.Allowance || e.sh.Expired.Load() != 0 }
