package fromdump

import (
	"encoding/binary"

	"kprobelab/internal/board"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// defaultTSC is the rate of the time stamp counter where the kernel does not say, in kHz.
const defaultTSC = 1_000_000

// Counters are the values with which a machine's counters go on: no dump has them. They continue from
// the kernel's last reading, at the rate that the kernel has measured.
func (g Guest) Counters() board.Counters {
	c := board.Counters{TSCkHz: defaultTSC, TSCBase: 1 << 40}
	if at := g.Variable("tsc_khz"); at != 0 {
		if khz := g.Word(at) & 0xffffffff; khz != 0 {
			c.TSCkHz = khz
		}
	}
	switch name, last := g.clocksource(); name {
	case "clocksource_tsc", "clocksource_tsc_early":
		c.TSCBase = last
		g.watchdog(&c, g.Variable(name), last)
	case "clocksource_hpet":
		c.HPETBase = last
	case "clocksource_acpi_pm":
		c.PMBase = last
	}
	return c
}

// clocksource returns the name of the kernel's clock source, and its counter at the last read. In
// tk_core (timekeeper_data in later kernels) the address of the clock source is followed by its
// mask and by that value (include/linux/timekeeper_internal.h, struct tk_read_base).
func (g Guest) clocksource() (name string, last uint64) {
	at := g.Variable("tk_core")
	if at == 0 {
		at = g.Variable("timekeeper_data")
	}
	var b [256]byte
	if at == 0 || g.Host.Machine().ReadMem(at, b[:]) != nil {
		return "", 0
	}
	for i := 0; i+24 <= len(b); i += 8 {
		p := x86.Addr(binary.LittleEndian.Uint64(b[i:]))
		for _, name := range []string{"clocksource_tsc", "clocksource_tsc_early", "clocksource_hpet", "clocksource_acpi_pm"} {
			if p != 0 && p == g.Variable(name) {
				return name, binary.LittleEndian.Uint64(b[i+16:])
			}
		}
	}
	return "", 0
}

// watchdog sets the counter by which the kernel watches its clock source: the
// source has the last values of both, one after the other (include/linux/clocksource.h,
// cs_last and wd_last), and the first of them is not long before the last reading.
func (g Guest) watchdog(c *board.Counters, source x86.Addr, last uint64) {
	const (
		size = 256 // of a struct clocksource, at most
		hpet = 10  // nanoseconds a tick
		pm   = 3_579_545
	)
	long := 2000 * c.TSCkHz // two seconds; the watchdog reads twice in one
	var b [size]byte
	if g.Host.Machine().ReadMem(source, b[:]) != nil {
		return
	}
	for i := 0; i+16 <= size; i += 8 {
		read, watchdog := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+8:])
		if read == 0 || read > last || last-read > long {
			continue
		}
		ns := uint64(float64(last-read) / float64(c.TSCkHz) * 1e6)
		c.HPETBase = watchdog + ns/hpet
		c.PMBase = watchdog + ns*pm/1_000_000_000
		return
	}
}

// defaultTimerVector is the timer's vector where the dump does not tell (LOCAL_TIMER_VECTOR, 4.17 and later).
const defaultTimerVector = 0xec

// timerHandlers names the kernel's entries for the interrupt of a local APIC's timer; kernels to 5.7 have the second.
var timerHandlers = []string{"asm_sysvec_apic_timer_interrupt", "apic_timer_interrupt"}

// TimerVector is the vector that leads to the kernel's handler of its local APIC's timer. Its number
// changed with releases: 0xef in 4.14.
func (g Guest) TimerVector(idt vmcore.Segment) int {
	for _, name := range timerHandlers {
		if handler := g.Variable(name); handler != 0 {
			if v, ok := vectorOf(g.Host.Machine().ReadMem, idt, handler); ok {
				return v
			}
		}
	}
	return defaultTimerVector
}

// vectorOf is the first vector of a device whose gate leads to a handler.
func vectorOf(read func(x86.Addr, []byte) error, idt vmcore.Segment, handler x86.Addr) (int, bool) {
	const (
		devices = 0x20 // exceptions are before
		size    = 16
	)
	var gate [size]byte
	for v := devices; v < 256 && uint32(v*size+size-1) <= idt.Limit; v++ {
		if read(x86.Addr(idt.Base).Add(int64(v*size)), gate[:]) != nil {
			continue
		}
		at := uint64(binary.LittleEndian.Uint16(gate[:])) | uint64(binary.LittleEndian.Uint16(gate[6:]))<<16 |
			uint64(binary.LittleEndian.Uint32(gate[8:]))<<32
		if x86.Addr(at) == handler {
			return v, true
		}
	}
	return 0, false
}
