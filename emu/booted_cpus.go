//go:build unicorn && cgo && linux && amd64

package emu

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/internal/fromdump"
	"kprobelab/machine"
	"kprobelab/x86"
)

// The CPUs of a booted machine take turns on one engine, which so sees every change
// of code, whichever CPU makes it. A turn ends after fromdump.Slice instructions, in
// hlt, and when another CPU is sent an interrupt.

// turnEnd is the instruction count at which the turn ends.
func (e *engine) turnEnd() uint64 {
	if len(e.cpus) == 1 || e.b.alone {
		return math.MaxUint64
	}
	return e.b.turnEnd
}

// Alone stops the other CPUs from taking turns, unless the running CPU waits.
func (e *engine) Alone(on bool) { e.b.alone = on }

// share adds a CPU that uses the first one's engine.
func (e *engine) share() (machine.CPU, error) {
	first := e.cpus[0]
	c := &cpu{uc: first.uc, e: e, n: len(e.cpus), shares: true}
	if c.c = (*C.kpl_cpu)(C.calloc(1, C.sizeof_kpl_cpu)); c.c == nil {
		return nil, machine.ErrNoMemory
	}
	c.c.buffer = first.c.buffer
	c.c.m, c.c.n, c.c.uc = e.c, C.int(c.n), first.c.uc
	e.cpus = append(e.cpus, c) // Close frees it, whatever fails below
	return c, knownState(c)
}

// takeTurn makes c the CPU that the engine runs.
func (e *engine) takeTurn(c *cpu) error {
	old := e.cur
	if c == old {
		return nil
	}
	if e := C.kpl_park(old.c); e != unicorn.ERR_OK {
		return engineError("park a processor", unicorn.UcError(e))
	}
	e.cur, e.c.cur = c, c.c
	e.host.SetCPU(c.n)
	if e := C.kpl_unpark(c.c); e != unicorn.ERR_OK {
		return engineError("take up a processor", unicorn.UcError(e))
	}
	return nil
}

// next gives the turn to another CPU, if one has something to do, and returns where it
// goes on.
func (e *engine) next(c *cpu) (*cpu, x86.Addr, error) {
	e.c.turn = 0
	e.b.turnEnd = e.sh.Instrs + fromdump.Slice - e.b.chance.UpTo(fromdump.Slice-1)
	first := 1 + int(e.b.chance.UpTo(uint64(len(e.cpus))))
	for i := first; i < first+len(e.cpus); i++ {
		o := e.cpus[(c.n+i)%len(e.cpus)]
		if o.c.halted != 0 && C.kpl_pending(o.c) == 0 {
			continue
		}
		o.c.halted = 0
		err := e.takeTurn(o)
		return o, x86.Addr(C.kpl_cpu_ip(o.c)), err
	}
	return nil, 0, nil
}

// wait lets time pass, for c is in hlt, until an interrupt comes for some CPU.
func (e *engine) wait(c *cpu) (*cpu, x86.Addr, error) {
	if c.readRegs().Flags&x86.FlagIF == 0 && c.c.nmi == 0 {
		return nil, 0, fmt.Errorf("%w at %s with interrupts off", machine.ErrHalted, e.host.Machine().Symbolize(x86.Addr(c.c.ip)))
	}
	c.c.halted = 1
	for {
		o, ip, err := e.next(c)
		if o == nil && err == nil {
			err = e.host.Idle()
		}
		if o != nil || err != nil {
			return o, ip, err
		}
		var at C.uint64_t
		if C.kpl_next_event(e.c, &at) == 0 {
			return nil, 0, fmt.Errorf("%w at %s: no interrupt can end it", machine.ErrHalted, e.host.Machine().Symbolize(x86.Addr(c.c.ip)))
		}
		e.sh.Extra = uint64(at) - e.sh.Instrs + e.b.chance.UpTo(fromdump.Latency)
	}
}
