package machine

import (
	"sync/atomic"

	"kprobelab/x86"
)

// Engine executes guest code: it holds memory, and CPUs over it. It knows nothing of tasks, calls
// and probes. A package with an engine makes machines of it by New.
type Engine interface {
	// Name names the engine and its version.
	Name() string
	// Shared returns the memory that machine and engine share.
	Shared() *Shared

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
	NewState() State
	// Aim makes a run stop before instruction n, counted by blocks.
	Aim(n uint64)
	// Here reports whether the caller is inside a call that a running CPU has made.
	Here() bool
	// Console returns the bytes that the guest wrote to the console port since the last call.
	Console() []byte
	// Close frees everything.
	Close()
}

// State is the registers of a task, for the CPU's Save and Load.
type State interface{}

// CPU is one processor of an engine.
type CPU interface {
	// Boot sets the GS base, and ends the preparation of the CPU.
	Boot(gs x86.Addr) error
	// Answer returns the CPU's Answer, which the host sets before the next int3.
	Answer() *Answer

	// Start runs from ip until the host has to act. It is called again from inside calls that the
	// CPU makes of its Host.
	Start(ip x86.Addr) Exit
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
	Save(s State)
	Load(s State)
	// Drop makes the CPU see n bytes of text as they are.
	Drop(addr x86.Addr, n int)
}

// Exit describes the end of a run.
type Exit struct {
	Why Reason
	// IP is the address at which the CPU continues.
	IP x86.Addr
	// Arg is the virtual nanoseconds of Slept.
	Arg uint64
	// Err is the error of Failed.
	Err error
}

// Reason is the reason why a run ended.
type Reason uint8

// The reasons.
const (
	// Returned: the function that the host called has.
	Returned Reason = iota
	// TimeUp: the instruction count has reached the argument of Aim, or Shared.StopAt is 0. The
	// block at IP has not run.
	TimeUp
	// Yielded, Slept, Exited: the guest made that hypercall (emu/ports.h).
	Yielded
	Slept
	Exited
	// Again: the run goes on at IP, the engine had to pause.
	Again
	// Faulted: an exception, which is for Fault.
	Faulted
	// Halted: hlt.
	Halted
	// Failed: the engine gives up, and says why.
	Failed
)

// Attributes of a guest page. A page without attributes is not mapped.
const (
	AttrR = 1 << iota
	AttrW
	AttrX
	// AttrDirty: it has been saved since the last snapshot.
	AttrDirty
)

// Shared holds the counters that engine and machine share. An engine in C declares the same struct.
type Shared struct {
	// Instrs counts instructions; those of a block are added as it begins. The virtual clock is
	// Instrs + Extra nanoseconds.
	Instrs, Extra uint64
	// The run stops before the count StopAt, and fails at the count Budget.
	StopAt atomic.Uint64
	Budget uint64
	// Work is the host's time besides instructions, converted to instructions that would take as
	// long. A run stops once it is more than Allowance. It counts neither for the virtual clock nor
	// for the budget.
	Work, Allowance uint64
	// Crossings counts the calls that CPUs made of their Host.
	Crossings uint64
	// OuterEnd is the return address of a function that the host called. InnerEnd is the same for a
	// run inside a call of the Host: the run ends there.
	OuterEnd, InnerEnd x86.Addr
	// Expired is 1 once the run's time is up.
	Expired atomic.Uint32
	// Task is the number of the running task.
	Task int32
}

// Now is the virtual clock, in nanoseconds since boot.
func (s *Shared) Now() uint64 { return s.Instrs + s.Extra }

// FaultCost is the cost in the budget of a fault that the guest survives: the number of
// instructions that run in the host's time for it. Without it, an exception table that leads back
// to the fault would run for ever, because an instruction that faults at its fetch does not count.
const FaultCost = 500

// PayFault takes FaultCost from the budget.
func (s *Shared) PayFault() {
	s.Budget -= min(FaultCost, s.Budget)
	s.Work += FaultCost
}

// MaxDepth is the most runs that can nest inside calls of the Host. (Unicorn documents 64, and
// crashes in the 64th.)
const MaxDepth = 63

// The host's time besides instructions, converted to instructions that would take as long.
const (
	WorkBlock = 1000 // to prepare a block of code
	WorkByte  = 100  // and for each byte of it
	WorkTrap  = 150
	workTurn  = 200
)
