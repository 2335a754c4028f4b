package host

import (
	"fmt"
	"slices"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/source"
)

// Function is one of the kernel's.
type Function struct {
	Name, Module string
	Addr         uint64
}

// Tracepoint is one of the kernel's.
type Tracepoint struct {
	Name string
	// System is what its event belongs to, "" where there is none.
	System string
	// Params are what its probes get.
	Params []ctype.Param
}

// ProbeKind says what makes a probe's handler run.
type ProbeKind uint8

const (
	Begin ProbeKind = iota
	End
	Error
	Never
	Timer
	Call
	Return
	Trace
	Data
	// User is for a place in a program.
	User
)

// Chain says where the stack begins that perf finds at a probe.
type Chain uint8

const (
	// ByRegisters: at the registers of a kprobe, and what they interrupt.
	ByRegisters Chain = iota
	// BySite: where ftrace's call in a function returns to.
	BySite
	// ByCaller: at who calls the tracepoint.
	ByCaller
	// ByProgram: at the registers of the program, which has no stack of the kernel's.
	ByProgram
)

// Probe is a probe that is to be planted.
type Probe struct {
	Kind ProbeKind
	// Point is the probe point after aliases and patterns, Written as the script has it.
	Point, Written string
	// Alias is the name that the language has for what Written means, "" for none.
	Alias   string
	Handler *script.Handler
	// Entry runs at the entry of a function whose return is probed, nil for nothing: it saves
	// Saved words.
	Entry *script.Handler
	Saved int
	// Order is the number of begin(N) and end(N).
	Order int64
	// Symbol, Offset, Module and Addr are where it is; Function is the source's name of it.
	Symbol, Module string
	Offset, Addr   uint64
	Function       string
	MaxActive      int
	// Optional is for one that need not be there.
	Optional bool
	// Every is a timer's interval in nanoseconds, Random how much it varies to either side;
	// Profile is for one that ticks on each CPU.
	Every, Random uint64
	Profile       bool
	// Syscall is the system call that it stands for.
	Syscall string
	// Locals are the handler's variables, for -p2 and -L.
	Locals []string
	// Record is the event of a tracepoint whose records are wanted, "SYSTEM:NAME"; the record's
	// address is where a function has its first parameter.
	Record string
	Chain  Chain
	// Above is an address that the stack of a tracepoint has before its caller, 0 for none.
	Above uint64
	// Watched is the memory of a Data probe, InProgram the place of a User probe.
	Watched   *Watched
	InProgram *InProgram
	// Place is what variables are read at, Trace what a tracepoint gives.
	Place *source.Place
	Trace *Tracepoint
}

// Program is a file of programs' code.
type Program struct {
	File string
	// Functions are those that it loads, by their addresses.
	Functions []ProgramSymbol
	// Variables are by their addresses, too.
	Variables []ProgramSymbol
	// Movable is for a file that is not loaded at its own addresses; Base is then how far away from them
	// it was at the last hit.
	Movable bool
	Base    uint64
	// Code is where its code begins.
	Code uint64
	// Offset is where in the file an address is.
	Offset func(addr uint64) (offset uint64, ok bool)
}

// ProgramSymbol is one of a file's functions or variables: Addr is the file's own address of it, Offset
// where it begins in the file.
type ProgramSymbol struct {
	Name               string
	Addr, Size, Offset uint64
	// Bytes are a function's first ones.
	Bytes [4]byte
}

// InProgram is a place in a program, where a uprobe is planted.
type InProgram struct {
	Program *Program
	// Addr is the file's own address, Offset the place in the file.
	Addr, Offset uint64
	// Bytes are the first ones there.
	Bytes [4]byte
	// Return is for the returns of the function that begins there.
	Return bool
	// Target is for what the process of -c does alone.
	Target bool
	// Hidden is for returns at which the kernel does not tell a BPF program where the function begins.
	Hidden bool
}

// Symbol is the function that has an address of a process.
func (p *Program) Symbol(addr uint64) (name string, offset uint64, ok bool) {
	if p.Movable && p.Base == 0 {
		return "", 0, false
	}
	addr -= p.Base
	i, _ := slices.BinarySearchFunc(p.Functions, addr, func(f ProgramSymbol, addr uint64) int {
		if f.Addr <= addr {
			return -1
		}
		return 1
	})
	for i--; i >= 0; i-- {
		if f := &p.Functions[i]; addr-f.Addr < f.Size || addr == f.Addr {
			return f.Name, addr - f.Addr, true
		}
		if p.Functions[i].Size > 0 {
			break
		}
	}
	return "", 0, false
}

// Watched is memory whose accesses are probed: Len bytes from Addr on, or of a symbol where
// there is a Symbol.
type Watched struct {
	Symbol string
	Addr   uint64
	Len    uint32
	// Reads is for one that hits of reads, too.
	Reads bool
	// Executes is for the execution of the instruction at Addr, and for no access of data.
	Executes bool
	// Target is for what the process of -c does alone.
	Target bool
}

func (w *Watched) String() string {
	if w.Symbol != "" {
		return w.Symbol
	}
	return fmt.Sprintf("%#x", w.Addr)
}
