package tracing

import (
	"encoding/binary"
	"strings"

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

// eachCaller calls fn with the return addresses above a stack pointer and where
// they lie, until it says false. They are found as a kernel without unwind
// tables finds them (UNWINDER_GUESS), but only addresses right after a call
// count. Where unwinders can tell (rethook, 5.18), the address that a return
// probe replaced is given as it was.
func (t *Tracing) eachCaller(sp uint64, fn func(addr, at uint64) bool) {
	trampoline, cursor := uint64(t.k.Trampoline()), kprobes.Cursor{}
	for at, top := sp, sp&^(x86.ThreadSize-1)+x86.ThreadSize; at < top; at += 8 {
		if t.m.ReadMem(x86.Addr(at), t.word[:]) != nil {
			return
		}
		w := binary.LittleEndian.Uint64(t.word[:])
		hidden := w != 0 && w == trampoline
		if hidden && t.p.Kret.Rethook {
			w = uint64(t.k.FindReturnAddress(t.m.Task(), x86.Addr(at), &cursor))
		}
		if (hidden && w != 0 || t.afterCall(w)) && !fn(w, at) {
			return
		}
	}
}

// writeStack records the stack of a hit in the array: the place itself, then
// the callers (__ftrace_trace_stack). A kernel may show the functions of its
// own handler before them; those do not run here.
func (a *traceArray) writeStack(regs *x86.PtRegs, w way) {
	if !a.recording() {
		return
	}
	rec := make([]byte, event.CommonSize, 512)
	a.t.head(rec, regs, w, true)
	binary.LittleEndian.PutUint16(rec[event.OffType:], stackID)
	rec = append(rec, make([]byte, offCallers-offEntries)...)
	rec = binary.LittleEndian.AppendUint64(rec, regs.IP)
	a.t.eachCaller(regs.SP, func(addr, _ uint64) bool {
		rec = binary.LittleEndian.AppendUint64(rec, addr)
		return len(rec)+8 <= ring.MaxRecord
	})
	binary.LittleEndian.PutUint32(rec[offEntries:], uint32(len(rec)-offCallers)/8)
	a.ring.Write(a.t.m.CPU(), a.now(), rec)
}

// stackText is what such a record prints, without the newline at its end.
func (a *traceArray) stackText(b *strings.Builder, rec []byte) {
	b.WriteString("<stack trace>")
	for n, at := binary.LittleEndian.Uint32(rec[offEntries:]), offCallers; n > 0 && at+8 <= len(rec); n, at = n-1, at+8 {
		b.WriteString("\n => " + a.place(binary.LittleEndian.Uint64(rec[at:]), a.options.symOffset))
	}
}
