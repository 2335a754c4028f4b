// Package board is the part of a PC around the processors of a booted kernel: local APICs with
// their timers, the interrupts that processors send each other, the counters, the devices' registers
// in memory, the ports, and the model specific registers that are no processor's own. All time is
// virtual.
//
// The engine in Go uses it as it is. The engine in C has the same rules in shim_apic.c and
// shim_devices.c, because it must not call Go for them; a test of emu compares the answers of both.
//
// It must not know an engine, or how a processor takes an interrupt.
package board

import (
	"math/bits"

	"kprobelab/internal/contract"
)

// Counters are the rates and the first values of a machine's counters.
type Counters struct {
	TSCkHz, TSCBase, HPETBase, PMBase uint64
}

// Board is the machine around the processors.
type Board struct {
	Counters
	clock *contract.Shared
	cpus  []*CPU
	cur   *CPU
	// Limit is the instruction count at which the machine stops, whatever comes.
	Limit uint64
	// Turn: another CPU has something to do, so the slice ends.
	Turn bool
	// broadcast is the APIC's number for all: 0xff, or 0xffffffff of an x2APIC.
	broadcast uint32
}

// CPU holds the devices of one processor. A copy of it is its state.
type CPU struct {
	apic
	n int
	// NMI: one waits for the processor.
	NMI bool
}

// New makes a board with n processors, as Linux leaves it. timer is each one's vector of the timer.
func New(clock *contract.Shared, n Counters, timers []int) *Board {
	b := &Board{Counters: n, clock: clock, broadcast: 0xff}
	for i, vector := range timers {
		b.cpus = append(b.cpus, &CPU{n: i})
		b.cur = b.cpus[0]
		b.start(b.cpus[i], vector)
	}
	return b
}

// SetCPU makes the n-th processor the one that runs.
func (b *Board) SetCPU(n int) { b.cur = b.cpus[n] }

// CPU returns the devices of the n-th processor.
func (b *Board) CPU(n int) *CPU { return b.cpus[n] }

// Aim sets the instruction count at which the machine looks again: at the next event, or at the limit.
func (b *Board) Aim() {
	at := b.Limit
	if due := b.cur.due; due != 0 {
		instrs := uint64(0)
		if due > b.clock.Extra {
			instrs = due - b.clock.Extra
		}
		at = min(at, instrs)
	}
	if b.cur.Next() >= 0 || b.cur.NMI || b.Turn {
		at = 0
	}
	b.clock.StopAt.Store(at)
}

// NextEvent is the time at which the next timer fires; 0: none does.
func (b *Board) NextEvent() (at uint64) {
	for _, c := range b.cpus {
		if c.due != 0 && (at == 0 || c.due < at) {
			at = c.due
		}
	}
	return at
}

// Pending reports whether something waits for the n-th processor, now that the clock stands where it does.
func (b *Board) Pending(n int) bool {
	c := b.cpus[n]
	b.expire(c)
	return c.NMI || c.Next() >= 0
}

// TSC is the time stamp counter.
func (b *Board) TSC() uint64 { return b.TSCBase + scale(b.clock.Now(), b.TSCkHz, 1_000_000) }

// toTime is the time at which the time stamp counter has a value.
func (b *Board) toTime(tsc uint64) uint64 {
	if tsc <= b.TSCBase {
		return 1
	}
	return scale(tsc-b.TSCBase, 1_000_000, b.TSCkHz)
}

// scale is v*by/per, in 128 bits; what does not fit is cut off.
func scale(v, by, per uint64) uint64 {
	hi, lo := bits.Mul64(v, by)
	q, _ := bits.Div64(hi%per, lo, per)
	return q
}
