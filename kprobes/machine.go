package kprobes

import "kprobelab/x86"

// Machine is the machine that the subsystem runs on. Package emu implements it; tests here have a
// small fake. One CPU runs at a time, so no method needs to be safe for concurrent use.
type Machine interface {
	// NumCPU is the number of CPUs, all of them online.
	NumCPU() int
	// CPU is the number of the CPU that runs now.
	CPU() int
	// Task is the dense number of the task that runs now, from 0.
	Task() int
	// Now is the virtual clock, in nanoseconds since boot.
	Now() uint64

	// ReadMem reads guest memory as it is now, patched text and all. It reads
	// all of b or fails with an error that wraps errno.EFAULT.
	ReadMem(addr x86.Addr, b []byte) error
	// WriteMem writes data memory; it fails as ReadMem does, and on text.
	WriteMem(addr x86.Addr, b []byte) error
	// PokeText changes text, which is read-only to the guest. Every CPU drops its translations of
	// that text: it is text_poke and the sync-core IPI in one.
	PokeText(addr x86.Addr, b []byte) error

	// AllocExec maps size bytes of executable memory in module space and
	// names it as the kernel's kallsyms does ("kprobe_insn_page").
	AllocExec(size int, name string) (x86.Addr, error)
	// Callout makes a stub in guest memory, named by a symbol. Guest code that
	// calls it runs fn on its CPU. The caller puts the address of a frame on
	// its stack into rdi: fn gets that address, and the frame itself to read
	// and change in place.
	Callout(symbol string, fn func(frame x86.Addr, regs *x86.PtRegs)) (x86.Addr, error)

	// GSBase is a CPU's GS base. A per-CPU variable is at GSBase plus the address of its symbol.
	GSBase(cpu int) x86.Addr

	// SetTraps installs the subsystem as the receiver of the CPUs' traps.
	SetTraps(x86.Traps)
}

// Pointers is an optional interface of a machine: CPU and Task without a call.
type Pointers interface {
	Where() (cpu, task *int)
}

// Swapper is an optional interface of a machine: SwapWord reads and writes a word in one call. If
// it cannot do both, it changes nothing.
type Swapper interface {
	SwapWord(addr x86.Addr, v uint64) (old uint64, err error)
}
