package board

import "math/bits"

// apic is a processor's local APIC, as far as a kernel uses it (SDM Vol. 3A, chapter 11). Its timer
// counts nanoseconds.
type apic struct {
	id, tpr, ldr, dfr, svr, icrHigh, divide, initial uint32
	lvt                                              [7]uint32
	isr, irr                                         [8]uint32
	due                                              uint64 // when the timer fires; 0: it does not run
	period                                           uint64 // of a periodic timer
	guessed                                          bool   // the kernel has not set the timer since the dump
}

// The registers, by their offsets in memory.
const (
	regID       = 0x20
	regVersion  = 0x30
	regTPR      = 0x80
	regEOI      = 0xb0
	regLDR      = 0xd0
	regDFR      = 0xe0
	regSVR      = 0xf0
	regISR      = 0x100
	regIRR      = 0x200
	regICR      = 0x300
	regICRHigh  = 0x310
	regLVT      = 0x320
	regLVTEnd   = 0x380
	regInitial  = 0x380
	regCurrent  = 0x390
	regDivide   = 0x3e0
	apicVersion = 0x50014
)

const (
	lvtMasked   = 1 << 16
	lvtPeriodic = 1 << 17
	lvtDeadline = 1 << 18
)

// tick is the period of a timer that the kernel has not set.
const tick = 10_000_000

func highest(list *[8]uint32) int {
	for i := 7; i >= 0; i-- {
		if list[i] != 0 {
			return i*32 + 31 - bits.LeadingZeros32(list[i])
		}
	}
	return -1
}

// Next is the vector that would be delivered now, -1 for none.
func (a *apic) Next() int {
	waits, serves := highest(&a.irr), highest(&a.isr)
	if waits < 0 || waits>>4 <= int(a.tpr>>4&15) || serves >= 0 && waits>>4 <= serves>>4 {
		return -1
	}
	return waits
}

// Take delivers a vector.
func (a *apic) Take(vector int) {
	a.irr[vector/32] &^= 1 << (vector % 32)
	a.isr[vector/32] |= 1 << (vector % 32)
}

func (a *apic) raise(vector int) { a.irr[vector/32] |= 1 << (vector % 32) }

func (a *apic) endOfInterrupt() {
	if v := highest(&a.isr); v >= 0 {
		a.isr[v/32] &^= 1 << (v % 32)
	}
}

func (a *apic) divisor() uint64 {
	d := a.divide&3 | a.divide>>1&4
	if d == 7 {
		return 1
	}
	return 2 << d
}

// start is the APIC as Linux leaves it, and a timer that ticks until the kernel sets it.
func (b *Board) start(c *CPU, timer int) {
	c.apic = apic{id: uint32(c.n), ldr: 1 << (24 + c.n%8), dfr: 0xffffffff, svr: 0x1ff}
	c.lvt[0] = uint32(timer) | lvtPeriodic
	b.arm(c, tick)
	c.guessed = true
}

// expire does what the timer has done up to now.
func (b *Board) expire(c *CPU) {
	now := b.clock.Now()
	if c.due == 0 || c.due > now {
		return
	}
	if c.lvt[0]&lvtMasked == 0 {
		c.raise(int(c.lvt[0] & 0xff))
	}
	// Ticks that were missed with interrupts off come once.
	if c.period == 0 {
		c.due = 0
		return
	}
	c.due += c.period * ((now-c.due)/c.period + 1)
}

func (b *Board) arm(c *CPU, after uint64) {
	c.period, c.due, c.guessed = 0, 0, false
	if c.lvt[0]&lvtPeriodic != 0 {
		c.period = after
	}
	if after != 0 {
		c.due = b.clock.Now() + after
	}
	b.Aim()
}

// deadline makes the timer fire when the time stamp counter is this.
func (b *Board) deadline(c *CPU, tsc uint64) {
	now, at := b.clock.Now(), b.toTime(tsc)
	c.period, c.guessed = 0, false
	switch {
	case tsc == 0:
		c.due = 0
	case at > now:
		c.due = at
	default:
		c.due = now + 1
	}
	b.Aim()
}

// Kinds of delivery and of destinations in the interrupt command register.
const (
	modeLowest = 1
	modeNMI    = 4
	icrLogical = 1 << 11
	toSelf     = 1
	toAll      = 2
	toOthers   = 3
)

// isFor reports whether an interrupt for a destination is for the processor.
func (b *Board) isFor(c, from *CPU, icr, to uint32) bool {
	switch icr >> 18 & 3 {
	case toSelf:
		return c == from
	case toAll:
		return true
	case toOthers:
		return c != from
	}
	switch {
	case icr&icrLogical == 0:
		return to == c.id || to == b.broadcast
	case b.broadcast == 0xff: // xAPIC, flat
		return to&(c.ldr>>24) != 0
	}
	return to>>16 == c.id>>4 && to>>(c.id&15)&1 != 0
}

func (b *Board) send(from *CPU, icr, to uint32) {
	mode := icr >> 8 & 7
	for _, c := range b.cpus {
		if !b.isFor(c, from, icr, to) {
			continue
		}
		if mode <= modeLowest {
			c.raise(int(icr & 0xff))
		} else if mode == modeNMI {
			c.NMI = true
		}
		if c != from {
			b.Turn = true
		}
		if mode == modeLowest {
			break // one of them
		}
	}
	b.Aim()
}

func (b *Board) readAPIC(c *CPU, reg uint32) uint32 {
	switch {
	case reg >= regISR && reg < regISR+0x80:
		return c.isr[(reg-regISR)/16]
	case reg >= regIRR && reg < regIRR+0x80:
		return c.irr[(reg-regIRR)/16]
	case reg >= regLVT && reg < regLVTEnd:
		return c.lvt[(reg-regLVT)/16]
	}
	switch reg {
	case regID:
		return c.id << 24
	case regVersion:
		return apicVersion
	case regTPR:
		return c.tpr
	case regLDR:
		return c.ldr
	case regDFR:
		return c.dfr
	case regSVR:
		return c.svr
	case regICRHigh:
		return c.icrHigh
	case regInitial:
		return c.initial
	case regCurrent:
		if now := b.clock.Now(); c.due > now {
			return uint32((c.due - now) / c.divisor())
		}
	case regDivide:
		return c.divide
	}
	return 0
}

func (b *Board) writeAPIC(c *CPU, reg, v uint32) {
	if reg >= regLVT && reg < regLVTEnd {
		c.lvt[(reg-regLVT)/16] = v
		if reg == regLVT && c.guessed {
			b.arm(c, 0)
		}
		return
	}
	switch reg {
	case regTPR:
		c.tpr = v
		b.Aim()
	case regEOI:
		c.endOfInterrupt()
		b.Aim()
	case regLDR:
		c.ldr = v
	case regDFR:
		c.dfr = v
	case regSVR:
		c.svr = v
	case regICR:
		b.send(c, v, c.icrHigh>>24)
	case regICRHigh:
		c.icrHigh = v
	case regInitial:
		c.initial = v
		if c.lvt[0]&lvtDeadline == 0 {
			if c.guessed { // the kernel sets it each time: not periodic
				c.lvt[0] &^= lvtPeriodic
			}
			b.arm(c, uint64(v)*c.divisor())
		}
	case regDivide:
		c.divide = v
	}
}
