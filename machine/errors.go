package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"kprobelab/x86"
)

// Classes of failure, for errors.Is.
var (
	// ErrClosed: the machine was closed, or a handler ended its goroutine in the middle of a run
	// (runtime.Goexit; t.FailNow does that). It is an fs.ErrClosed, like tracing's error after its
	// end.
	ErrClosed error = closedError{}
	// ErrNoSymbol: the image has no symbol of that name.
	ErrNoSymbol = errors.New("no such symbol")
	// ErrAmbiguous: the image has several symbols of that name.
	ErrAmbiguous = errors.New("symbol is ambiguous")
	// ErrDeadlock: every task sleeps and none will be woken.
	ErrDeadlock = errors.New("all tasks sleep forever")
	// ErrHalted: the guest executed hlt, and no interrupt will ever come.
	ErrHalted = errors.New("cpu halted")
	// ErrPanicked: a booted kernel panicked; ErrReset: it reset the machine. Nothing
	// comes after that.
	ErrPanicked = errors.New("the guest kernel panicked")
	ErrReset    = errors.New("the guest kernel reset the machine")
	// ErrTaskExited: the task ended while a function it called had not
	// returned.
	ErrTaskExited = errors.New("task exited")
	// ErrAtomic: guest code that a handler called tried to sleep or exit.
	ErrAtomic = errors.New("scheduling while atomic")
	// ErrBudget: a run used up its instructions or its time; a *BudgetError has where.
	ErrBudget = errors.New("instruction budget used up")
	// ErrNested: a handler called a function that works only outside a run.
	ErrNested = errors.New("not possible inside a handler")
	// ErrShared: another goroutine is using the machine.
	ErrShared = errors.New("another goroutine uses the machine")
	// ErrCrowded: one handler called so much guest code that the engine has no
	// room for its translation; the room is emptied only between handlers.
	ErrCrowded = errors.New("too much guest code called by one handler")
	// ErrNoMemory: the guest's heap, stacks or module space are full.
	ErrNoMemory = errors.New("guest memory is full")
	// ErrLayout: the image's segments, modules or per-CPU area cannot be laid into
	// a machine's memory.
	ErrLayout = errors.New("image cannot be laid out")
	// ErrInUse: Close was called from a handler, or while another goroutine uses the machine.
	ErrInUse = errors.New("the machine is in use: a handler, or another goroutine, runs on it")
	// ErrHandler: a handler written in Go panicked.
	ErrHandler = errors.New("handler panicked")
	// ErrEngine: the engine failed by itself, or the host has no memory for
	// it. The caller cannot help it. Guest code can bring it about where the engine
	// aborts; the machine fails with it from then on.
	ErrEngine = errors.New("emulation engine failed")
)

// Vectors of exceptions (SDM Vol. 3, "Interrupt and Exception Handling").
const (
	VectorDivide  = 0
	VectorDebug   = 1
	VectorInt3    = 3
	VectorInvalid = 6
	VectorDouble  = 8
	VectorGP      = 13
	VectorPage    = 14
)

var vectorNames = map[int]string{
	0: "divide error", 1: "debug", 2: "nmi", 3: "int3", 4: "overflow", 5: "bounds",
	6: "invalid opcode", 7: "device not available", 8: "double fault",
	10: "invalid TSS", 11: "segment not present", 12: "stack segment",
	13: "general protection fault", 14: "page fault", 16: "x87 FPU error",
	17: "alignment check", 19: "SIMD error",
}

// Access is the kind of access that caused a page fault.
type Access int

// The kinds of access.
const (
	AccessNone Access = iota
	AccessRead
	AccessWrite
	AccessFetch
)

// String is the word for an error text.
func (a Access) String() string { return [...]string{"access", "read", "write", "fetch"}[a&3] }

// Fault is an exception that neither the receiver of traps nor the exception
// table took. The kernel would oops.
type Fault struct {
	Vector int
	// Addr is the address that the instruction could not access, and Access the kind of access.
	// They are set for a page fault, or a general protection fault by an address that is not
	// canonical.
	Addr   x86.Addr
	Access Access
	// IP is the faulting instruction; for int3 it is one past it. If the receiver of traps moved
	// the fault from a copy to the original, IP is the address in the kernel's oops.
	IP     x86.Addr
	Symbol string
	// Regs is the frame at the fault. Nothing of the instruction has happened,
	// except for the finished iterations of a string instruction.
	Regs x86.PtRegs
	// Missing names the instruction that the engine does not execute though a
	// processor does; empty otherwise.
	Missing string
	// Insn and Lacks are the instruction, of an invalid opcode, and the extension for want of
	// which the processor's model does not execute it; empty otherwise.
	Insn, Lacks string
	// CPU and Task are the CPU and the task of the event.
	CPU, Task int
}

// Error is one line: the exception, its place and the address.
func (f *Fault) Error() string {
	name, ok := vectorNames[f.Vector]
	if !ok {
		name = fmt.Sprintf("vector %d", f.Vector)
	}
	at := place(f.Symbol, f.IP)
	if f.Lacks != "" {
		return fmt.Sprintf("%s at %s: %s needs %s, which the processor does not have", name, at, f.Insn, f.Lacks)
	}
	if f.Missing != "" {
		return fmt.Sprintf("%s at %s: the engine does not execute %s", name, at, f.Missing)
	}
	if f.Access == AccessNone {
		return fmt.Sprintf("%s at %s", name, at)
	}
	return fmt.Sprintf("%s at %s: %s of %s", name, at, f.Access, f.Addr)
}

// place names an instruction in an error text: by its symbol and address, or by its address alone
// if it has no symbol.
func place(symbol string, ip x86.Addr) string {
	if symbol == "" || symbol == ip.String() {
		return ip.String()
	}
	return fmt.Sprintf("%s (%s)", symbol, ip)
}

// BudgetError is a run that used up its instructions, or its time.
type BudgetError struct {
	// Limit is the budget, in instructions.
	Limit uint64
	// Work says that the run has not executed as many, but has made the host work
	// as long by other means: code to translate, traps, switches of tasks.
	Work bool
	// Time is the Options.Timeout that the run took; 0 where that did not end it.
	Time time.Duration
	// IP is the start of the block that would have run next.
	IP     x86.Addr
	Symbol string
}

// Error is one line.
func (e *BudgetError) Error() string {
	if e.Time != 0 {
		return fmt.Sprintf("still running after %s, at %s", e.Time, place(e.Symbol, e.IP))
	}
	if e.Work {
		return fmt.Sprintf("still running after the work that a budget of %d instructions allows, with few instructions but much to translate, trap or switch, at %s", e.Limit, place(e.Symbol, e.IP))
	}
	return fmt.Sprintf("still running after %d instructions, at %s", e.Limit, place(e.Symbol, e.IP))
}

// Is makes it an ErrBudget.
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

type closedError struct{}

func (closedError) Error() string        { return "machine is closed" }
func (closedError) Is(target error) bool { return target == fs.ErrClosed }
