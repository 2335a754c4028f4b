//go:build linux

package main

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"kprobelab/internal/bounded"
)

// userMulti is the part of union bpf_attr for BPF_LINK_CREATE of a multi-probe on functions of a program.
type userMulti struct {
	program, target, kind, flags     uint32
	path, offsets, counters, cookies uint64
	count, probeFlags, pid, _        uint32
}

// returns is BPF_F_UPROBE_MULTI_RETURN.
const returns = 1

// attachUserMulti attaches to all functions of FILE:PATTERN, * and ? being special in it, at their entries, their returns, or both (uprobe.session).
// The library makes no sessions.
func attachUserMulti(kind, to string, s *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	file, pattern, ok := strings.Cut(to, ":")
	if !ok {
		return nil, unnamed(s)
	}
	file, err := inGuest(file)
	if err != nil {
		return nil, err
	}
	offsets, err := functionsOf(file, pattern)
	if err != nil {
		return nil, err
	}
	name, err := unix.BytePtrFromString(file)
	if err != nil {
		return nil, err
	}
	attr := &userMulti{
		program: uint32(p.FD()), kind: uint32(s.AttachType), path: uint64(uintptr(unsafe.Pointer(name))),
		offsets: uint64(uintptr(unsafe.Pointer(&offsets[0]))), count: uint32(len(offsets)),
	}
	if strings.HasPrefix(kind, "uretprobe") {
		attr.probeFlags = returns
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
	runtime.KeepAlive(name)
	runtime.KeepAlive(offsets)
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, "link"), nil
}

// functionsOf gives the places in a program's file of the functions that match a pattern.
func functionsOf(file, pattern string) (offsets []uint64, err error) {
	opened, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	f, err := elf.NewFile(opened)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	symbols, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	for _, s := range append(symbols, dynamic...) {
		match, err := path.Match(strings.ReplaceAll(pattern, `\`, `\\`), s.Name)
		if err != nil {
			return nil, fmt.Errorf("the pattern %q: %w", pattern, err)
		}
		if !match || elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF {
			continue
		}
		for _, seg := range f.Progs {
			if seg.Type == elf.PT_LOAD && seg.Flags&elf.PF_X != 0 && s.Value >= seg.Vaddr && s.Value-seg.Vaddr < seg.Filesz {
				offsets = append(offsets, s.Value-seg.Vaddr+seg.Off)
			}
		}
	}
	slices.Sort(offsets)
	if offsets = slices.Compact(offsets); len(offsets) == 0 {
		return nil, fmt.Errorf("%s has no function %s", file, pattern)
	}
	return offsets, nil
}
