package script

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/source"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// events are the events of a booted kernel's tracepoints: those of system calls are made of what
// sys_enter and sys_exit get, as the kernel makes them; the kernel itself makes the records of all
// others.
type events struct {
	source *source.File
	img    *kimage.Image
	// calls are the symbols of the system calls' descriptions, once they were looked for.
	calls []kimage.Symbol
}

// described are the symbols of the system calls' descriptions.
func (e *events) described() []kimage.Symbol {
	if e.calls == nil {
		e.calls = []kimage.Symbol{}
		for _, s := range e.img.Symbols() {
			if strings.HasPrefix(s.Name, metadataPrefix) {
				e.calls = append(e.calls, s)
			}
		}
	}
	return e.calls
}

// names are the names of all events, SYSTEM:EVENT.
func (e *events) names() (list []string) {
	for _, ev := range e.img.Events() {
		list = append(list, ev.System+":"+ev.Name)
	}
	for _, s := range e.described() {
		if _, ok := e.metadata(s.Addr); !ok {
			continue
		}
		name := strings.TrimPrefix(s.Name[len(metadataPrefix):], "_")
		list = append(list, "syscalls:sys_enter_"+name, "syscalls:sys_exit_"+name)
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

const metadataPrefix = "__syscall_meta__"

func (e *events) named(pattern string) (list []bpftrace.Event) {
	for _, ev := range e.img.Events() {
		if ok, _ := path.Match(pattern, ev.System+":"+ev.Name); ok {
			list = append(list, e.recorded(&ev))
		}
	}
	for _, s := range e.described() {
		name := strings.TrimPrefix(s.Name[len(metadataPrefix):], "_") // the macro's own, in some releases
		for _, kind := range [...]string{"sys_enter", "sys_exit"} {
			full := "syscalls:" + kind + "_" + name
			if ok, _ := path.Match(pattern, full); ok {
				if ev, ok := e.syscall(kind, full, s.Addr); ok {
					list = append(list, ev)
				}
			}
		}
	}
	return list
}

// firstParameter is where a function has it.
const firstParameter = 5

// recorded is an event whose records the kernel makes, with the fields' types from its BTF.
func (e *events) recorded(ev *kimage.Event) bpftrace.Event {
	out := bpftrace.Event{Name: ev.System + ":" + ev.Name, Tracepoint: ev.Name, Record: true}
	record, err := e.source.Named(ev.Record)
	for _, f := range ev.Fields {
		at := script.Binary{Op: script.Add, X: script.Register{N: firstParameter}, Y: script.Number(f.Offset)}
		one := bpftrace.Field{Name: f.Name, Text: f.Declaration(), X: at, InMemory: true}
		if strings.HasPrefix(f.Type, "__data_loc ") {
			// The low half is where in the record it is; bpftrace 0.23.2 takes it for a number of words.
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

// syscallMetadata holds the kernel's metadata of a system call, for its events: the number of the call, the number
// of its arguments, and the addresses of their types and names.
type syscallMetadata struct {
	nr                 int64
	args, types, names uint64
}

// metadata reads it; false where the processor has no such call, which then has no events.
func (e *events) metadata(at x86.Addr) (m syscallMetadata, ok bool) {
	t, err := e.source.Named("syscall_metadata")
	if err != nil {
		return m, false
	}
	field := func(member string) (v uint64) {
		m, found := t.Member(member)
		var b [8]byte
		ok = found && ok && m.Type.Size() <= int64(len(b)) && e.img.ReadKernel(at.Add(m.Offset), b[:m.Type.Size()]) == nil
		if v = binary.LittleEndian.Uint64(b[:]); ok && m.Bits > 0 {
			v = v >> m.Bit & (1<<m.Bits - 1)
		}
		return v
	}
	ok = true
	// The number of arguments is an int, in newer kernels a bitfield.
	m = syscallMetadata{int64(int32(field("syscall_nr"))), field("nb_args"), field("types"), field("args")}
	return m, ok && m.args <= 6 && m.nr >= 0
}

// syscall is one event: its names and types are those of the kernel's struct syscall_metadata.
func (e *events) syscall(kind, name string, at x86.Addr) (ev bpftrace.Event, ok bool) {
	meta, ok := e.metadata(at)
	if !ok {
		return ev, false
	}
	nr, n, types, names := meta.nr, meta.args, meta.types, meta.names
	above, chained := e.systemCaller(kind)
	regs, second := script.Register{N: 4}, script.Register{N: 1} // after the callback's own data
	ev = bpftrace.Event{Name: name, Tracepoint: kind, Chained: chained, Above: above}
	id := script.Expr(second)
	if kind == "sys_exit" {
		id = script.Load{Addr: script.Binary{Op: script.Add, X: regs, Y: script.Number(numberAt)}, Size: 8, Lenient: true}
	}
	ev.Filter = script.Binary{Op: script.Eq, X: id, Y: script.Number(nr)}
	ev.Fields = []bpftrace.Field{{Name: "__syscall_nr", Text: "int __syscall_nr", Type: e.source.Written("int"), X: script.Number(nr)}}
	if kind == "sys_exit" {
		ev.Fields = append(ev.Fields, bpftrace.Field{Name: "ret", Text: "long ret", Type: e.source.Written("long"), X: second})
		return ev, true
	}
	for i := range n {
		typ, arg := e.text(types+8*i), e.text(names+8*i)
		off, _ := x86.RegOffset(x86.CallParams[i])
		x := script.Load{Addr: script.Binary{Op: script.Add, X: regs, Y: script.Number(off)}, Size: 8, Lenient: true}
		ev.Fields = append(ev.Fields, bpftrace.Field{Name: arg, Text: typ + " " + arg, Type: e.source.Written(bpftrace.FieldType(typ, argumentSize)), X: x})
	}
	return ev, true
}

// systemCaller says which stack the kernel has for programs at system calls' events. Older kernels give them
// the program's registers, and no stack; newer ones those of who calls the function that runs them, which they
// note with the kernel's selector of code. Above is where that call returns to, 0 where the compiler has
// put it into the tracepoint's callback.
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

// text is the string that a pointer in the kernel's memory points to.
func (e *events) text(at uint64) string {
	var p [8]byte
	var b [64]byte
	if e.img.ReadKernel(x86.Addr(at), p[:]) != nil {
		return ""
	}
	e.img.ReadKernel(x86.Addr(binary.LittleEndian.Uint64(p[:])), b[:])
	s, _, _ := bytes.Cut(b[:], []byte{0})
	return string(s)
}
