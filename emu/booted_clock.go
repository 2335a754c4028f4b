//go:build unicorn && cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import (
	"encoding/binary"

	"kprobelab/x86"
)

// defaultTSC is the rate of the time stamp counter where the kernel does not say.
const defaultTSC = 1_000_000 // kHz

// startClock starts the counters and each CPU's local APIC. A dump has neither. The counters
// continue from the kernel's last reading, at the rate that the kernel has measured; the timer
// ticks a hundred times a second until the kernel sets it.
func (e *engine) startClock() {
	k := e.c
	k.tsc_khz, k.tsc_base = defaultTSC, 1<<40
	if at := e.variable("tsc_khz"); at != 0 {
		if khz := e.word(at) & 0xffffffff; khz != 0 {
			k.tsc_khz = C.uint64_t(khz)
		}
	}
	switch name, last := e.clocksource(); name {
	case "clocksource_tsc", "clocksource_tsc_early":
		k.tsc_base = C.uint64_t(last)
		e.startWatchdog(e.variable(name), last)
	case "clocksource_hpet":
		k.hpet_base = C.uint64_t(last)
	case "clocksource_acpi_pm":
		k.pm_base = C.uint64_t(last)
	}
	k.broadcast, k.ncpus = 0xff, C.int(len(e.cpus))
	for i, c := range e.cpus {
		k.cpus[i] = c.c
		C.kpl_apic_start(c.c, C.int(e.timerVector(e.b.cpu[c.n].Control.IDT)))
	}
	e.b.chance = seeded(e.opt.Seed)
	e.sh.Extra += e.b.chance.upTo(tickPhase)
}

// Interrupts counts the interrupts since the machine was made or restored.
func (e *engine) Interrupts() (n, digest uint64) {
	return uint64(e.c.interrupts), uint64(e.c.trail)
}

// clocksource returns the name of the kernel's clock source, and its counter at the last read. In
// tk_core (timekeeper_data in later kernels) the address of the clock source is followed by its
// mask and by that value (include/linux/timekeeper_internal.h, struct tk_read_base).
func (e *engine) clocksource() (name string, last uint64) {
	at := e.variable("tk_core")
	if at == 0 {
		at = e.variable("timekeeper_data")
	}
	var b [256]byte
	if at == 0 || e.host.Machine().ReadMem(at, b[:]) != nil {
		return "", 0
	}
	for i := 0; i+24 <= len(b); i += 8 {
		p := x86.Addr(binary.LittleEndian.Uint64(b[i:]))
		for _, name := range []string{"clocksource_tsc", "clocksource_tsc_early", "clocksource_hpet", "clocksource_acpi_pm"} {
			if p != 0 && p == e.variable(name) {
				return name, binary.LittleEndian.Uint64(b[i+16:])
			}
		}
	}
	return "", 0
}

// startWatchdog sets the counter by which the kernel watches its clock source: the
// source has the last values of both, one after the other (include/linux/clocksource.h,
// cs_last and wd_last), and the first of them is not long before the last reading.
func (e *engine) startWatchdog(source x86.Addr, last uint64) {
	const (
		size = 256 // of a struct clocksource, at most
		hpet = 10  // nanoseconds a tick
		pm   = 3_579_545
	)
	long := 2000 * uint64(e.c.tsc_khz) // two seconds; the watchdog reads twice in one
	var b [size]byte
	if e.host.Machine().ReadMem(source, b[:]) != nil {
		return
	}
	for i := 0; i+16 <= size; i += 8 {
		read, watchdog := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+8:])
		if read == 0 || read > last || last-read > long {
			continue
		}
		ns := uint64(float64(last-read) / float64(e.c.tsc_khz) * 1e6)
		e.c.hpet_base = C.uint64_t(watchdog + ns/hpet)
		e.c.pm_base = C.uint64_t(watchdog + ns*pm/1_000_000_000)
		return
	}
}

// variable returns the address of a variable of the guest, 0 if there is no symbol or several of
// its name.
func (e *engine) variable(name string) x86.Addr {
	if s := e.host.Source().Lookup(name); len(s) == 1 {
		return s[0].Addr
	}
	return 0
}
