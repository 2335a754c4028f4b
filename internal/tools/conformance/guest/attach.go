//go:build linux && amd64

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/qemu/wire"
	"kprobelab/internal/systemcall"
)

// attachAll loads each program of the BPF object, where there is one, and
// attaches it as its section says, by the order of their names. It reports the errno
// of each that is not left off.
func attachAll(leave []string) error {
	object, err := os.ReadFile(frame.ObjectFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// To 5.10 programs count against the limit of locked memory.
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unlimited); err != nil {
		return err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return err
	}
	unit, err := kprobeUnit()
	if errors.Is(err, fs.ErrNotExist) {
		// Before 4.17 perf has no kprobe unit, by which programs are attached here: none is asked about.
		wire.Send(frame.Attached, nil)
		return nil
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		if slices.Contains(leave, name) {
			continue
		}
		p := spec.Programs[name]
		wire.Send(frame.Enabling, []byte(name))
		fmt.Fprintf(&out, "%s\t%d\t%s\n", name, errnoOf(attach(p, unit)), p.SectionName)
	}
	wire.Send(frame.Attached, out.Bytes())
	return nil
}

// kprobeUnit is the number of perf's kprobe unit.
func kprobeUnit() (uint32, error) {
	text, err := os.ReadFile("/sys/bus/event_source/devices/kprobe/type")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return uint32(n), err
}

// attach does what loaders do for a section (libbpf, attach_kprobe).
func attach(p *ebpf.ProgramSpec, unit uint32) error {
	section := strings.TrimPrefix(p.SectionName, "?")
	kind, place, _ := strings.Cut(section, "/")
	ret := strings.HasPrefix(kind, "kret")
	if strings.HasPrefix(kind, "kprobe.multi") || strings.HasPrefix(kind, "kretprobe.multi") {
		return attachMulti(p, place, ret)
	}
	if strings.HasSuffix(kind, "syscall") {
		place = systemcall.Wrapped + place
	}
	p = p.Copy()
	p.Type, p.AttachType = ebpf.Kprobe, 0
	program, err := ebpf.NewProgram(p)
	if err != nil {
		return err
	}
	return attachPerf(program, unit, place, ret)
}

// attachPerf opens a perf event at SYM[+OFF] and gives it the program. The
// event stays open.
func attachPerf(program *ebpf.Program, unit uint32, place string, ret bool) error {
	name, off, _ := strings.Cut(place, "+")
	offset, err := strconv.ParseUint("0"+strings.TrimPrefix(off, "0x"), base(off), 64)
	if err != nil {
		return err
	}
	symbol, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{Type: unit, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Ext1: uint64(uintptr(unsafe.Pointer(symbol))), Ext2: offset}
	if ret {
		attr.Config = 1 // the unit's format: retprobe is bit 0 of config
	}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, program.FD()); err != nil {
		return err
	}
	return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
}

func base(off string) int {
	if strings.HasPrefix(off, "0x") {
		return 16
	}
	return 10
}

// attachMulti makes one link to all functions that the pattern matches and that ftrace
// can trace.
func attachMulti(p *ebpf.ProgramSpec, pattern string, ret bool) error {
	symbols, err := traceable(pattern)
	if err != nil {
		return err
	}
	program, err := ebpf.NewProgram(p)
	if err != nil {
		return err
	}
	if len(symbols) == 0 {
		return unix.ENOENT
	}
	o := link.KprobeMultiOptions{Symbols: symbols}
	if ret {
		_, err = link.KretprobeMulti(program, o)
	} else {
		_, err = link.KprobeMulti(program, o)
	}
	return err
}

// traceable lists the kernel's own functions that match.
func traceable(pattern string) ([]string, error) {
	text, err := os.ReadFile(tracing + "available_filter_functions")
	if err != nil {
		return nil, err
	}
	if !strings.ContainsAny(pattern, "*?") {
		return []string{pattern}, nil
	}
	var list []string
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 1 || seen[words[0]] {
			continue
		}
		if ok, _ := path.Match(pattern, words[0]); ok {
			seen[words[0]] = true
			list = append(list, words[0])
		}
	}
	return list, nil
}
