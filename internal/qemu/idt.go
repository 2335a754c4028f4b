package qemu

import (
	"fmt"
	"strings"

	"kprobelab/x86"
)

// IDT returns the address of the interrupt table of the selected processor. The machine must be
// stopped.
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
