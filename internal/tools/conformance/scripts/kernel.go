package scripts

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
)

// hostKernel is the running kernel's BTF, which bpftrace reads, too, its events and the programs of its
// files; it has every function and every raw tracepoint that is asked for.
func hostKernel() (*bpftrace.Kernel, error) {
	b, err := os.ReadFile("/sys/kernel/btf/vmlinux")
	if err != nil {
		return nil, err
	}
	f, err := source.OfBTF(b, nil, nil)
	if err != nil {
		return nil, err
	}
	k := &bpftrace.Kernel{Kernel: host.Kernel{Source: f, Program: hostProgram}}
	k.Functions = func(p string) []host.Function { return []host.Function{{Name: p, Addr: 0x1000}} }
	k.Tracepoints = func(p string) []host.Tracepoint { return []host.Tracepoint{{Name: p}} }
	k.Symbol = func(string) (uint64, bool) { return 0x1000, true }
	k.Events = func(p string) (list []bpftrace.Event) {
		system, event, _ := strings.Cut(p, ":")
		files, _ := filepath.Glob(tracefs + "events/" + system + "/" + event + "/format")
		for _, file := range files {
			folders := strings.Split(file, "/")
			list = append(list, hostEvent(f, strings.Join(folders[len(folders)-3:len(folders)-1], ":"), file))
		}
		return list
	}
	return k, nil
}

// tracefs is the folder of the running kernel's tracing files. On most systems only root may read them.
const tracefs = "/sys/kernel/tracing/"

// formatField is a line of an event's format file: type, name, elements, size, and whether it is signed.
var formatField = regexp.MustCompile(`(?m)^\tfield:(.*?)\s*(\w+)(?:\[([^]]*)\])?;\s*offset:\d+;\s*size:(\d+);\s*signed:([01]);`)

// hostEvent is an event as its format file has it.
func hostEvent(f *source.File, name, file string) bpftrace.Event {
	e := bpftrace.Event{Name: name}
	text, _ := os.ReadFile(file)
	for _, m := range formatField.FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(m[2], "common_") {
			continue
		}
		size, _ := strconv.ParseInt(m[4], 10, 64)
		one := bpftrace.Field{Name: m[2], X: script.Number(0), InMemory: !strings.HasPrefix(name, "syscalls:")}
		t := f.Written(bpftrace.FieldType(m[1], size))
		switch {
		case strings.HasPrefix(m[1], "__data_loc"):
			one.Type, one.InMemory = &ctype.Type{Kind: ctype.Base, Bytes: 8, Signed: true}, false
		case m[3] != "":
			one.Type = ctype.ArrayOf(t, size/max(t.Size(), 1))
		case t.Size() == size:
			one.Type = t
		default:
			one.Type = &ctype.Type{Kind: ctype.Base, Bytes: size, Signed: m[5] == "1"}
		}
		e.Fields = append(e.Fields, one)
	}
	return e
}

// hostProgram is a program of this system's files.
func hostProgram(file string) (*host.Program, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	h, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	p := &host.Program{File: file, Movable: h.Type != elf.ET_EXEC, Offset: func(addr uint64) (uint64, bool) { return addr, true }}
	for _, read := range []func() ([]elf.Symbol, error){h.Symbols, h.DynamicSymbols} {
		list, _ := read()
		for _, s := range list {
			one := host.ProgramSymbol{Name: s.Name, Addr: s.Value, Size: s.Size, Offset: s.Value}
			switch elf.ST_TYPE(s.Info) {
			case elf.STT_FUNC:
				p.Functions = append(p.Functions, one)
			case elf.STT_OBJECT:
				p.Variables = append(p.Variables, one)
			}
		}
	}
	return p, nil
}
