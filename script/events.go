package script

import (
	"path"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/source"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// events lists the tracepoint events of a booted kernel. An event of a system call takes its fields from the
// arguments of sys_enter and sys_exit. For all other events the kernel's code builds the record.
type events struct {
	source *source.File
	img    *kimage.Image
}

// names returns the names of all events, as SYSTEM:EVENT.
func (e *events) names() (list []string) {
	for _, ev := range e.img.Events() {
		list = append(list, ev.System+":"+ev.Name)
	}
	for _, call := range e.img.SyscallEvents() {
		list = append(list, "syscalls:sys_enter_"+call.Name, "syscalls:sys_exit_"+call.Name)
	}
	return list
}

// formats returns the events of the tracers' own records, by SYSTEM:EVENT; the value is true if perf knows the event.
func (e *events) formats() map[string]bool {
	names := map[string]bool{}
	for _, ev := range e.img.TracersEvents() {
		names["ftrace:"+ev.Name] = ev.Perf
	}
	return names
}

func newEvents(s *source.File, img *kimage.Image) *events { return &events{source: s, img: img} }

func (e *events) named(pattern string) (list []bpftrace.Event) {
	for _, ev := range e.img.Events() {
		if ok, _ := path.Match(pattern, ev.System+":"+ev.Name); ok {
			list = append(list, e.recorded(&ev))
		}
	}
	for _, call := range e.img.SyscallEvents() {
		for _, kind := range [...]string{"sys_enter", "sys_exit"} {
			full := "syscalls:" + kind + "_" + call.Name
			if ok, _ := path.Match(pattern, full); ok {
				list = append(list, e.syscall(kind, full, call))
			}
		}
	}
	return list
}

// firstParameter is the DWARF number of RDI, the register of a function's first parameter.
const firstParameter = 5

// recorded is an event whose records the kernel makes, with the fields' types from its BTF.
func (e *events) recorded(ev *kimage.Event) bpftrace.Event {
	out := bpftrace.Event{Name: ev.System + ":" + ev.Name, Tracepoint: ev.Name, Record: true}
	record, err := e.source.Named(ev.Record)
	for _, f := range ev.Fields {
		at := script.Plus(script.Register{N: firstParameter}, int64(f.Offset))
		one := bpftrace.Field{Name: f.Name, Text: f.Declaration(), X: at, InMemory: true}
		if strings.HasPrefix(f.Type, "__data_loc ") {
			// The low half is its offset in the record; bpftrace 0.23.2 takes it for a number of words.
			loc := script.Binary{Op: script.And, X: script.Load{Addr: at, Size: 4, Lenient: true}, Y: script.Number(0xffff)}
			loc = script.Binary{Op: script.Shl, X: loc, Y: script.Number(2)}
			one.X, one.InMemory, one.Type = script.Binary{Op: script.Add, X: script.Register{N: firstParameter}, Y: loc}, false, e.source.Written("long")
		} else if m, ok := member(record, err, f.Name); ok {
			one.Type = m.Type
		} else {
			one.Type = e.source.Written(f.Type)
		}
		out.Fields = append(out.Fields, one)
	}
	return out
}

func member(t *ctype.Type, err error, name string) (ctype.Member, bool) {
	if err != nil {
		return ctype.Member{}, false
	}
	return t.Member(name)
}

const numberAt = 120

// argumentSize is the size in bytes that the kernel's format gives for each argument of a system call.
const argumentSize = 8

// syscall is one event of a system call.
func (e *events) syscall(kind, name string, call kimage.SyscallEvent) (ev bpftrace.Event) {
	above, chained := e.systemCaller(kind)
	regs, second := script.Register{N: 4}, script.Register{N: 1} // after the callback's own data
	ev = bpftrace.Event{Name: name, Tracepoint: kind, Chained: chained, Above: above}
	id := script.Expr(second)
	if kind == "sys_exit" {
		id = script.Load{Addr: script.Plus(regs, numberAt), Size: 8, Lenient: true}
	}
	ev.Filter = script.Binary{Op: script.Eq, X: id, Y: script.Number(call.Number)}
	ev.Fields = []bpftrace.Field{{Name: "__syscall_nr", Text: "int __syscall_nr", Type: e.source.Written("int"), X: script.Number(call.Number)}}
	if kind == "sys_exit" {
		ev.Fields = append(ev.Fields, bpftrace.Field{Name: "ret", Text: "long ret", Type: e.source.Written("long"), X: second})
		return ev
	}
	for i, arg := range call.Args {
		off, _ := x86.RegOffset(x86.CallParams[i])
		x := script.Load{Addr: script.Plus(regs, int64(off)), Size: 8, Lenient: true}
		ev.Fields = append(ev.Fields, bpftrace.Field{Name: arg.Name, Text: arg.Type + " " + arg.Name, Type: e.source.Written(bpftrace.FieldType(arg.Type, argumentSize)), X: x})
	}
	return ev
}

// systemCaller says whether BPF programs at system calls' events get a kernel stack (chained). Older kernels pass the
// registers of the user's program, which have none. Newer kernels pass the registers of the caller of the function
// that runs the BPF program, and set CS to __KERNEL_CS in them. above is the return address of that function's call;
// it is 0 if the compiler has inlined the function into the tracepoint's callback.
func (e *events) systemCaller(kind string) (above uint64, chained bool) {
	const kernelCS = 0x10
	callback, inner := "perf_syscall_enter", "perf_call_bpf_enter"
	if kind == "sys_exit" {
		callback, inner = "perf_syscall_exit", "perf_call_bpf_exit"
	}
	if e.img.Moves(inner, kernelCS) {
		return uint64(e.img.ReturnOf(callback, inner)), true
	}
	return 0, len(e.img.Lookup(inner)) == 0 && e.img.Moves(callback, kernelCS)
}
