package qemu

import (
	"fmt"
	"strings"

	"kprobelab/x86"
)

// IDT is where the processor that is looked at has its table of interrupts. The machine
// must stand.
func (r *Running) IDT() (x86.Addr, error) {
	var text string
	if err := r.monitor.ask("human-monitor-command", map[string]any{"command-line": "info registers"}, &text); err != nil {
		return 0, err
	}
	return idt(text)
}

// idt reads the line of the table in QEMU's list of registers.
func idt(registers string) (x86.Addr, error) {
	_, rest, found := strings.Cut(registers, "IDT=")
	var at uint64
	if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%x", &at); !found || err != nil {
		return 0, fmt.Errorf("QEMU's monitor, info registers: no IDT in %.40q", registers)
	}
	return x86.Addr(at), nil
}
