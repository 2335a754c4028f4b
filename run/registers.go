package run

import "kprobelab/x86"

// register is a word of struct pt_regs with its name there.
type register struct {
	name  string
	value uint64
}

// registers lists the words that a probe's reader looks at, in the order in
// which the kernel prints them.
func registers(r *x86.PtRegs) []register {
	return []register{
		{"ip", r.IP}, {"flags", r.Flags}, {"sp", r.SP},
		{"ax", r.AX}, {"bx", r.BX}, {"cx", r.CX}, {"dx", r.DX},
		{"si", r.SI}, {"di", r.DI}, {"bp", r.BP},
		{"r8", r.R8}, {"r9", r.R9}, {"r10", r.R10}, {"r11", r.R11},
		{"r12", r.R12}, {"r13", r.R13}, {"r14", r.R14}, {"r15", r.R15},
	}
}
