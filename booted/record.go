package booted

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// records holds the probe that captures the records of tracepoint events, and the events whose
// records the kernel makes.
type records struct {
	probe *kprobes.Kprobe
	of    map[x86.Addr]*recorded // by the event's trace_event_call
	// Where a perf_event has the event's number, and how large it is; where a trace_event_call has
	// its BPF programs.
	id, size, programs int64
}

// recorded is an event whose records are made.
type recorded struct {
	fake x86.Addr // a perf_event
	hits []*func(record x86.Addr, regs *x86.PtRegs)
}

// recordsAt is the kernel's function that has a record and hands it to BPF programs, then to perf:
// perf_trace_run_bpf_submit(record, size, rctx, call, count, regs, head, task).
const recordsAt = "perf_trace_run_bpf_submit"

// Record has the booted kernel make the records of an event, as for a BPF program that is attached
// to its tracepoint. hit gets each record's address, and the registers that the kernel gives such a
// program: they hold the address and the stack of the tracepoint's caller. The Link's Close ends it.
func (k *Kernel) Record(e *kimage.Event, hit func(record x86.Addr, regs *x86.PtRegs)) (*Link, error) {
	var err error
	if k.records == nil {
		err = k.watchRecords()
	}
	if err == nil && k.records.of[e.Call] == nil {
		err = k.startRecords(e)
	}
	if err != nil {
		return nil, fmt.Errorf("event %s:%s: %w", e.System, e.Name, err)
	}
	r := k.records.of[e.Call]
	r.hits = append(r.hits, &hit)
	return &Link{func() error {
		r.hits = slices.DeleteFunc(r.hits, func(h *func(x86.Addr, *x86.PtRegs)) bool { return h == &hit })
		if len(r.hits) > 0 {
			return nil
		}
		delete(k.records.of, e.Call)
		if err := k.putWord(e.Call.Add(k.records.programs), 0); err != nil {
			return err
		}
		_, err := k.machine.Call("perf_trace_destroy", r.fake)
		return err
	}}, nil
}

// startRecords has the kernel make an event's records. Who reads them has to be asked for by a
// perf_event, of which the number is all that is looked at; an array without programs makes the
// kernel's code believe that there are some.
func (k *Kernel) startRecords(e *kimage.Event) error {
	r := k.records
	fake, err := k.machine.Alloc(int(r.size) + emptyArray)
	if err != nil {
		return err
	}
	if err := k.putWord(fake.Add(r.id), uint64(e.ID)); err != nil {
		return err
	}
	v, err := k.machine.Call("perf_trace_init", fake)
	if err == nil && int32(v) < 0 {
		err = errno.Errno(-int32(v))
	}
	if err == nil {
		err = k.putWord(e.Call.Add(r.programs), uint64(fake.Add(r.size)))
	}
	if err != nil {
		return err
	}
	r.of[e.Call] = &recorded{fake: fake}
	return nil
}

// Offsets in struct pt_regs of the caller's IP and SP, which the kernel sets for a record.
const (
	savedIP = unsafe.Offsetof(x86.PtRegs{}.IP)
	savedSP = unsafe.Offsetof(x86.PtRegs{}.SP)
)

// emptyArray is room for a struct bpf_prog_array that has no programs.
const emptyArray = 64

func (k *Kernel) putWord(at x86.Addr, v uint64) error {
	return k.machine.WriteMem(at, binary.LittleEndian.AppendUint64(nil, v))
}

// watchRecords probes the function that has the records.
func (k *Kernel) watchRecords() error {
	types := k.image.Types()
	event, okEvent := types.Struct("perf_event")
	attr, okAttr := event.Member("attr")
	config, okConfig := attr.Type.Member("config")
	call, okCall := types.Struct("trace_event_call")
	programs, okPrograms := call.Member("prog_array")
	if !okEvent || !okAttr || !okConfig || !okCall || !okPrograms {
		return fmt.Errorf("this kernel makes no records for BPF programs: %w", errno.EOPNOTSUPP)
	}
	r := &records{
		of: map[x86.Addr]*recorded{}, id: int64(attr.Offset+config.Offset) / 8, size: int64(event.Size()+15) &^ 15,
		programs: int64(programs.Offset / 8),
	}
	r.probe = &kprobes.Kprobe{SymbolName: recordsAt, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		e := r.of[x86.Addr(regs.CX)]
		if e == nil {
			return 0
		}
		// The callback's frame begins with the caller's, and the address that it returns to.
		frame := k.pointer(x86.Addr(regs.R9).Add(int64(savedSP)))
		caller := x86.PtRegs{
			IP: uint64(k.pointer(x86.Addr(regs.R9).Add(int64(savedIP)))), SP: uint64(frame.Add(16)),
			BP: uint64(k.pointer(frame)), CS: regs.CS, DI: regs.DI,
		}
		for _, hit := range e.hits {
			(*hit)(x86.Addr(regs.DI), &caller)
		}
		return 0
	}}
	if err := k.kprobes.RegisterKprobe(r.probe); err != nil {
		return err
	}
	k.records = r
	return nil
}
