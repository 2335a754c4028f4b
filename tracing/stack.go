package tracing

import (
	"encoding/binary"
	"strings"

	"kprobelab/internal/orc"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/ring"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// stackID is the type of the records that have a stack (TRACE_STACK): the
// number of entries, and from offCallers on their addresses.
const (
	stackID    = 4
	offEntries = event.CommonSize
	offCallers = event.CommonSize + 8
)

// eachCaller calls fn with the return addresses above a hit and where they lie,
// until it says false: by the image's ORC tables, as the kernel's unwinder finds
// them, or without those as a kernel without unwind tables does
// (UNWINDER_GUESS), but only addresses right after a call count.
func (t *Tracing) eachCaller(regs *x86.PtRegs, fn func(addr, at uint64) bool) {
	original := t.replacedReturns()
	if t.unwinder != nil {
		from := orc.At(regs)
		from.IP = t.k.Kernels(from.IP)
		t.unwinder.Walk(from, original, func(addr, at uint64) bool {
			return (t.unwinder.Kernel(addr) || t.k.View().InText(x86.Addr(addr))) && fn(addr, at)
		})
		return
	}
	for at, top := regs.SP, regs.SP&^(x86.ThreadSize-1)+x86.ThreadSize; at < top; at += 8 {
		if t.m.ReadMem(x86.Addr(at), t.word[:]) != nil {
			return
		}
		w := binary.LittleEndian.Uint64(t.word[:])
		hidden := t.isTrampoline(w)
		w = original(w, at)
		if (hidden && w != 0 || t.afterCall(w)) && !fn(w, at) {
			return
		}
	}
}

func (t *Tracing) isTrampoline(addr uint64) bool {
	return addr != 0 && addr == uint64(t.k.Trampoline())
}

// replacedReturns returns a function that maps an unwinder's return address to the address that a
// return probe replaced, if the kernel's unwinders do so.
func (t *Tracing) replacedReturns() func(addr, at uint64) uint64 {
	cursor := kprobes.Cursor{}
	return func(addr, at uint64) uint64 {
		if t.p.Kret.UnwinderKnows && t.isTrampoline(addr) {
			return uint64(t.k.FindReturnAddress(t.m.Task(), x86.Addr(at), &cursor))
		}
		return t.k.Kernels(addr)
	}
}

// writeStack records the stack of a hit in the array: the place itself, then
// the callers (__ftrace_trace_stack). A kernel may show the functions of its
// own handler before them; those do not run here. With own the handler's own
// preemption does not count.
func (a *traceArray) writeStack(regs *x86.PtRegs, w way, own bool) {
	if !a.recording() {
		return
	}
	rec := make([]byte, event.CommonSize, 512)
	a.t.head(rec, regs, w, own)
	binary.LittleEndian.PutUint16(rec[event.OffType:], stackID)
	rec = append(rec, make([]byte, offCallers-offEntries)...)
	rec = binary.LittleEndian.AppendUint64(rec, regs.IP)
	a.t.eachCaller(regs, func(addr, _ uint64) bool {
		rec = binary.LittleEndian.AppendUint64(rec, addr)
		return len(rec)+8 <= ring.MaxRecord
	})
	binary.LittleEndian.PutUint32(rec[offEntries:], uint32(len(rec)-offCallers)/8)
	a.ring.Write(a.t.m.CPU(), a.now(), rec)
}

// stackText prints a record of a stack, without the newline at its end.
func (a *traceArray) stackText(b *strings.Builder, rec []byte) {
	b.WriteString("<stack trace>")
	for n, at := binary.LittleEndian.Uint32(rec[offEntries:]), offCallers; n > 0 && at+8 <= len(rec); n, at = n-1, at+8 {
		b.WriteString("\n => " + a.place(binary.LittleEndian.Uint64(rec[at:]), a.options.symOffset))
	}
}
