package machine

import (
	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// Engine executes guest code: it holds memory, and CPUs over it. It knows nothing of tasks, calls
// and probes. A package with an engine makes machines of it by New.
type Engine interface {
	// Name names the engine and its version.
	Name() string
	// Shared returns the memory that machine and engine share.
	Shared() *contract.Shared

	// Reserve makes room for guest memory, page-aligned, with no page mapped. It
	// is called before the first Open, and for a machine that has not booted in a fault, too.
	Reserve(r x86.Range) error
	// Discard makes the pages of a range zero, and returns their memory to the host. They are not
	// mapped, and no snapshot has them.
	Discard(r x86.Range)
	// Allow gives the pages of a range more attributes, Unmap takes all away but
	// AttrDirty, and reports whether one could be executed.
	Allow(r x86.Range, attr byte)
	Unmap(r x86.Range) (executable bool)
	// Bytes returns n bytes of guest memory within one page, as memory of the host, if the page has
	// all attributes of need.
	Bytes(addr x86.Addr, n int, need byte) ([]byte, error)
	// Touch is called before the host writes guest memory, for snapshots.
	Touch(addr x86.Addr, n int)

	// Saved returns the number of pages saved since Track. A page is saved when it is first
	// written, and again after Clean.
	Saved() int
	Track(on bool)
	// Clean makes the from-th saved page and all later ones be saved again when
	// they are next written.
	Clean(from int)
	// Changed lists the pages that differ from the copies saved as the from-th and later, sorted.
	Changed(from int) []x86.Addr
	// Rewind puts the from-th saved page and all later ones back, and makes every CPU drop its
	// translations of their text. Forget drops the saved copies.
	Rewind(from int)
	Forget(from int)

	// Open adds a CPU, as a kernel leaves it when it has booted.
	Open() (CPU, error)
	// NewState makes room for the registers of a task.
	NewState() contract.State
	// Aim makes a run stop before instruction n, counted by blocks.
	Aim(n uint64)
	// Here reports whether the caller is inside a call that a running CPU has made.
	Here() bool
	// Console returns the bytes that the guest wrote to the console port since the last call.
	Console() []byte
	// Close frees everything.
	Close()
}

// CPU is one processor of an engine.
type CPU interface {
	// Boot sets the GS base, and ends the preparation of the CPU.
	Boot(gs x86.Addr) error
	// Answer returns the CPU's Answer, which the host sets before the next int3.
	Answer() *contract.Answer

	// Start runs from ip until the host has to act. It is called again from inside calls that the
	// CPU makes of its Host.
	Start(ip x86.Addr) contract.Exit
	// Depth returns the number of Starts that have not returned.
	Depth() int
	// Fault calls handle with the exception that ended the run. The CPU takes the registers as
	// handle leaves them. The result is the address at which it continues.
	Fault(handle func(f *Fault, regs *x86.PtRegs)) (x86.Addr, error)

	IP() x86.Addr
	SetIP(ip x86.Addr)
	// Regs is valid until the CPU's next method is called.
	Regs() *x86.PtRegs
	Flags() uint64
	// Enter sets the registers at a function's first instruction but for its
	// address (System V ABI): six arguments, al = 0 for a variadic function, the
	// other general registers 0.
	Enter(sp x86.Addr, args [6]uint64, flags uint64)
	Save(s contract.State)
	Load(s contract.State)
	// Drop makes the CPU see n bytes of text as they are.
	Drop(addr x86.Addr, n int)
}

// Attributes of a guest page. A page without attributes is not mapped.
const (
	AttrR = 1 << iota
	AttrW
	AttrX
	// AttrDirty: it has been saved since the last snapshot.
	AttrDirty
)

// workTurn is the host's time for a switch of tasks, as contract.WorkTrap is for a trap.
const workTurn = 200
