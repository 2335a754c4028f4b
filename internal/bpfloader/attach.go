//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
)

// errNotAsked: the kernel was not asked to attach the program. Its section names no place, or the loader does not attach its kind.
var errNotAsked = errors.New("not attached")

// attach attaches a program as its section says, and detaches it.
func (l *loader) attach(a *answer.Program, spec *ebpf.ProgramSpec, c *ebpf.Collection) {
	at, err := l.attachTo(spec, c)
	if errors.Is(err, errNotAsked) {
		a.AttachError = err.Error()
		return
	}
	attached := err == nil
	a.Attaches = &attached
	if err != nil {
		a.AttachError = refused(err)
		return
	}
	_ = at.Close() // the link's end is the program's
}

// refused gives the kernel's errno and its text, or the text of another error.
func refused(err error) string {
	if e := unix.Errno(0); errors.As(err, &e) {
		return errnoName(e) + ": " + e.Error()
	}
	return err.Error()
}

// loopback is the interface that programs of the network are attached to.
const loopback = 1

// attachTo attaches a program of a collection. It chooses by the section's first word.
func (l *loader) attachTo(s *ebpf.ProgramSpec, c *ebpf.Collection) (io.Closer, error) {
	p := c.Programs[s.Name]
	kind, to, _ := strings.Cut(strings.TrimPrefix(s.SectionName, "?"), "/")
	switch kind {
	case "kprobe", "kretprobe":
		return attachProbe(kind == "kretprobe", to, p)
	case "kprobe.multi", "kretprobe.multi", "kprobe.session":
		return attachMulti(kind, to, p)
	case "ksyscall", "kretsyscall":
		if to == "" {
			return nil, unnamed(s)
		}
		return attachProbe(kind == "kretsyscall", "__x64_sys_"+to, p)
	case "uprobe", "uprobe.s", "uretprobe", "uretprobe.s":
		return attachUser(kind, to, p)
	case "uprobe.multi", "uprobe.multi.s", "uretprobe.multi", "uretprobe.multi.s", "uprobe.session", "uprobe.session.s":
		return attachUserMulti(kind, to, s, p)
	case "usdt", "usdt.s":
		if to == "" {
			return nil, unnamed(s)
		}
		return l.attachUSDT(to, p, c)
	case "tracepoint", "tp":
		group, name, ok := strings.Cut(to, "/")
		if !ok {
			return nil, unnamed(s)
		}
		return link.Tracepoint(group, name, p, nil)
	case "raw_tracepoint", "raw_tp", "raw_tracepoint.w", "raw_tp.w":
		if to == "" {
			return nil, unnamed(s)
		}
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: to, Program: p})
	case "tp_btf", "fentry", "fexit", "fmod_ret", "fentry.s", "fexit.s", "fmod_ret.s", "fsession", "fsession.s":
		return link.AttachTracing(link.TracingOptions{Program: p})
	case "freplace":
		return link.AttachFreplace(nil, "", p)
	case "lsm", "lsm.s":
		return link.AttachLSM(link.LSMOptions{Program: p})
	case "iter", "iter.s":
		return link.AttachIter(link.IterOptions{Program: p})
	case "lwt_in", "lwt_out", "lwt_xmit", "lwt_seg6local", "xdp", "xdp.frags", "tc", "classifier", "action", "tcx", "netkit", "netfilter":
		return attachDevice(kind, to, s, p)
	case "struct_ops", "struct_ops.s":
		return l.attachOps(s, c)
	case "perf_event":
		return attachPerf(p)
	case "socket":
		return attachSocket(unix.SO_ATTACH_BPF, p)
	case "sk_reuseport":
		return attachSocket(unix.SO_ATTACH_REUSEPORT_EBPF, p)
	case "sk_lookup", "flow_dissector":
		return attachNamespace(p)
	case "sk_skb", "sk_msg":
		if kind == "sk_skb" && to == "" {
			return nil, unnamed(s)
		}
		return attachMap(s, p)
	case "syscall":
		return nil, fmt.Errorf("%w: a program of syscall is called, it is attached to nothing", errNotAsked)
	}
	if strings.HasPrefix(kind, "cgroup") || kind == "sockops" || kind == "lsm_cgroup" {
		return link.AttachCgroup(link.CgroupOptions{Path: "/sys/fs/cgroup", Attach: s.AttachType, Program: p})
	}
	return nil, fmt.Errorf("%w: sections of %s are not attached yet", errNotAsked, kind)
}

// attachDevice attaches to the way of packets: a device, a route over it, or a hook of netfilter.
func attachDevice(kind, to string, s *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	switch kind {
	case "xdp", "xdp.frags":
		if to != "" {
			return attachRedirect(s, p)
		}
		return link.AttachXDP(link.XDPOptions{Program: p, Interface: loopback})
	case "tc", "classifier", "action":
		return attachTraffic(s, p)
	case "tcx":
		return link.AttachRawLink(link.RawLinkOptions{Target: loopback, Program: p, Attach: s.AttachType})
	case "netkit":
		return attachNetkit(s, p)
	case "netfilter":
		return link.AttachNetfilter(link.NetfilterOptions{Program: p, ProtocolFamily: 2, Hook: link.NetfilterInetPreRouting, Priority: -128})
	}
	return attachRoute(s, p)
}

func unnamed(s *ebpf.ProgramSpec) error {
	return fmt.Errorf("%w: the section %s does not say to what", errNotAsked, s.SectionName)
}

// attachProbe attaches to FUNCTION or FUNCTION+OFFSET.
func attachProbe(returns bool, to string, p *ebpf.Program) (io.Closer, error) {
	if to == "" {
		return nil, fmt.Errorf("%w: the section does not say to what", errNotAsked)
	}
	name, offset, _ := strings.Cut(to, "+")
	attr := &unix.PerfEventAttr{Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	if offset != "" {
		n, err := strconv.ParseUint(offset, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("the offset %q is no number", offset)
		}
		attr.Ext2 = n
	}
	var err error
	if attr.Type, err = unit("kprobe"); err != nil {
		return nil, err
	}
	if returns {
		attr.Config = 1 // format/retprobe
	}
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return nil, err
	}
	attr.Ext1 = uint64(uintptr(unsafe.Pointer(text)))
	at, err := attachEvent(attr, -1, 0, p)
	runtime.KeepAlive(text)
	return at, err
}

// unit is the number of the kernel's unit of probes, kprobe or uprobe.
func unit(name string) (uint32, error) {
	text, err := bounded.ReadFile("/sys/bus/event_source/devices/"+name+"/type", bounded.GuestFile)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return uint32(n), err
}

// attachEvent attaches to a perf event, by the kernel's calls as libbpf makes them: their errno is the answer.
func attachEvent(attr *unix.PerfEventAttr, pid, cpu int, p *ebpf.Program) (io.Closer, error) {
	fd, err := unix.PerfEventOpen(attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "perf event")
	err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, p.FD())
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// attachMulti attaches to all functions of a pattern.
func attachMulti(kind, pattern string, p *ebpf.Program) (io.Closer, error) {
	if pattern == "" {
		return nil, fmt.Errorf("%w: the section does not say to what", errNotAsked)
	}
	names, err := functions(pattern)
	if err != nil {
		return nil, err
	}
	o := link.KprobeMultiOptions{Symbols: names, Session: kind == "kprobe.session"}
	var at io.Closer
	if kind == "kretprobe.multi" {
		at, err = link.KretprobeMulti(p, o)
	} else {
		at, err = link.KprobeMulti(p, o)
	}
	if errors.Is(err, ebpf.ErrNotSupported) {
		return nil, errors.New("this kernel has no multi-probes: they want 5.18 or later, and CONFIG_FPROBE")
	}
	return at, err
}

// attachPerf attaches to the clock of the first processor.
func attachPerf(p *ebpf.Program) (io.Closer, error) {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: 99, Bits: unix.PerfBitFreq,
	}
	return attachEvent(attr, -1, 0, p)
}

// functions lists the traceable functions of the kernel that match a pattern. * and ? are special in it.
func functions(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "*?") {
		return []string{pattern}, nil
	}
	list, err := bounded.ReadFile("/sys/kernel/tracing/available_filter_functions", bounded.GuestFile)
	if err != nil {
		return nil, err
	}
	plain := strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(pattern)
	names := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // a module's name comes after
		ok, err := path.Match(plain, name)
		if err != nil {
			return nil, err
		}
		if ok {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no function matches %s", pattern)
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// attachUser attaches to FILE:FUNCTION or FILE:OFFSET of a program in the guest.
func attachUser(kind, to string, p *ebpf.Program) (io.Closer, error) {
	file, name, ok := strings.Cut(to, ":")
	if !ok {
		return nil, fmt.Errorf("%w: the section does not say to what", errNotAsked)
	}
	file, err := inGuest(file)
	if err != nil {
		return nil, err
	}
	program, err := link.OpenExecutable(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotAsked, err)
	}
	name, offset, _ := strings.Cut(name, "+")
	o := &link.UprobeOptions{}
	if offset != "" {
		if o.Offset, err = strconv.ParseUint(offset, 0, 64); err != nil {
			return nil, fmt.Errorf("the offset %q is no number", offset)
		}
	}
	if n, err := strconv.ParseUint(name, 0, 64); err == nil {
		o.Address, name = n, ""
	}
	if strings.HasPrefix(kind, "uretprobe") {
		return program.Uretprobe(name, p, o)
	}
	return program.Uprobe(name, p, o)
}
