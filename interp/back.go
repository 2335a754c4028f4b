package interp

import "kprobelab/x86"

type journal struct{}

func (j *journal) memory(m *Machine, addr x86.Addr, n int) {}
