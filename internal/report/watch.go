package report

import (
	"encoding/json"
	"fmt"
	"io"

	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/watch/registers"
)

// Watch says how the processor's debug registers can hold a watchpoint.
type Watch struct {
	Image   string `json:"image"`
	Profile string `json:"profile"`
	// Place is the watchpoint as it was written; Access has the watched accesses, as in a place.
	Place  string `json:"place"`
	Addr   Addr   `json:"address"`
	Len    uint32 `json:"length"`
	Access string `json:"access"`
	// Errno is the result of register_wide_hw_breakpoint, -EINVAL as -22; 0 if it is accepted.
	Errno int `json:"errno"`
	// Reasons are all rules of the kernel that refuse it; it stops at the first.
	Reasons []WatchReason `json:"reasons"`
	// Registers are the registers that would watch it, of the four that there are.
	Registers []WatchRegister `json:"registers"`
	// More: they report accesses that were not asked for, too.
	More bool `json:"more"`
	// Before: the debug exception comes before the instruction that is executed, After: after the
	// one that makes the access.
	Before bool `json:"before"`
	After  bool `json:"after"`
}

// WatchReason is a rule that refuses, with its errno by name.
type WatchReason struct {
	ID    string `json:"id"`
	Errno string `json:"errno"`
	Why   string `json:"why"`
}

// WatchRegister holds the range and accesses that one register watches. RW and LEN are its fields
// in DR7.
type WatchRegister struct {
	Addr   Addr   `json:"address"`
	Len    uint64 `json:"length"`
	Access string `json:"access"`
	RW     uint8  `json:"rw"`
	LEN    uint8  `json:"len"`
}

// ExplainWatch explains a watchpoint by the rules of a kernel's debug registers.
func ExplainWatch(image, profile, place string, w *watch.Watchpoint, s *registers.Set) *Watch {
	e := &Watch{
		Image: image, Profile: profile, Place: place, Addr: known(w.Addr), Len: w.Len, Access: watch.Access(w.Kinds),
		Before: w.Kinds&machine.WatchExec != 0, After: w.Kinds&^machine.WatchExec != 0, Reasons: []WatchReason{},
	}
	for _, r := range s.Refusals(w.Attr(), 0) {
		e.Reasons = append(e.Reasons, WatchReason{string(r.Rule), r.Errno.Name(), r.Text})
		if e.Errno == 0 {
			e.Errno = -int(r.Errno)
		}
	}
	e.registers(w)
	return e
}

// fields of DR7 (SDM Vol. 3B, "Debug Control Register (DR7)").
const (
	rwExecute = 0
	rwWrite   = 1
	rwBoth    = 3
)

var lenOf = map[uint64]uint8{1: 0, 2: 1, 4: 3, 8: 2}

// registers finds what would watch it. No register has reads alone, or execution beside another
// access.
func (e *Watch) registers(w *watch.Watchpoint) {
	e.Registers = []WatchRegister{}
	data := w.Kinds &^ machine.WatchExec
	if w.Kinds&machine.WatchExec != 0 {
		e.Registers = append(e.Registers, WatchRegister{known(w.Addr), registers.ExecuteLen, "x", rwExecute, 0})
	}
	if data == 0 {
		return
	}
	access, rw := "rw", uint8(rwBoth)
	if data == machine.WatchWrite {
		access, rw = "w", rwWrite
	}
	e.More = data == machine.WatchRead
	for _, p := range registers.Cover(w.Addr, uint64(w.Len)) {
		e.Registers = append(e.Registers, WatchRegister{known(p.Addr), p.Len, access, rw, lenOf[p.Len]})
	}
}

// WriteJSON writes one JSON object.
func (e *Watch) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(e)
}

// WriteText writes it for people.
func (e *Watch) WriteText(w io.Writer, s Style) error {
	b := &lineWriter{w: w}
	b.line("%s", s.bold(fmt.Sprintf("%s (%s)", e.Place, e.Addr.Addr)))
	b.line("")
	b.line("%s", s.bold("debug register"))
	if e.Errno == 0 {
		b.line("  accepted: register_wide_hw_breakpoint takes one of the %d of each CPU", registers.Count)
	} else {
		b.line("  %s, for %s", s.red("refused, "+e.Reasons[0].Errno), Counted(len(e.Reasons), "reason"))
		for i, r := range e.Reasons {
			stops := ""
			if i == 0 && len(e.Reasons) > 1 {
				stops = "  (the kernel stops here)"
			}
			b.line("  %s%s", s.cyan(r.ID), stops)
			b.line("      %s", r.Why)
		}
	}
	b.line("")
	b.line("%s", s.bold("as the registers have it"))
	e.writeRegisters(b)
	b.line("")
	b.line("%s", s.bold("hit"))
	if e.Before {
		b.line("  before the instruction, once: a fault with ip at it; the flag RF lets it go on")
	}
	if e.After {
		b.line("  after the instruction that makes the access: a trap with ip at the next one")
		b.line("  of a string instruction with rep, after each iteration that does")
	}
	return b.err
}

func (e *Watch) writeRegisters(b *lineWriter) {
	if len(e.Registers) > registers.Count {
		b.line("  %d would be needed; there are %d", len(e.Registers), registers.Count)
		return
	}
	for n, r := range e.Registers {
		if r.Access == "x" {
			b.line("  DR%d %s  the instruction there; in DR7 R/W %02b, LEN %02b", n, r.Addr.Addr, r.RW, r.LEN)
			continue
		}
		b.line("  DR%d %s  %s, %s; in DR7 R/W %02b, LEN %02b", n, r.Addr.Addr, Counted(int(r.Len), "byte"), r.Access, r.RW, r.LEN)
	}
	if e.More {
		b.line("  writes hit, too: no register has reads alone")
	}
}
