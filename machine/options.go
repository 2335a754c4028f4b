package machine

import (
	"fmt"
	"time"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/cpumodel"
)

// DefaultCPUModel is the model that a machine emulates by default.
const DefaultCPUModel = cpumodel.Default

// MaxRegion is the most bytes of one piece of guest memory, so that a broken image cannot use up
// the host's address space.
const MaxRegion = bounded.GuestRegion

// Options are the choices of a machine. A zero field means its default.
type Options struct {
	// CPUs is the number of CPUs: 1 by default, at most 64.
	CPUs int
	// Seed decides every choice of the scheduler. On a booted kernel, another seed than 0 varies the turns of processors
	// and when timers fall.
	Seed int64
	// CPUModel is the name of a CPU that the engine emulates; DefaultCPUModel by default.
	CPUModel string
	// Budget is the number of instructions that a Call or a Run may execute before it fails with a
	// *BudgetError: 100 million by default. A fault that the guest survives counts as 500.
	// Translations of code, traps and switches of tasks have an allowance of their own, which grows
	// with the budget: see BudgetError.Work.
	Budget uint64
	// Timeout is the real time that a Call or a Run may take before it fails with a *BudgetError:
	// unlimited by default. The instruction at which it fails depends on the host, so runs with a
	// timeout need not repeat. A handler in Go is not interrupted.
	Timeout time.Duration
	// Slice is the number of instructions after which the scheduler may switch to another task:
	// 1000 by default, counted by blocks, and 1 with EveryInstruction. Short functions never
	// overlap in a long slice.
	Slice uint64
	// EveryInstruction counts and switches by single instructions, not by
	// blocks, to explore interleavings: after any instruction, unless Slice says after how
	// many. It is several times slower.
	EveryInstruction bool
	// HeapSize is the most bytes that the guest's heap and per-CPU areas may
	// take: 64 MiB by default. The host pays for a page when it is first used.
	HeapSize uint64
	// UserMode gives a machine without a kernel a user mode: code runs in it after a trap whose receiver has left a CS of
	// user mode (x86.UserCS) in the frame, and in kernel mode after one with x86.KernelCS. In user mode there is no
	// memory in the upper half of the addresses, and privileged instructions fault.
	UserMode bool
	// FreeHits lets no virtual time pass in a probe's own work: its trap, and code
	// that was added to the image (slots, detour buffers, trampolines). A probed run
	// of a booted kernel then gets its timers' interrupts where the unprobed one does.
	FreeHits bool
	// TrapCost is the virtual time in nanoseconds that int3 and #DB take: 100 by default. An
	// instruction takes one nanosecond.
	TrapCost uint64
}

// Fill sets the fields that are zero to their defaults. It fails with errno.EINVAL
// where a machine cannot be made so.
func (o *Options) Fill() error {
	def := func(v *uint64, d uint64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Budget, 100_000_000)
	if o.EveryInstruction {
		def(&o.Slice, 1)
	}
	def(&o.Slice, 1000)
	def(&o.HeapSize, 64<<20)
	def(&o.TrapCost, 100)
	if o.CPUs == 0 {
		o.CPUs = 1
	}
	if o.CPUs < 0 || o.CPUs > 64 {
		return fmt.Errorf("%d cpus: want 1 to 64: %w", o.CPUs, errno.EINVAL)
	}
	if o.HeapSize > MaxRegion {
		return fmt.Errorf("heap of %d bytes: %w", o.HeapSize, errno.EINVAL)
	}
	return nil
}
