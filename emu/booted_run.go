//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/decoder"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

func newBooted(core *vmcore.Core) *booted {
	return &booted{core: core, cpu: core.CPUs(), hooked: map[x86.Addr]bool{}}
}

// The machine's own memory, in module space from the top down, where no kernel gets
// to (Documentation/arch/x86/x86_64/mm.rst), and in user space where no program is.
const (
	ownEnd  x86.Addr = 0xfffffffffe000000
	ownStep          = 2 << 20
	ownUser x86.Addr = 0x6b9000000000
)

// layBooted maps the dump's memory and reserves the machine's own.
func (m *Machine) layBooted() error {
	b := m.b
	if len(b.cpu) == 0 || b.cpu[0].Control == nil {
		return fmt.Errorf("the dump has no control registers of its processors: it was not made by QEMU or kprobelab")
	}
	if len(b.cpu) > C.KPL_MAX_CPUS {
		return fmt.Errorf("the dump has %d processors; %d are possible", len(b.cpu), C.KPL_MAX_CPUS)
	}
	m.opt.CPUs = len(b.cpu)
	if err := b.layMemory(m); err != nil {
		return err
	}
	control := b.cpu[0].Control
	m.c.levels = C.int(control.Levels())
	size := pageUp(x86.Addr(m.opt.HeapSize)) + execSize
	start, err := m.hole(size, uint64(control.CR3))
	if err != nil {
		return err
	}
	m.execNext = start
	if m.exec, err = m.addRegion(start, start+execSize); err != nil {
		return err
	}
	m.c.own_start, m.c.own_end = C.uint64_t(m.exec.Start), C.uint64_t(m.exec.End)
	if m.heap.r, err = m.addRegion(start+execSize, start+size); err != nil {
		return err
	}
	m.heap.next = start + execSize
	if m.user.r, err = m.addRegion(ownUser, ownUser+UserSize); err != nil {
		return err
	}
	m.user.next = ownUser
	return nil
}

// hole finds size bytes of module space that the guest has not mapped.
func (m *Machine) hole(size x86.Addr, cr3 uint64) (x86.Addr, error) {
	space := m.b.core.Space(cr3, int(m.c.levels))
	free := x86.Addr(0)
	for at := ownEnd; at > moduleBase-(512<<20); at -= ownStep {
		free += ownStep
		for p := at - ownStep; p < at; p += PageSize {
			if _, err := space.Translate(p); err == nil {
				free = 0
				break
			}
		}
		if free >= size {
			return at - ownStep, nil
		}
	}
	return 0, fmt.Errorf("%d bytes of module space: %w", size, ErrNoMemory)
}

// goOn brings the CPUs to where the dump has them.
func (m *Machine) goOn() error {
	if err := m.makeStubs(); err != nil {
		return err
	}
	if err := m.makeSystemCall(); err != nil {
		return err
	}
	if err := m.findException(); err != nil {
		return err
	}
	for _, c := range m.cpus {
		if err := m.takeTurn(c); err != nil {
			return err
		}
		if err := m.b.resume(m, c); err != nil {
			return fmt.Errorf("cpu %d: %w", c.n, err)
		}
		local, err := m.heap.pages(PageSize)
		if err != nil {
			return err
		}
		if err := m.layLocal(c, local); err != nil {
			return err
		}
	}
	m.b.findSymbols(m)
	m.watchExits()
	m.startClock()
	m.tasks = append(m.tasks, &Task{Name: "booted", m: m, stack: x86.Addr(m.b.cpu[0].Regs.SP) &^ 15, saved: newState(), pin: 0})
	return m.takeTurn(m.inSystemCall())
}

// inSystemCall is the CPU whose task is in a system call: calls are made there.
// Without one, it is the first.
func (m *Machine) inSystemCall() *cpu {
	for _, c := range m.cpus {
		if r := &m.b.cpu[c.n].Regs; r.CS&3 == 0 {
			if _, err := m.userRegs(x86.Addr(r.SP)); err == nil {
				return c
			}
		}
	}
	return m.cpus[0]
}

// divideByZero is code that ends in an exception: xor %ecx,%ecx; div %ecx.
var divideByZero = []byte{0x31, 0xc9, 0xf7, 0xf1}

// findException finds where the engine keeps the exception in flight.
func (m *Machine) findException() error {
	at, err := m.allocExec(PageSize)
	if err != nil {
		return err
	}
	if err := m.PokeText(at, divideByZero); err != nil {
		return err
	}
	c := m.cpus[0]
	m.c.limit, m.c.allowance, m.c.stop_at = 1<<62, 1<<62, 1<<62
	ok := C.kpl_env_probe(c.c, 1) != 0
	c.start(m, at)
	if !ok || c.c.reason != C.KPL_FAULT || C.kpl_env_probe(c.c, 0) == 0 {
		return engineError("find the engine's own state", fmt.Errorf("%s keeps it in a way that is not known here", Engine()))
	}
	for _, o := range m.cpus {
		o.c.old_exception = c.c.old_exception
	}
	C.kpl_forget_exception(c.c)
	m.c.instrs = 0
	return nil
}

// findSymbols finds what the machine itself reads of the guest.
func (b *booted) findSymbols(m *Machine) {
	variable := m.variable
	// current_task is the first member of pcpu_hot (6.2 to 6.14).
	if b.current = variable("current_task"); b.current == 0 {
		b.current = variable("pcpu_hot")
	}
	if start, end := variable("_stext"), variable("_etext"); start != 0 && end > start {
		var p C.kpl_place
		if C.kpl_walk(m.c, C.kpl_cr3(m.cur.c), C.uint64_t(start), 0, 0, &p) == C.KPL_FOUND {
			b.text, b.textPhys = x86.Range{Start: start, End: end}, uint64(p.pa)
		}
	}
	b.direct = directMap
	if p := variable("page_offset_base"); p != 0 {
		b.direct = x86.Addr(m.word(p))
	}
}

// hasCode are the vectors whose exceptions push an error code (SDM Vol. 3A, table
// 6-1).
var hasCode = map[int]bool{8: true, 10: true, 11: true, 12: true, 13: true, 14: true, 17: true, 21: true}

// Bits of a page fault's error code (SDM Vol. 3A, "Page-Fault Exception").
const (
	faultPresent = 1
	faultWrite   = 2
	faultUser    = 4
	faultFetch   = 16
)

// guestException gives an exception to the receiver of traps, if it is the kernel's
// own code that raised it and the receiver wants it, and else to the guest.
func (m *Machine) guestException(c *cpu) (x86.Addr, error) {
	vector, access := int(c.c.vector), int(c.c.access)
	page, miss := x86.Addr(c.c.addr), c.c.miss
	m.c.extra += C.uint64_t(m.opt.TrapCost)
	regs := c.readRegs()
	regs.IP = uint64(c.c.ip)
	if c.c.at != 0 {
		regs.IP = uint64(c.c.at)
	}
	m.last = *regs
	user := regs.CS&3 == 3
	if !user && m.traps != nil && vector != VectorInt3 && vector != VectorDebug {
		m.noteTask()
		mine := m.callFault(regs, vector)
		if m.err != nil {
			return 0, m.takeErr()
		}
		if mine {
			C.kpl_change_all(c.c, (*C.kpl_regs)(unsafe.Pointer(regs)))
			C.kpl_forget_exception(c.c)
			return x86.Addr(regs.IP), nil
		}
	}
	code := C.int64_t(C.KPL_NO_CODE)
	switch {
	case vector >= 32:
		code = C.KPL_SOFTWARE
	case vector == VectorPage:
		e := 0
		if miss == C.KPL_FORBIDDEN {
			e |= faultPresent
		}
		if access == C.KPL_W {
			e |= faultWrite
		}
		if access == C.KPL_X {
			e |= faultFetch
		}
		if user {
			e |= faultUser
		}
		code = C.int64_t(e)
		C.kpl_set_cr2(c.c, C.uint64_t(m.faultAddr(c, regs, page, accessOf(access))))
	case vector == VectorDebug:
		if err := c.uc.RegWrite(unicorn.X86_REG_DR6, 0xffff4ff0); err != nil { // BS: single step
			return 0, engineError("set dr6", err)
		}
	case hasCode[vector]:
		code = 0
	}
	if C.kpl_deliver(c.c, C.int(vector), code, C.uint64_t(regs.IP), 0) == 0 {
		return 0, m.shutDown(c)
	}
	return x86.Addr(C.kpl_cpu_ip(c.c)), nil
}

// shutDown is an exception that could not be delivered: the processor would reset.
func (m *Machine) shutDown(c *cpu) error {
	r := c.readRegs()
	m.last = *r
	return &Fault{Vector: VectorDouble, IP: x86.Addr(r.IP), Symbol: m.Symbolize(x86.Addr(r.IP)), Regs: *r, CPU: c.n, Task: m.Task()}
}

// noPage is memory that the dump has not.
func (m *Machine) noPage(ip x86.Addr, phys uint64) error {
	if err := m.b.core.Present(phys); err != nil {
		return fmt.Errorf("%s: %w", m.Symbolize(ip), err)
	}
	return fmt.Errorf("%s: no memory and no device is at physical address %#x", m.Symbolize(ip), phys)
}

// hookInstructions gives hooks to the instructions of a block that the engine would
// answer from the host, or not at all. It reports whether one is new: the block has to
// be translated again.
func (m *Machine) hookInstructions(c *cpu, pc x86.Addr, code []byte) (again bool) {
	for at := 0; at < len(code); {
		i, err := decoder.Decode(code[at:])
		if err != nil || i.Length == 0 {
			break
		}
		a := pc.Add(int64(at))
		if i.Encoding != decoder.EncPrimary && !m.b.hooked[a] && len(m.b.hooked) < maxHooked && C.kpl_special(m.c, C.uint64_t(a)) != 0 {
			C.kpl_hook_instruction(c.c, C.uint64_t(a))
			m.b.hooked[a], again = true, true
		}
		at += i.Length
	}
	return again
}
