//go:build cgo && linux && amd64

package emu

// #include <string.h>
// #include "shim.h"
import "C"

import (
	"unsafe"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"
)

// stopped is a booted machine between two runs, but for its memory.
type stopped struct {
	cpus          []unicorn.Context
	apics         []C.kpl_apic
	halted, nmi   []C.int
	cur           int
	instrs, extra C.uint64_t
	tasks         tasks
	task          int
	lost          error
}

func (m *Machine) stop() (*stopped, error) {
	s := &stopped{cur: m.cur.n, instrs: m.c.instrs, extra: m.c.extra, tasks: m.b.tasks.clone(), task: m.curTask, lost: m.b.lost}
	was := m.cur
	for _, c := range m.cpus {
		if err := m.takeTurn(c); err != nil {
			return nil, err
		}
		ctx, err := c.uc.ContextSave(nil)
		if err != nil {
			return nil, engineError("save a processor", err)
		}
		s.cpus, s.apics = append(s.cpus, ctx), append(s.apics, c.c.apic)
		s.halted, s.nmi = append(s.halted, c.c.halted), append(s.nmi, c.c.nmi)
	}
	return s, m.takeTurn(was)
}

func (m *Machine) goBack(s *stopped) error {
	m.c.instrs, m.c.extra, m.c.turn = s.instrs, s.extra, 0
	m.c.interrupts, m.c.trail = 0, 0
	m.b.tasks, m.curTask, m.b.lost, m.b.graceAt = s.tasks.clone(), s.task, s.lost, 0
	m.c.task = C.int(s.task)
	for i, c := range m.cpus {
		if err := m.takeTurn(c); err != nil {
			return err
		}
		if err := c.uc.ContextRestore(s.cpus[i]); err != nil {
			return engineError("restore a processor", err)
		}
		c.c.apic, c.c.halted, c.c.nmi = s.apics[i], s.halted[i], s.nmi[i]
		C.kpl_cpu_flush_tlb(c.c)
	}
	return m.takeTurn(m.cpus[s.cur])
}

// interrupted is what a call of the host's interrupts: the registers of the task that
// makes it.
type interrupted struct {
	state  *C.kpl_state
	cs, ss C.uint16_t
	fs, gs C.uint64_t // of user mode
	tables bool       // those of user mode are in CR3
}

func (m *Machine) interrupt(c *cpu) *interrupted {
	s := &interrupted{state: m.takeState()}
	C.kpl_save(c.c, s.state)
	s.cs, s.ss = C.uint16_t(s.state.regs.cs), C.uint16_t(s.state.regs.ss)
	s.fs, s.gs = C.kpl_msr(c.c, msrFSBase), C.kpl_msr(c.c, msrKernelGS)
	s.tables = C.kpl_cr3(c.c)&userTables != 0
	return s
}

// putBack gives the task its registers back, on the CPU that it has come to.
func (m *Machine) putBack(s *interrupted) error {
	c := m.cur
	C.kpl_set_mode(c.c, s.cs, s.ss)
	for msr, v := range map[C.uint32_t]C.uint64_t{msrFSBase: s.fs, msrGSBase: C.uint64_t(c.gs), msrKernelGS: s.gs} {
		C.kpl_set_msr(c.c, msr, v)
	}
	if cr3 := uint64(C.kpl_cr3(c.c)); !s.tables && cr3&userTables != 0 {
		if err := c.uc.RegWrite(unicorn.X86_REG_CR3, cr3&^userTables); err != nil {
			return engineError("end a call", err)
		}
	}
	C.kpl_load(c.c, s.state, 1)
	m.putState(s.state)
	return nil
}

// restorePage puts a page of physical memory back. Code of it that was translated
// has to go; where the engine cannot be told which, all goes.
func (b *booted) restorePage(m *Machine, u *C.kpl_undo) {
	host, old := unsafe.Pointer(u.host), unsafe.Pointer(&u.old[0])
	changed := *u.attr&C.KPL_FETCHED != 0 && C.memcmp(host, old, PageSize) != 0
	C.memcpy(host, old, PageSize)
	if !changed {
		return
	}
	for _, c := range m.cpus {
		if at := b.text.Start.Add(int64(uint64(u.page) - b.textPhys)); at.In(b.text.Start, b.text.End) {
			m.drop(c, at, PageSize)
		} else {
			C.kpl_cpu_drop_all(c.c)
		}
	}
}
