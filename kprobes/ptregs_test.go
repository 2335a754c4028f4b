package kprobes_test

import (
	"unsafe"

	"kprobelab/x86"
)

// ptRegsAt views guest memory as a register frame, as a real machine does.
func ptRegsAt(b []byte) *x86.PtRegs { return (*x86.PtRegs)(unsafe.Pointer(&b[0])) }
