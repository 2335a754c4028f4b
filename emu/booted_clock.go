//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"kprobelab/internal/fromdump"
	"kprobelab/x86"
)

// startClock starts the counters and each CPU's local APIC. A dump has neither. The counters
// continue from the kernel's last reading, at the rate that the kernel has measured; the timer
// ticks a hundred times a second until the kernel sets it.
func (e *engine) startClock() {
	k, n := e.c, e.kernel().Counters()
	k.tsc_khz, k.tsc_base = C.uint64_t(n.TSCkHz), C.uint64_t(n.TSCBase)
	k.hpet_base, k.pm_base = C.uint64_t(n.HPETBase), C.uint64_t(n.PMBase)
	k.broadcast, k.ncpus = 0xff, C.int(len(e.cpus))
	for i, c := range e.cpus {
		k.cpus[i] = c.c
		C.kpl_apic_start(c.c, C.int(e.kernel().TimerVector(e.b.cpu[c.n].Control.IDT)))
	}
	e.b.chance = fromdump.Seeded(e.opt.Seed)
	e.sh.Extra += e.b.chance.UpTo(fromdump.TickPhase)
}

// Interrupts counts the interrupts since the machine was made or restored.
func (e *engine) Interrupts() (n, digest uint64) {
	return uint64(e.c.interrupts), uint64(e.c.trail)
}

// variable returns the address of a variable of the guest, 0 if there is no symbol or several of
// its name.
func (e *engine) variable(name string) x86.Addr { return e.kernel().Variable(name) }

// kernel is the guest, as its dump tells of it.
func (e *engine) kernel() fromdump.Guest { return fromdump.Guest{Host: e.host} }
