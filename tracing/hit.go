package tracing

import (
	"encoding/binary"

	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/internal/tracing/filter"
	"kprobelab/internal/tracing/trigger"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// hit is the pre handler of an event's kprobes (kprobe_dispatcher).
func (tp *probe) hit(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
	tp.hits++
	putWord(tp.t.scratch[offIP:], uint64(tp.kp.Addr))
	tp.t.trace(tp, regs, nil, headEntry, tp.way())
	return 0
}

// returned is the handler of an event's return probes (kretprobe_dispatcher).
func (tp *probe) returned(i *kprobes.Instance, regs *x86.PtRegs) int {
	tp.hits++
	putWord(tp.t.scratch[offFunc:], uint64(tp.kp.Addr))
	putWord(tp.t.scratch[offRetIP:], uint64(i.RetAddr))
	tp.t.trace(tp, regs, i.Data, headRet, wayReturn)
	return 0
}

// way is the mechanism that called a handler. It decides the flags of a record.
type way int

const (
	// wayInt3: from the int3's exception, which counts as an NMI.
	wayInt3 way = iota
	// wayCall: from the function tracer or a detour buffer, which turn
	// preemption off.
	wayCall
	// wayReturn: from the return trampoline, which does so too.
	wayReturn
)

func (tp *probe) way() way {
	if tp.kp.OnFtrace() {
		return wayCall
	}
	// A probe that waits in the optimizer's queue still has its int3.
	if e := tp.t.k.Find(tp.kp.Addr); e != nil && e.Optimized() && tp.t.k.Queue(tp.kp.Addr) != "optimizing" {
		return wayCall
	}
	return wayInt3
}

// trace makes the record of a hit, whose head before the arguments is written,
// for every trace array that wants it.
func (t *Tracing) trace(tp *probe, regs *x86.PtRegs, entry []byte, head int, w way) {
	t.pid, t.comm = t.current()
	var rec []byte
	for _, f := range tp.event.files {
		if !f.enabled || !f.begin(regs, w) {
			continue
		}
		if rec == nil {
			if rec = t.record(tp, regs, entry, head, w); rec == nil {
				return
			}
		}
		t.commit(f, rec, regs, w)
	}
}

// begin runs the triggers that need no record, and reports whether a record is needed
// (trace_trigger_soft_disabled).
func (f *eventFile) begin(regs *x86.PtRegs, w way) bool {
	switch {
	case f.triggers.Conditional():
		return true
	case f.triggers.Len() > 0:
		f.triggers.Hit(f.array.t.tracerOf(f.array, regs, w))
	}
	return !f.softDisabled && f.array.recording()
}

// commit writes the record if the filter passes it, and runs the other triggers
// (trace_event_buffer_commit).
func (t *Tracing) commit(f *eventFile, rec []byte, regs *x86.PtRegs, w way) {
	now := filter.Current{CPU: t.m.CPU(), Comm: t.comm}
	var tr trigger.Tracer
	var post trigger.Later
	if f.triggers.Len() > 0 {
		tr = t.tracerOf(f.array, regs, w)
		post = f.triggers.Record(tr, rec, now)
	}
	if !f.softDisabled && f.array.recording() && f.filter.Match(rec, now) {
		at := f.array.now()
		f.array.ring.Write(now.CPU, at, rec)
		if t.o.Record != nil && f.array == t.top {
			t.o.Record(t.parse(f.event, now.CPU, at, rec))
		}
		if f.array.options.stacktrace {
			f.array.writeStack(regs, w, true)
		}
		t.comms.save(t.pid, t.comm)
	}
	f.triggers.Post(tr, post)
}

// record makes the record; nil where it would be longer than a buffer's page.
func (t *Tracing) record(tp *probe, regs *x86.PtRegs, entry []byte, head int, w way) []byte {
	r := &t.recorder
	*r = fetch.Recorder{
		Source: source{t}, Regs: regs, Entry: entry, EntryArgs: tp.entryArgs, EmptyFaults: t.c.EmptyUserFaults,
		Rec: t.scratch[:], End: head + tp.def.Size,
	}
	if r.End > len(r.Rec) {
		return nil
	}
	clear(r.Rec[head:r.End])
	for i := range tp.def.Args {
		r.Argument(tp.code[i], head+tp.def.Args[i].Offset)
	}
	t.countFaults(tp, &r.Faults)
	if r.Overflow {
		return nil
	}
	t.head(t.scratch[:], regs, w, true)
	binary.LittleEndian.PutUint16(t.scratch[event.OffType:], uint16(tp.event.format.ID))
	return r.Rec[:r.End]
}

// head writes the head that all records of a hit have, but for their type.
func (t *Tracing) head(rec []byte, regs *x86.PtRegs, w way, own bool) {
	rec[event.OffFlags], rec[event.OffPreemptCount] = t.flags(regs, w, own)
	binary.LittleEndian.PutUint32(rec[event.OffPID:], uint32(t.pid))
}

// tracerOf is the array as the triggers of a hit see it. There is one hit at a
// time, so one tracer is enough.
func (t *Tracing) tracerOf(a *traceArray, regs *x86.PtRegs, w way) *tracer {
	t.tracer = tracer{a, regs, w}
	return &t.tracer
}

// flags returns common_flags and common_preempt_count (tracing_gen_ctx). If own is set, the
// kernel subtracts 1 from the preempt count for its own handler. An int3 has not added that 1,
// so the count goes below zero and borrows from the flags: the line of such a probe begins
// "..Zff".
func (t *Tracing) flags(regs *x86.PtRegs, w way, own bool) (flags, preempt byte) {
	if regs.Flags&x86.FlagIF == 0 || w == wayInt3 || w == wayReturn && t.p.Kret.HandlerIRQsOff {
		flags |= event.FlagIRQsOff
	}
	if w == wayInt3 {
		flags |= event.FlagNMI | event.FlagHardIRQ
	}
	count, ok := t.preemptCount()
	if ok {
		flags |= t.context(count)
	}
	depth := uint32(count & preemptDepth) // of bottom halves that are off, in kernels without preemption, too
	if w != wayInt3 && t.p.Preemption {
		depth++
	}
	if !t.c.MigrateDisable { // to 5.15 the count stands alone
		if t.p.Preemption && own {
			depth--
		}
		return flags, byte(depth)
	}
	ctx := uint32(flags)<<16 | min(depth&0xff, 15)
	if t.p.Preemption && own {
		ctx--
	}
	return byte(ctx >> 16), byte(ctx)
}

// Parts of the preempt count (include/linux/preempt.h).
const (
	preemptDepth   = 0xff
	preemptServing = 1 << 8 // a softirq is served
	preemptBHOff   = 0x7f << 9
)

// preemptCount is the CPU's preempt count.
func (t *Tracing) preemptCount() (uint64, bool) {
	if t.preempt.At == 0 || t.m.ReadMem(t.m.GSBase(t.m.CPU())+t.preempt.At, t.word[:t.preempt.Size]) != nil {
		return 0, false
	}
	return t.preempt.Read(t.word[:]), true
}

// context returns the flags of the guest's own state: the interrupt that it handles, and a
// requested reschedule (tracing_gen_ctx_irq_test).
func (t *Tracing) context(count uint64) (flags byte) {
	if count&t.preempt.HardIRQ() != 0 {
		flags |= event.FlagHardIRQ
	}
	if count&preemptServing != 0 {
		flags |= event.FlagSoftIRQ
	}
	if count&preemptBHOff != 0 && t.c.MigrateDisable {
		flags |= event.FlagBHOff
	}
	task := t.currentTask()
	if task == 0 || !t.read(task, t.word[:], false) { // thread_info is a task's first member
		return flags
	}
	asked := binary.LittleEndian.Uint64(t.word[:])
	if bit := t.c.ReschedBit; bit != 0 && asked>>bit&1 != 0 {
		flags |= event.FlagNeedResched
	}
	if bit := t.c.LazyReschedBit; bit != 0 && asked>>bit&1 != 0 {
		flags |= event.FlagLazyResched
	}
	if count&t.preempt.NoResched() == 0 {
		flags |= event.FlagPreemptResched
	}
	return flags
}
