package interp

import "kprobelab/internal/cpumodel"

// CPUModels lists the models that a machine can emulate, sorted.
func CPUModels() []string { return cpumodel.Names() }

// newSystem is the system registers of a booted kernel.
func newSystem(m *cpumodel.Model) system {
	s := system{msr: map[uint32]uint64{}}
	s.cr[0], s.cr[4] = 0x80050033, 0x6f0
	if m.Executes("XSAVE") {
		s.cr[4] |= 1 << 18
	}
	s.xcr0 = 1
	s.dr[6], s.dr[7] = 0xffff0ff0, 0x400
	s.sel[1], s.sel[segSS] = 0x10, 0x18
	for n, v := range bootMSRs {
		s.msr[n] = v
	}
	return s
}
