package x86

// Traps receives the traps of a machine's CPUs. The machine calls a method on the trapping CPU,
// with interrupts off, and with the frame to resume from afterwards. regs is valid during the call
// only. If a method returns false the kernel handles the trap. kprobes implements Traps.
type Traps interface {
	// Int3 is vector 3; regs.IP is one past the int3.
	Int3(regs *PtRegs) bool
	// Debug is vector 1. The trap flag is still set in regs.Flags, and the
	// receiver clears it to go on without stepping.
	Debug(regs *PtRegs) bool
	// Fault is any other exception, with regs.IP at the faulting instruction.
	// After a false return the machine looks in the exception table for regs.IP
	// as it is then, because a fault in a copied instruction is reported at the
	// original's address.
	Fault(regs *PtRegs, vector int) bool
	// TaskExit tells that a task has ended, or that the boot task's call was
	// given up and will never go on.
	TaskExit(task int)
}
