//go:build linux

package main

import (
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attachSocket attaches to a new UDP socket, by an option: SO_ATTACH_BPF, or SO_ATTACH_REUSEPORT_EBPF for a socket that shares its port.
func attachSocket(option int, p *ebpf.Program) (io.Closer, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	if option == unix.SO_ATTACH_REUSEPORT_EBPF {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, p.FD())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// attachNamespace attaches to the network namespace of the loader.
func attachNamespace(p *ebpf.Program) (io.Closer, error) {
	fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	return link.AttachNetNs(fd, p)
}

// attachMap attaches to a new map of sockets.
func attachMap(s *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.SockMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: m.FD(), Program: p, Attach: s.AttachType}); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil // the kernel detaches with the map
}

// attachRedirect puts a program of xdp/devmap or xdp/cpumap beside an entry of such a map: the loopback device, or the first processor with
// a queue of one packet.
func attachRedirect(s *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	kind, what := ebpf.DevMap, uint32(loopback)
	if s.AttachType == ebpf.AttachXDPCPUMap {
		kind, what = ebpf.CPUMap, 1
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: kind, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	if err := m.Put(uint32(0), []uint32{what, uint32(p.FD())}); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil // the kernel detaches with the map
}
