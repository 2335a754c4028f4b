//go:build linux

package main

import (
	"io"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Attributes of lightweight tunnels (include/uapi/linux/lwtunnel.h and seg6_local.h).
const (
	encapBPF, encapSegment             = 6, 7 // enum lwtunnel_encap_types
	lwtFD, lwtName                     = 1, 2
	segmentAction, segmentBPF, endBPF  = 1, 8, 15
	routeDestination, routeDevice      = unix.RTA_DST, unix.RTA_OIF
	routeEncapKind, routeEncapsulation = unix.RTA_ENCAP_TYPE, unix.RTA_ENCAP
)

// lwtHooks are the attributes of encapBPF by the kind of program.
var lwtHooks = map[ebpf.ProgramType]uint16{ebpf.LWTIn: 1, ebpf.LWTOut: 2, ebpf.LWTXmit: 3}

// attachRoute attaches to a new route over the loopback device: to 192.0.2.N, or 2001:db8::N for segment routing.
func attachRoute(s *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	routes++
	program := []attribute{u32(lwtFD, uint32(p.FD())), name(lwtName, s.Name)}
	family, to, kind, encapsulation := byte(unix.AF_INET), []byte{192, 0, 2, routes}, uint16(encapBPF), nest(lwtHooks[p.Type()], program...)
	list := []attribute{encapsulation}
	if p.Type() == ebpf.LWTSeg6Local {
		family, kind = unix.AF_INET6, encapSegment
		to = append(append([]byte{0x20, 0x01, 0x0d, 0xb8}, make([]byte, 11)...), routes)
		list = []attribute{u32(segmentAction, endBPF), nest(segmentBPF, program...)}
	}
	m := message{kind: unix.RTM_NEWROUTE, flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, head: []byte{
		family, byte(8 * len(to)), 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0,
	}}
	m.attributes = []attribute{
		{routeDestination, to}, u32(routeDevice, loopback), {routeEncapKind, []byte{byte(kind), 0}}, nest(routeEncapsulation, list...),
	}
	if err := rtnetlink(m); err != nil {
		return nil, err
	}
	m.kind, m.flags = unix.RTM_DELROUTE, 0
	return undo{m}, nil
}

// routes counts the routes that the loader has made.
var routes byte
