//go:build cgo && linux && amd64

package emu

import "kprobelab/x86"

// fixup looks for the instruction at regs.IP in the exception table and goes
// to its fixup. Simplified: an entry's handler type is not looked at, so a
// fixup that the kernel would hand a register with -EFAULT or zero in it
// finds what the register held.
func (m *Machine) fixup(regs *x86.PtRegs) bool {
	to, ok := m.src.ExceptionEntry(x86.Addr(regs.IP))
	if ok {
		regs.IP = uint64(to)
	}
	return ok
}
