package film

import (
	"fmt"
	"slices"
	"sort"
	"strconv"

	"kprobelab/x86"
)

// Version is the version of the format.
const Version = 1

// Head names the kernel of a film.
type Head struct {
	// Name is the image's or the dump's, Release the kernel's, Build its build ID, Rules the profile's name.
	Name    string `json:"name"`
	Release string `json:"release,omitempty"`
	Build   string `json:"build,omitempty"`
	Rules   string `json:"rules,omitempty"`
	// CPUs is the number of processors.
	CPUs int `json:"cpus"`
}

// State is a run's state after a step. Its slices are shared with other states, and are not changed.
type State struct {
	// Who is "CPU 0", "module" or "worker"; Text says what happened, "" for an instruction. Module and
	// Worker have no processor: CPU is -1.
	Who  string
	CPU  int
	Text string
	// Now is the virtual clock in nanoseconds, Ran the number of instructions since the state before.
	Now, Ran uint64
	CPUs     []CPU
	Code     []Code
	Probes   []Probe
	// Log are the lines so far.
	Log []string
}

// CPU is a processor.
type CPU struct {
	// Task names the task that runs, "" if the film does not know any yet.
	Task string
	// Known: Regs and Stack are of the last step that was seen.
	Known bool
	// Frame: Regs is passed to a handler. It has the registers of the interrupted code.
	Frame bool
	Regs  x86.PtRegs
	// Stack are words from the stack pointer up.
	Stack []uint64
}

// Code is a function, a slot or a detour buffer.
type Code struct {
	Name string
	// Kind is "function", "slot" or "detour".
	Kind  string
	At    x86.Addr
	Bytes []byte
	// Original are a function's bytes without probes, nil of other code.
	Original []byte
}

// Probe is a probe's state.
type Probe struct {
	Text   string `json:"text"`
	At     Word   `json:"at"`
	State  string `json:"state"`
	Hits   uint64 `json:"hits"`
	Missed uint64 `json:"missed"`
}

// Symbol names a range of addresses.
type Symbol struct {
	At   Word   `json:"at"`
	Size uint64 `json:"size"`
	Name string `json:"name"`
}

// Film is a film that was read.
type Film struct {
	Head    Head
	States  []State
	symbols []Symbol
	// copied is the number of bytes that states do not share with the state before.
	copied int
}

// Symbolize names an address as SYM+0xOFF, "" if the film has no name for it.
func (f *Film) Symbolize(a x86.Addr) string {
	n := sort.Search(len(f.symbols), func(i int) bool { return x86.Addr(f.symbols[i].At) > a })
	if n == 0 {
		return ""
	}
	s := f.symbols[n-1]
	switch off := uint64(a.Sub(x86.Addr(s.At))); {
	case off == 0:
		return s.Name
	case off < s.Size:
		return fmt.Sprintf("%s+%#x", s.Name, off)
	}
	return ""
}

// Word is a number that a file has in hexadecimal: readers in other languages lose digits of large numbers.
type Word uint64

// MarshalText implements encoding.TextMarshaler.
func (w Word) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(w), 16), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Word) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 64)
	*w = Word(n)
	return err
}

// registers are the registers by their names in a file.
var registers = []struct {
	name string
	of   func(*x86.PtRegs) *uint64
}{
	{"ip", func(r *x86.PtRegs) *uint64 { return &r.IP }}, {"sp", func(r *x86.PtRegs) *uint64 { return &r.SP }},
	{"flags", func(r *x86.PtRegs) *uint64 { return &r.Flags }},
	{"ax", func(r *x86.PtRegs) *uint64 { return &r.AX }}, {"bx", func(r *x86.PtRegs) *uint64 { return &r.BX }},
	{"cx", func(r *x86.PtRegs) *uint64 { return &r.CX }}, {"dx", func(r *x86.PtRegs) *uint64 { return &r.DX }},
	{"si", func(r *x86.PtRegs) *uint64 { return &r.SI }}, {"di", func(r *x86.PtRegs) *uint64 { return &r.DI }},
	{"bp", func(r *x86.PtRegs) *uint64 { return &r.BP }},
	{"r8", func(r *x86.PtRegs) *uint64 { return &r.R8 }}, {"r9", func(r *x86.PtRegs) *uint64 { return &r.R9 }},
	{"r10", func(r *x86.PtRegs) *uint64 { return &r.R10 }}, {"r11", func(r *x86.PtRegs) *uint64 { return &r.R11 }},
	{"r12", func(r *x86.PtRegs) *uint64 { return &r.R12 }}, {"r13", func(r *x86.PtRegs) *uint64 { return &r.R13 }},
	{"r14", func(r *x86.PtRegs) *uint64 { return &r.R14 }}, {"r15", func(r *x86.PtRegs) *uint64 { return &r.R15 }},
}

// frame is a line of a file: the difference between a state and the one before. Fields that are not there have not changed.
type frame struct {
	Who     string      `json:"who"`
	CPU     *int        `json:"cpu,omitempty"`
	Text    string      `json:"text,omitempty"`
	Now     uint64      `json:"now,omitempty"`
	Ran     uint64      `json:"ran,omitempty"`
	CPUs    []cpuChange `json:"cpus,omitempty"`
	New     []newCode   `json:"new,omitempty"`
	Gone    []Word      `json:"gone,omitempty"`
	Writes  []write     `json:"write,omitempty"`
	Probes  *[]Probe    `json:"probes,omitempty"`
	Log     []string    `json:"log,omitempty"`
	Symbols []Symbol    `json:"symbols,omitempty"`
}

// cpuChange has a processor's fields that have changed.
type cpuChange struct {
	CPU   int             `json:"cpu"`
	Task  string          `json:"task,omitempty"`
	Frame *bool           `json:"frame,omitempty"`
	Regs  map[string]Word `json:"regs,omitempty"`
	Stack []Word          `json:"stack,omitempty"`
}

// newCode is code that came, write are bytes of it that changed.
type newCode struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	At       Word   `json:"at"`
	Bytes    hexed  `json:"bytes"`
	Original hexed  `json:"original,omitempty"`
}

type write struct {
	At    Word  `json:"at"`
	Bytes hexed `json:"bytes"`
}

// hexed are bytes in hexadecimal.
type hexed []byte

// MarshalText implements encoding.TextMarshaler.
func (h hexed) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", []byte(h)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *hexed) UnmarshalText(b []byte) error {
	if len(b)%2 != 0 {
		return errHex
	}
	*h = make(hexed, len(b)/2)
	for i := range *h {
		n, err := strconv.ParseUint(string(b[2*i:2*i+2]), 16, 8)
		if err != nil {
			return errHex
		}
		(*h)[i] = byte(n)
	}
	return nil
}

// codeAt returns the number of the code at an address, -1 for none.
func codeAt(list []Code, at x86.Addr) int {
	return slices.IndexFunc(list, func(c Code) bool { return c.At == at })
}
