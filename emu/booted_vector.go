//go:build unicorn && cgo && linux && amd64

package emu

import (
	"encoding/binary"

	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// defaultTimerVector is the timer's vector where the dump does not tell (LOCAL_TIMER_VECTOR, 4.17 and later).
const defaultTimerVector = 0xec

// timerHandlers names the kernel's entries for the interrupt of a local APIC's timer; kernels to 5.7 have the second.
var timerHandlers = []string{"asm_sysvec_apic_timer_interrupt", "apic_timer_interrupt"}

// timerVector is the vector that leads to the kernel's handler of its local APIC's timer. Its number
// changed with releases: 0xef in 4.14.
func (e *engine) timerVector(idt vmcore.Segment) int {
	for _, name := range timerHandlers {
		if handler := e.variable(name); handler != 0 {
			if v, ok := vectorOf(e.host.Machine().ReadMem, idt, handler); ok {
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
