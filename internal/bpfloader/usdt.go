//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"kprobelab/internal/bounded"
	"kprobelab/internal/sdt"
)

// Maps of libbpf's bpf/usdt.bpf.h: where the arguments of a place are, by a number; and the number, by the place's address, on kernels whose
// probes carry none.
const (
	usdtSpecs   = "__bpf_usdt_specs"
	usdtNumbers = "__bpf_usdt_ip_to_spec_id"
)

// closers close all, the last first.
type closers []io.Closer

func (c closers) Close() (err error) {
	for i := range c {
		err = errors.Join(err, c[len(c)-1-i].Close())
	}
	return err
}

// attachUSDT attaches to each place of PROGRAM:PROVIDER:NAME.
func (l *loader) attachUSDT(to string, p *ebpf.Program, c *ebpf.Collection) (io.Closer, error) {
	words := strings.Split(to, ":")
	if len(words) != 3 {
		return nil, fmt.Errorf("%q is no PROGRAM:PROVIDER:NAME", to)
	}
	if l.spec.Maps[usdtSpecs] == nil || l.spec.Maps[usdtNumbers] == nil {
		return nil, fmt.Errorf("the object has no maps %s and %s: it does not include bpf/usdt.bpf.h", usdtSpecs, usdtNumbers)
	}
	file, err := inGuest(words[0])
	if err != nil {
		return nil, err
	}
	program, err := bounded.Open(file)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	notes, err := sdt.Read(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var at closers
	for _, n := range notes {
		if n.Provider != words[1] || n.Name != words[2] {
			continue
		}
		one, err := l.attachPlace(file, n, p, c)
		if err != nil {
			_ = at.Close()
			return nil, err
		}
		at = append(at, one)
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("%s has no tracepoint %s:%s", file, words[1], words[2])
	}
	return at, nil
}

// attachPlace attaches to a place, and tells the program where its arguments are.
func (l *loader) attachPlace(file string, n sdt.Note, p *ebpf.Program, c *ebpf.Collection) (io.Closer, error) {
	number, err := l.describe(n, c.Maps[usdtSpecs])
	if err != nil {
		return nil, err
	}
	carry := hasCookies()
	if numbers := c.Maps[usdtNumbers]; !carry && numbers != nil {
		if n.Moves {
			return nil, fmt.Errorf("%s lies somewhere else in each process, and this kernel's probes carry no cookie", file)
		}
		if err := numbers.Put(n.Address, number); err != nil {
			return nil, err
		}
	}
	kind, err := unit("uprobe")
	if err != nil {
		return nil, err
	}
	path, err := unix.BytePtrFromString(file)
	if err != nil {
		return nil, err
	}
	const counter = 32 // format/ref_ctr_offset: config:32-63
	attr := &unix.PerfEventAttr{
		Type: kind, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: n.Semaphore << counter,
		Ext1: uint64(uintptr(unsafe.Pointer(path))), Ext2: n.Offset,
	}
	defer runtime.KeepAlive(path)
	if !carry {
		return attachEvent(attr, -1, 0, p)
	}
	return attachCookie(attr, p, uint64(number))
}

// describe writes where a place's arguments are (struct __bpf_usdt_spec), and returns its number. Places with equal arguments share one.
func (l *loader) describe(n sdt.Note, specs *ebpf.Map) (number uint32, err error) {
	if specs == nil {
		return 0, nil // the program asks for no argument
	}
	arguments, err := sdt.ReadArguments(n.Arguments)
	if err != nil {
		return 0, fmt.Errorf("%s:%s: %w", n.Provider, n.Name, err)
	}
	const slots, each = 12, 16
	if len(arguments) > slots {
		return 0, fmt.Errorf("%s:%s has %d arguments, and usdt.bpf.h has room for %d", n.Provider, n.Name, len(arguments), slots)
	}
	known := l.described[specs]
	if known == nil {
		known = map[string]uint32{}
		l.described[specs] = known
	}
	number, ok := known[n.Arguments]
	if ok {
		return number, nil
	}
	number = uint32(len(known))
	const count = slots*each + 8 // arg_cnt, after usdt_cookie
	value := make([]byte, specs.ValueSize())
	if len(value) < count+2 {
		return 0, fmt.Errorf("the values of %s have %d bytes, fewer than struct __bpf_usdt_spec", usdtSpecs, len(value))
	}
	for i, a := range arguments {
		describeArgument(value[i*each:], a)
	}
	binary.LittleEndian.PutUint16(value[count:], uint16(len(arguments)))
	if err := specs.Put(number, value); err != nil {
		return 0, err
	}
	known[n.Arguments] = number
	return number, nil
}

// describeArgument writes struct __bpf_usdt_arg_spec.
func describeArgument(b []byte, a sdt.Argument) {
	const constant, register, memory, indexed = 0, 1, 2, 3
	kind := uint32(constant)
	switch {
	case a.Index != "":
		kind = indexed | uint32(registers[a.Index])<<8 | uint32(a.Scale)<<20
	case a.Memory:
		kind = memory
	case a.Base != "":
		kind = register
	}
	binary.LittleEndian.PutUint64(b, uint64(a.Value))
	binary.LittleEndian.PutUint32(b[8:], kind)
	binary.LittleEndian.PutUint16(b[12:], registers[a.Base])
	if a.Signed {
		b[14] = 1
	}
	b[15] = byte(64 - 8*a.Size)
}

// registers are offsets in struct pt_regs.
var registers = map[string]uint16{
	"r15": 0, "r14": 8, "r13": 16, "r12": 24, "rbp": 32, "rbx": 40, "r11": 48, "r10": 56, "r9": 64, "r8": 72, "rax": 80, "rcx": 88, "rdx": 96,
	"rsi": 104, "rdi": 112, "rip": 128, "rsp": 152,
}

// attachCookie attaches to a perf event by a link that has a number for the program.
func attachCookie(attr *unix.PerfEventAttr, p *ebpf.Program, cookie uint64) (io.Closer, error) {
	fd, err := unix.PerfEventOpen(attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	event := os.NewFile(uintptr(fd), "perf event")
	create := struct { // BPF_LINK_CREATE's part of union bpf_attr, with perf_event.bpf_cookie
		program, target, kind, flags uint32
		cookie                       uint64
	}{uint32(p.FD()), uint32(fd), uint32(ebpf.AttachPerfEvent), 0, cookie}
	of, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&create)), unsafe.Sizeof(create))
	if errno != 0 {
		_ = event.Close()
		return nil, errno
	}
	return closers{event, os.NewFile(of, "link")}, nil
}

// folders lists the folders that libbpf searches for a program or a library that is named without one.
var folders = []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"}

// inGuest finds a program in the guest.
func inGuest(name string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("%w: the guest has no %s", errNotAsked, name)
		}
		return name, nil
	}
	for _, f := range folders {
		if file := filepath.Join(f, name); isFile(file) {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: the guest has no %s", errNotAsked, name)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
