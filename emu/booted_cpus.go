//go:build cgo && linux && amd64

package emu

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/x86"
)

// The CPUs of a booted machine take turns on one engine, which so sees every change
// of code, whichever CPU makes it. A turn ends after bootedSlice instructions, in
// hlt, and when another CPU is sent an interrupt.

// bootedSlice is a compromise: a turn's change costs as much as some thousand
// instructions.
const bootedSlice = 20_000

// turnEnd is the instruction count at which the turn ends.
func (m *Machine) turnEnd() uint64 {
	if m.b == nil || len(m.cpus) == 1 {
		return math.MaxUint64
	}
	return m.b.turnEnd
}

// share adds a CPU that uses the first one's engine.
func (m *Machine) share() error {
	first := m.cpus[0]
	c := &cpu{uc: first.uc, n: len(m.cpus), shares: true}
	if c.c = (*C.kpl_cpu)(C.calloc(1, C.sizeof_kpl_cpu)); c.c == nil {
		return ErrNoMemory
	}
	c.c.m, c.c.n, c.c.uc = m.c, C.int(c.n), first.c.uc
	m.cpus = append(m.cpus, c) // Close frees it, whatever fails below
	return m.b.known(c)
}

// takeTurn makes c the CPU that the engine runs.
func (m *Machine) takeTurn(c *cpu) error {
	old := m.cur
	if c == old {
		return nil
	}
	if e := C.kpl_park(old.c); e != unicorn.ERR_OK {
		return engineError("park a processor", unicorn.UcError(e))
	}
	m.cur, m.curCPU, m.c.cur = c, c.n, c.c
	if e := C.kpl_unpark(c.c); e != unicorn.ERR_OK {
		return engineError("take up a processor", unicorn.UcError(e))
	}
	return nil
}

// next gives the turn to another CPU, if one has something to do, and returns where it
// goes on.
func (m *Machine) next(c *cpu) (*cpu, x86.Addr, error) {
	m.c.turn = 0
	m.b.turnEnd = uint64(m.c.instrs) + bootedSlice
	for i := 1; i <= len(m.cpus); i++ {
		o := m.cpus[(c.n+i)%len(m.cpus)]
		if o.c.halted != 0 && C.kpl_pending(o.c) == 0 {
			continue
		}
		o.c.halted = 0
		err := m.takeTurn(o)
		return o, x86.Addr(C.kpl_cpu_ip(o.c)), err
	}
	return nil, 0, nil
}

// wait lets time pass, for c is in hlt, until an interrupt comes for some CPU.
func (m *Machine) wait(c *cpu) (*cpu, x86.Addr, error) {
	if c.readRegs().Flags&x86.FlagIF == 0 && c.c.nmi == 0 {
		return nil, 0, fmt.Errorf("%w at %s with interrupts off", ErrHalted, m.Symbolize(x86.Addr(c.c.ip)))
	}
	c.c.halted = 1
	for {
		o, ip, err := m.next(c)
		if o != nil || err != nil {
			return o, ip, err
		}
		var at C.uint64_t
		if C.kpl_next_event(m.c, &at) == 0 {
			return nil, 0, fmt.Errorf("%w at %s: no interrupt can end it", ErrHalted, m.Symbolize(x86.Addr(c.c.ip)))
		}
		m.c.extra = at - m.c.instrs
	}
}
