package process

import (
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Call makes a system call of the running thread, which does not execute anything in between.
func (p *Process) Call(nr uint64, args ...uint64) int64 {
	r := &x86.PtRegs{AX: nr}
	for i, to := range []*uint64{&r.DI, &r.SI, &r.DX, &r.R10, &r.R8, &r.R9}[:len(args)] {
		*to = args[i]
	}
	p.systemCall(r)
	return int64(r.AX)
}

// Noted counts the pages with contents.
func (p *Process) Noted() int { return len(p.used) }

// MaxMappings bounds the mappings of a space.
const MaxMappings = bounded.Mappings
