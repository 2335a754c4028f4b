package tracing

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/internal/tracing/ring"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// symbol returns an address as %pS prints it, "symbol+0xoffset/0xsize [module]", or without the
// offset the symbol alone; 0xaddress if there is no symbol.
func (t *Tracing) symbol(addr uint64, offset bool) string {
	addr = t.k.Kernels(addr)
	s, ok := t.k.View().SymbolAt(x86.Addr(addr))
	switch {
	case !ok:
		return x86.Addr(addr).String()
	case !offset:
		return s.Name
	case s.Module != "":
		return fmt.Sprintf("%s+%#x/%#x [%s]", s.Name, addr-uint64(s.Addr), s.Size, s.Module)
	}
	return fmt.Sprintf("%s+%#x/%#x", s.Name, addr-uint64(s.Addr), s.Size)
}

// place is an address in a line of trace, by the options (seq_print_ip_sym).
func (a *traceArray) place(addr uint64, offset bool) string {
	s := a.t.place(addr, offset)
	if addr != 0 && a.options.symAddr {
		s += fmt.Sprintf(" <%016x>", addr)
	}
	return s
}

// place names an address: one in the trampoline of return probes means a return
// address that is not known.
func (t *Tracing) place(addr uint64, offset bool) string {
	if addr == 0 {
		return "0"
	}
	if addr == uint64(t.k.Trampoline()) {
		return "[unknown/kretprobe'd]"
	}
	if s, ok := t.k.View().SymbolAt(x86.Addr(addr)); ok {
		if slices.Contains(kprobes.TrampolineSymbols, s.Name) {
			return "[unknown/kretprobe'd]"
		}
	}
	return t.symbol(addr, offset)
}

// line is a record as a line of trace: who, where and when, then the event.
func (a *traceArray) line(b *strings.Builder, r *ring.Record) {
	if !a.options.noContext {
		a.context(b, r)
	}
	a.eventText(b, r.Data)
	if binary.LittleEndian.Uint16(r.Data) != printID { // whose text ends as it was written
		b.WriteByte('\n')
	}
}

// context prints the task, the CPU, the flags and the time (trace_print_context).
func (a *traceArray) context(b *strings.Builder, r *ring.Record) {
	t := a.t
	pid := int(int32(binary.LittleEndian.Uint32(r.Data[event.OffPID:])))
	us := (r.Time + 500) / 1000
	fmt.Fprintf(b, "%16s-%-7d [%03d] ", t.comms.name(pid), pid, r.CPU)
	if !a.options.noIRQInfo {
		t.latency(b, r.Data)
	}
	if !a.inNS() {
		fmt.Fprintf(b, " %12d: ", r.Time)
		return
	}
	fmt.Fprintf(b, " %5d.%06d: ", us/1e6, us%1e6)
}

// eventText prints a record in the format of its event.
func (a *traceArray) eventText(b *strings.Builder, rec []byte) {
	t := a.t
	id := int(binary.LittleEndian.Uint16(rec))
	if id == printID {
		markText(b, rec)
		return
	}
	switch id {
	case functionID:
		a.functionText(b, rec)
		return
	case stackID:
		a.stackText(b, rec)
		return
	}
	e := t.byID(id)
	if e == nil {
		fmt.Fprintf(b, "Unknown type %d", id)
		return
	}
	b.WriteString(e.format.Name + ": (")
	head := headSize(e.isReturn)
	if e.isReturn {
		b.WriteString(a.place(binary.LittleEndian.Uint64(rec[offRetIP:]), true) + " <- ")
		b.WriteString(a.place(binary.LittleEndian.Uint64(rec[offFunc:]), false))
	} else {
		b.WriteString(a.place(binary.LittleEndian.Uint64(rec[offIP:]), true))
	}
	b.WriteByte(')')
	for i := range e.args {
		field := fetch.Field(&e.args[i], head)
		b.WriteString(" " + e.args[i].Name + "=")
		fetch.Print(b, &e.args[i], &field, rec, source{t}.Symbol)
	}
}

func (t *Tracing) byID(id int) *probeEvent {
	for _, e := range t.events {
		if e.format.ID == id {
			return e
		}
	}
	return nil
}

// latency are the flag characters of a line (trace_print_lat_fmt).
func (t *Tracing) latency(b *strings.Builder, rec []byte) {
	flags, preempt := rec[event.OffFlags], rec[event.OffPreemptCount]
	b.WriteByte(t.irqsChar(flags))
	b.WriteByte(event.ReschedChar(t.c, flags))
	b.WriteByte(irqChar(flags))
	if !t.c.MigrateDisable {
		depth(b, preempt)
		return
	}
	depth(b, preempt&15)
	depth(b, preempt>>4)
}

func depth(b *strings.Builder, n byte) {
	if n == 0 {
		b.WriteByte('.')
		return
	}
	fmt.Fprintf(b, "%x", n)
}

func (t *Tracing) irqsChar(flags byte) byte {
	off, bh := flags&event.FlagIRQsOff != 0, flags&event.FlagBHOff != 0
	switch {
	case off && bh:
		return 'D'
	case off:
		return 'd'
	case bh:
		return 'b'
	case flags&event.FlagIRQsNotSupported != 0 && !t.c.LazyResched:
		return 'X'
	}
	return '.'
}

func irqChar(flags byte) byte {
	nmi, hard, soft := flags&event.FlagNMI != 0, flags&event.FlagHardIRQ != 0, flags&event.FlagSoftIRQ != 0
	switch {
	case nmi && hard:
		return 'Z'
	case nmi:
		return 'z'
	case hard && soft:
		return 'H'
	case hard:
		return 'h'
	case soft:
		return 's'
	}
	return '.'
}
