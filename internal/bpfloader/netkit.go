//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"kprobelab/internal/bounded"
)

// netkits counts the pairs of devices that the loader has made.
var netkits int

// device is a link to a device that goes with it.
type device struct {
	link.Link
	undo
}

func (d device) Close() error { return errors.Join(d.Link.Close(), d.undo.Close()) }

// attachNetkit attaches to a new pair of devices, kprobelab0 and its peer: programs of both sides hang on the first.
func attachNetkit(s *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	text := fmt.Sprintf("kprobelab%d", netkits)
	netkits++
	m := message{kind: unix.RTM_NEWLINK, flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, head: make([]byte, unix.SizeofIfInfomsg), attributes: []attribute{
		name(unix.IFLA_IFNAME, text), nest(unix.IFLA_LINKINFO, name(unix.IFLA_INFO_KIND, "netkit")),
	}}
	if err := rtnetlink(m); err != nil {
		return nil, fmt.Errorf("a device of netkit: %w", err)
	}
	m.kind, m.flags = unix.RTM_DELLINK, 0
	done := undo{m}
	number, err := bounded.ReadFile("/sys/class/net/"+text+"/ifindex", bounded.GuestFile)
	if err != nil {
		return nil, errors.Join(err, done.Close())
	}
	index, err := strconv.Atoi(strings.TrimSpace(string(number)))
	if err != nil {
		return nil, errors.Join(err, done.Close())
	}
	at, err := link.AttachNetkit(link.NetkitOptions{Interface: index, Program: p, Attach: s.AttachType})
	if err != nil {
		return nil, errors.Join(err, done.Close())
	}
	return device{at, done}, nil
}
