package host

import (
	"fmt"
	"slices"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/source"
)

// Function is a function of the kernel or of a module.
type Function struct {
	Name, Module string
	Addr         uint64
}

// Tracepoint is a tracepoint of the kernel.
type Tracepoint struct {
	Name string
	// System is the group of its event, such as "sched"; "" if it has no event.
	System string
	// Params are the parameters that its probes get.
	Params []ctype.Param
}

// ProbeKind is the kind of event at which a probe's handler runs.
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

// Chain is the place at which perf's stack of a probe begins.
type Chain uint8

const (
	// ByRegisters: at the registers of a kprobe, and what they interrupt.
	ByRegisters Chain = iota
	// BySite: at the return address of ftrace's call in the function.
	BySite
	// ByCaller: at the caller of the tracepoint.
	ByCaller
	// ByProgram: at the registers of the program, which has no stack of the kernel's.
	ByProgram
)

// Probe is a probe of a script.
type Probe struct {
	Kind ProbeKind
	// Point is the probe point after aliases and patterns, Written as the script has it.
	Point, Written string
	// Alias is the language's own name of the probe that Written means, "" for none.
	Alias   string
	Handler *script.Handler
	// Entry is a return probe's handler at the entry of the function; it saves Saved words. nil
	// means none.
	Entry *script.Handler
	Saved int
	// Order is the number of begin(N) and end(N).
	Order int64
	// Symbol, Offset, Module and Addr name the probed place; Function is the source's name of the
	// function.
	Symbol, Module string
	Offset, Addr   uint64
	Function       string
	MaxActive      int
	// Optional: the script runs without the probe if it cannot be resolved or planted.
	Optional bool
	// Every is a timer's interval, Random the greatest deviation from it to either side, both in
	// nanoseconds. Profile: the timer ticks on each CPU.
	Every, Random uint64
	Profile       bool
	// Syscall is the name of the probed system call, "" for none.
	Syscall string
	// Locals are the handler's variables, for -p2 and -L.
	Locals []string
	// Record is the event, "SYSTEM:NAME", whose records the handler gets; "" for none. The
	// record's address is in the register of a function's first parameter.
	Record string
	Chain  Chain
	// Above is an address that stands before the caller in the stack of a tracepoint, 0 for none.
	Above uint64
	// Watched is the memory of a Data probe, InProgram the place of a User probe.
	Watched   *Watched
	InProgram *InProgram
	// Place is the place of the source whose variables the handler reads, Trace the tracepoint whose
	// parameters it reads; nil for other probes.
	Place *source.Place
	Trace *Tracepoint
}

// Program is an ELF file with code of programs.
type Program struct {
	File string
	// Functions are the functions that the file loads, in the order of their addresses.
	Functions []ProgramSymbol
	// Variables are its variables, in the order of their addresses.
	Variables []ProgramSymbol
	// Movable: the kernel loads the file at an address of its choice. Base is the distance from the file's
	// own addresses, as it was seen last; 0 before it was seen.
	Movable bool
	Base    uint64
	// Code is the file's own address of the beginning of its code.
	Code uint64
	// Offset returns the file offset of an address; false if the file does not load the address.
	Offset func(addr uint64) (offset uint64, ok bool)
}

// ProgramSymbol is a function or a variable of a file. Addr is the file's own address of it, Offset its
// offset in the file.
type ProgramSymbol struct {
	Name               string
	Addr, Size, Offset uint64
	// Bytes are the first bytes of a function.
	Bytes [4]byte
}

// InProgram is a place in a program, where a uprobe is planted.
type InProgram struct {
	Program *Program
	// Addr is the file's own address of the place, Offset the file offset.
	Addr, Offset uint64
	// Bytes are the first bytes of the place.
	Bytes [4]byte
	// Return: the probe hits at the returns of the function that begins there.
	Return bool
	// Target: only hits of the process of -c count.
	Target bool
	// Hidden: at these returns the kernel does not give a BPF program the address of the function.
	Hidden bool
}

// Symbol returns the function around an address of a process, and the address's offset in it. ok is false if
// there is none.
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

// Watched is the memory of a watchpoint: Len bytes from Addr on, or from Symbol on if it is not "".
type Watched struct {
	Symbol string
	Addr   uint64
	Len    uint32
	// Reads: reads hit, too.
	Reads bool
	// Executes: the execution of the instruction at Addr hits, and no access of data does.
	Executes bool
	// Target: only hits of the process of -c count.
	Target bool
}

func (w *Watched) String() string {
	if w.Symbol != "" {
		return w.Symbol
	}
	return fmt.Sprintf("%#x", w.Addr)
}
