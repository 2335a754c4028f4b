package boot

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"kprobelab/x86"
)

// CheckWords fails for words of the command line that have no effect: the kernel knows no word
// kaslr, and nokaslr is added unless KASLR is set. Words after -- are for init.
func (o *Options) CheckWords() error {
	words := strings.Fields(o.Append)
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	for _, w := range words {
		switch {
		case w == "kaslr":
			return fmt.Errorf("kaslr is no word of the kernel's command line; --kaslr boots with KASLR")
		case w == "nokaslr" && o.KASLR:
			return fmt.Errorf("nokaslr and --kaslr contradict each other")
		}
	}
	return nil
}

// kaslrAlign is the unit in bytes by which KASLR moves the kernel: the least alignment of its text
// (CONFIG_PHYSICAL_ALIGN).
const kaslrAlign = 2 << 20

// findKernel waits until init begins, and computes the address to which KASLR has moved the kernel.
func (g *Guest) findKernel(gate x86.Addr) error {
	entry := x86.Addr(binary.LittleEndian.Uint64(Init[24:])) // e_entry
	if err := g.debugger.BreakAt(entry); err != nil {
		return err
	}
	if err := g.debugger.Go(); err != nil {
		return err
	}
	at, err := g.debugger.Stopped(0)
	if err != nil {
		return err
	}
	if at != entry {
		return fmt.Errorf("the machine stopped at %#x, where boot has no breakpoint", uint64(at))
	}
	table, err := g.running.IDT()
	if err != nil {
		return err
	}
	var b [16]byte
	if err := g.debugger.ReadMemory(table, b[:]); err != nil {
		return err
	}
	handler := gateOffset(b)
	if g.Slide = handler.Sub(gate); g.Slide < 0 || g.Slide%kaslrAlign != 0 {
		return fmt.Errorf("the kernel's first exception is at %#x, but KASLR does not put it there: it is linked at %#x",
			uint64(handler), uint64(gate))
	}
	return g.debugger.Clear(entry)
}

// gateOffset returns the address that a gate of the IDT points to (SDM Vol. 3, "64-Bit Mode IDT").
func gateOffset(gate [16]byte) x86.Addr {
	low, middle := binary.LittleEndian.Uint16(gate[0:]), binary.LittleEndian.Uint16(gate[6:])
	return x86.Addr(uint64(low) | uint64(middle)<<16 | uint64(binary.LittleEndian.Uint32(gate[8:]))<<32)
}
