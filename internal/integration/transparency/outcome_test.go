package transparency

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab"
	"kprobelab/machine"
	"kprobelab/x86"
)

// outcome is the whole state after a call: registers, its stop, the console, and every page of
// memory that it changed, stacks and per-CPU areas too.
type outcome struct {
	regs    x86.PtRegs
	stopped stop
	console string
	pages   []page
}

// stop is an unhandled exception, or another error of the run.
type stop struct {
	vector   int
	access   machine.Access
	addr, ip x86.Addr
	text     string
}

// page is a page of memory that a call changed, with its content afterwards.
type page struct {
	at      x86.Addr
	content []byte
}

// difference describes the first difference of two outcomes, "" for none. Memory
// at dead is not compared.
func (o *outcome) difference(want *outcome, dead x86.Range) string {
	var b strings.Builder
	if o.stopped != want.stopped {
		fmt.Fprintf(&b, "stopped by %+v, not %+v; ", o.stopped, want.stopped)
	}
	if o.regs != want.regs {
		for n := range 16 {
			if have, w := *o.regs.Reg(n), *want.regs.Reg(n); have != w {
				fmt.Fprintf(&b, "register %d is %#x, not %#x; ", n, have, w)
			}
		}
		if o.regs.IP != want.regs.IP || o.regs.Flags != want.regs.Flags {
			fmt.Fprintf(&b, "ip %#x flags %#x, not %#x %#x; ", o.regs.IP, o.regs.Flags, want.regs.IP, want.regs.Flags)
		}
	}
	if o.console != want.console {
		fmt.Fprintf(&b, "console %q, not %q; ", o.console, want.console)
	}
	b.WriteString(memoryDifference(o.pages, want.pages, dead))
	return b.String()
}

// memoryDifference compares changed pages, which are in ascending order.
func memoryDifference(have, want []page, dead x86.Range) string {
	for len(have) > 0 || len(want) > 0 {
		switch {
		case len(want) == 0 || len(have) > 0 && have[0].at < want[0].at:
			if !have[0].isDead(dead) {
				return fmt.Sprintf("memory changed at %s; ", have[0].at)
			}
			have = have[1:]
		case len(have) == 0 || want[0].at < have[0].at:
			if !want[0].isDead(dead) {
				return fmt.Sprintf("memory did not change at %s; ", want[0].at)
			}
			want = want[1:]
		default:
			if d := have[0].difference(&want[0], dead); d != "" {
				return d
			}
			have, want = have[1:], want[1:]
		}
	}
	return ""
}

func (p *page) isDead(dead x86.Range) bool {
	return dead.Contains(p.at) && dead.Contains(p.at+machine.PageSize-1)
}

func (p *page) difference(want *page, dead x86.Range) string {
	if bytes.Equal(p.content, want.content) {
		return ""
	}
	for i := range p.content {
		if at := p.at.Add(int64(i)); p.content[i] != want.content[i] && !dead.Contains(at) {
			return fmt.Sprintf("memory at %s is %#x, not %#x; ", at, p.content[i], want.content[i])
		}
	}
	return ""
}

// bench is a machine with the guest memory that buffers of calls lie in, always
// at the same addresses, so that runs compare to the byte.
type bench struct {
	*kprobelab.Lab
	arena x86.Addr
	words []uint64
	// clear is code that clears all registers, 0 to leave them as the last
	// call did.
	clear x86.Addr
}

const (
	arenaSize = 8 << 10
	// margin stands around each buffer and must stay as it is.
	margin = 32
)

func newBench(l *kprobelab.Lab) (*bench, error) {
	arena, err := l.Machine.Alloc(arenaSize)
	return &bench{Lab: l, arena: arena}, err
}

// place lays out the arguments' buffers and makes the words to pass.
func (b *bench) place(args []any) error {
	b.words = b.words[:0]
	var mem []byte
	for _, a := range args {
		switch a := a.(type) {
		case uint64:
			b.words = append(b.words, a)
		case symbol:
			b.words = append(b.words, uint64(b.Image.Lookup(string(a))[0].Addr))
		case []byte:
			mem = append(mem, bytes.Repeat([]byte{0xee}, margin)...)
			b.words = append(b.words, uint64(b.arena)+uint64(len(mem)))
			mem = append(append(mem, a...), make([]byte, -len(a)&7)...)
		}
	}
	if len(mem) == 0 {
		return nil
	}
	return b.Machine.WriteMem(b.arena, append(mem, bytes.Repeat([]byte{0xee}, margin)...))
}

// arithmetic are the flags that instructions set.
const arithmetic = x86.FlagCF | x86.FlagPF | x86.FlagAF | x86.FlagZF | x86.FlagSF | x86.FlagOF

// clearFirst makes every run begin with all registers zero: random code reads
// registers that are no arguments.
func (b *bench) clearFirst() (err error) {
	var code []byte
	for r := range byte(16) {
		if r != 4 {
			code = append(code, 0x40|r>>3*5, 0x31, 0xc0|r&7<<3|r&7) // xor %r,%r
		}
		code = append(code, 0x66, 0x40|r>>3*5, 0x0f, 0xef, 0xc0|r&7<<3|r&7) // pxor %xmm,%xmm
	}
	if b.clear, err = b.Machine.AllocExec(machine.PageSize, "clear"); err != nil {
		return err
	}
	return b.Machine.PokeText(b.clear, append(code, 0xc3))
}

// run makes a call, collects its outcome in o, and restores all memory.
func (b *bench) run(f *function, args []any, o *outcome) error {
	m := b.Machine
	if b.clear != 0 {
		if _, err := m.CallAddr(b.clear); err != nil {
			return err
		}
	}
	before, err := m.Snapshot()
	if err != nil {
		return err
	}
	if err := b.place(args); err != nil {
		return err
	}
	_, callErr := m.CallAddr(f.addr, b.words...)
	o.stopped, o.regs, o.console = stopOf(callErr), m.Regs(), string(m.Console())
	if b.clear != 0 && callErr != nil {
		// The engine may have the flags wrong where an instruction faults after
		// it took them up, as rcl on memory does.
		o.regs.Flags &^= arithmetic
	}
	if err := o.collect(m, before); err != nil {
		return err
	}
	if err := m.Restore(before); err != nil {
		return err
	}
	m.Discard(before)
	return nil
}

// collect copies every page that changed, into the buffers of the last time.
func (o *outcome) collect(m *machine.Machine, since *machine.Snapshot) error {
	o.pages = o.pages[:0]
	for _, r := range m.Dirty(since) {
		for at := r.Start; at < r.End; at += machine.PageSize {
			n := len(o.pages)
			o.pages = slices.Grow(o.pages, 1)[:n+1]
			p := &o.pages[n]
			p.at = at
			p.content = slices.Grow(p.content[:0], machine.PageSize)[:machine.PageSize]
			if err := m.ReadMem(at, p.content); err != nil {
				return err
			}
		}
	}
	return nil
}

func stopOf(err error) stop {
	var f *machine.Fault
	switch {
	case err == nil:
		return stop{}
	case errors.As(err, &f):
		return stop{vector: f.Vector, access: f.Access, addr: f.Addr, ip: f.IP, text: "exception"}
	case errors.Is(err, machine.ErrBudget):
		return stop{text: "never ends"}
	}
	return stop{text: err.Error()}
}
