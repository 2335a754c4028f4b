//go:build unicorn && cgo && linux && amd64

package emu

// #include <string.h>
// #include "shim.h"
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/internal/fromdump"
	"kprobelab/machine"
)

// stopped is a booted machine between two runs, but for its memory.
type stopped struct {
	cpus          []unicorn.Context
	apics         []C.kpl_apic
	halted, nmi   []C.int
	dr            [][8]C.uint64_t
	hits          []C.uint32_t // of the debug registers
	cur           int
	instrs, extra uint64
	chance        fromdump.Chance
	tasks         fromdump.Tasks
	task          int
	lost          error
	seen          []byte // the guest's bytes of text that the host had changed
	held          []C.uint64_t
}

// Keep keeps all but memory for GoBack.
func (e *engine) Keep() (any, error) {
	s := &stopped{cur: e.cur.n, instrs: e.sh.Instrs, extra: e.sh.Extra, chance: e.b.chance.Clone(), tasks: e.b.tasks.Clone(), task: e.host.Task(), lost: e.b.lost}
	e.settleViews()
	s.seen = bytes.Clone(e.b.seen[:int(e.c.nviews)*machine.PageSize])
	s.held = e.held()
	was := e.cur
	for _, c := range e.cpus {
		if err := e.takeTurn(c); err != nil {
			return nil, err
		}
		ctx, err := c.uc.ContextSave(nil)
		if err != nil {
			return nil, engineError("save a processor", err)
		}
		s.cpus, s.apics = append(s.cpus, ctx), append(s.apics, c.c.apic)
		s.halted, s.nmi = append(s.halted, c.c.halted), append(s.nmi, c.c.nmi)
		s.dr, s.hits = append(s.dr, c.c.dr), append(s.hits, c.c.debug_hits)
	}
	return s, e.takeTurn(was)
}

// GoBack restores the kept state.
func (e *engine) GoBack(kept any) error {
	s := kept.(*stopped)
	e.sh.Instrs, e.sh.Extra, e.c.turn = s.instrs, s.extra, 0
	e.c.interrupts, e.c.trail = 0, 0
	e.b.chance = s.chance.Clone()
	e.b.tasks, e.b.lost, e.b.graceAt = s.tasks.Clone(), s.lost, 0
	e.host.SetTask(s.task)
	for i, c := range e.cpus {
		if err := e.takeTurn(c); err != nil {
			return err
		}
		if err := c.uc.ContextRestore(s.cpus[i]); err != nil {
			return engineError("restore a processor", err)
		}
		c.c.apic, c.c.halted, c.c.nmi = s.apics[i], s.halted[i], s.nmi[i]
		c.c.dr, c.c.debug_hits = s.dr[i], s.hits[i]
		C.kpl_cpu_flush_tlb(c.c)
	}
	if err := e.takeTurn(e.cpus[s.cur]); err != nil {
		return err
	}
	C.kpl_view_reset(e.c, (*C.uint8_t)(unsafe.SliceData(s.seen)), C.int(len(s.seen)/machine.PageSize))
	e.holdAgain(s.held)
	return e.rewatch()
}

// interrupted holds the registers of the task that a call of the host interrupts.
type interrupted struct {
	state  *C.kpl_state
	cs, ss C.uint16_t
	fs, gs C.uint64_t // of user mode
	tables bool       // CR3 holds the page tables of user mode
}

func (e *engine) interrupt(c *cpu) *interrupted {
	s := &interrupted{state: c.takeState()}
	C.kpl_save(c.c, s.state)
	s.cs, s.ss = C.uint16_t(s.state.regs.cs), C.uint16_t(s.state.regs.ss)
	s.fs, s.gs = C.kpl_msr(c.c, msrFSBase), C.kpl_msr(c.c, msrKernelGS)
	s.tables = C.kpl_cr3(c.c)&userTables != 0
	return s
}

// putBack restores the task's registers, on the CPU that now runs it.
func (e *engine) putBack(s *interrupted) error {
	c := e.cur
	C.kpl_set_mode(c.c, s.cs, s.ss)
	for msr, v := range map[C.uint32_t]C.uint64_t{msrFSBase: s.fs, msrGSBase: C.uint64_t(c.gs), msrKernelGS: s.gs} {
		C.kpl_set_msr(c.c, msr, v)
	}
	if cr3 := uint64(C.kpl_cr3(c.c)); !s.tables && cr3&userTables != 0 {
		if err := c.uc.RegWrite(unicorn.X86_REG_CR3, cr3&^userTables); err != nil {
			return engineError("end a call", err)
		}
	}
	c.read = false
	C.kpl_load(c.c, s.state, 1)
	c.putState(s.state)
	return nil
}

// restorePage puts a page of physical memory back, and drops the translations of its code. It returns
// whether the caller has to drop all translations, because the engine cannot drop these alone.
func (e *engine) restorePage(u *C.kpl_undo) bool {
	host, old := unsafe.Pointer(u.host), unsafe.Pointer(&u.old[0])
	changed := *u.attr&C.KPL_FETCHED != 0 && C.memcmp(host, old, machine.PageSize) != 0
	C.memcpy(host, old, machine.PageSize)
	if !changed {
		return false
	}
	b := e.b
	at := b.text.Start.Add(int64(uint64(u.page) - b.textPhys))
	if !at.In(b.text.Start, b.text.End) {
		return true
	}
	for _, c := range e.cpus {
		c.Drop(at, machine.PageSize)
	}
	return false
}
