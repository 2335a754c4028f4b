package emu

import (
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Source is what a machine needs of the image that it runs. A *kimage.Image
// is one; tests have small ones of their own.
type Source interface {
	// Segments are mapped as they are, page by page.
	Segments() []kimage.Segment
	// PerCPU is the template of the area that each CPU gets a copy of.
	PerCPU() (kimage.PerCPU, bool)
	// Lookup finds the functions that Call names.
	Lookup(name string) []kimage.Symbol
	// SymbolAt names addresses in errors.
	SymbolAt(addr x86.Addr) (kimage.Symbol, bool)
	// ExceptionEntry is the exception table's fixup for an instruction.
	ExceptionEntry(addr x86.Addr) (x86.Addr, bool)
	// ModuleEnd is where module space is free; 0 means its usual start.
	ModuleEnd() x86.Addr
}

// Traps is what a machine calls when a CPU traps, on that CPU, with
// interrupts off, and with the frame to resume from afterwards. regs is valid
// during the call only. A false return means: not mine, do what the kernel
// does otherwise.
type Traps interface {
	// Int3 is vector 3; regs.IP is behind the int3.
	Int3(regs *x86.PtRegs) bool
	// Debug is vector 1. The trap flag is still set in regs.Flags, and the
	// receiver clears it to go on without stepping.
	Debug(regs *x86.PtRegs) bool
	// Fault is any other exception, with regs.IP at the faulting
	// instruction. After a false return the machine looks in the exception
	// table for regs.IP as it is then.
	Fault(regs *x86.PtRegs, vector int) bool
	// TaskExit tells that a task has ended, or that the boot task's call was
	// given up and will never go on.
	TaskExit(task int)
}
