//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Attributes of traffic control (include/uapi/linux/rtnetlink.h, pkt_cls.h and tc_act/tc_bpf.h).
const (
	tcaKind, tcaOptions                                = 1, 2
	bpfAct, bpfOpsLen, bpfOps, bpfFD, bpfName, bpfFlag = 1, 4, 5, 6, 7, 8
	actKind, actOptions                                = 1, 2
	actBPFParameters, actBPFFD, actBPFName             = 2, 5, 6
)

// Places of the queueing discipline clsact (include/uapi/linux/pkt_sched.h).
const (
	clsact        = 0xfffffff1
	clsactIngress = 0xfffffff2
	clsactEgress  = 0xfffffff3
	clsactHandle  = 0xffff0000
)

// filters counts the filters that the loader has made: each has a priority of its own.
var filters uint32

// trafficHead is struct tcmsg about the loopback device.
func trafficHead(handle, parent, info uint32) []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.AF_UNSPEC)
	for _, v := range []uint32{loopback, handle, parent, info} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

// attachTraffic attaches a classifier or an action as tc(8) does: the discipline clsact, and a filter of cls_bpf in it.
// An action hangs on a classic program that takes all packets.
func attachTraffic(s *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	var done undo
	head := trafficHead(clsactHandle, clsact, 0)
	kind := name(tcaKind, "clsact")
	err := rtnetlink(message{unix.RTM_NEWQDISC, unix.NLM_F_CREATE | unix.NLM_F_EXCL, head, []attribute{kind}})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, lacks("sch_ingress")
	case err == nil:
		done = append(done, message{kind: unix.RTM_DELQDISC, head: head, attributes: []attribute{kind}})
	case !errors.Is(err, unix.EEXIST): // another program's
		return nil, err
	}
	parent := uint32(clsactIngress)
	if strings.HasSuffix(s.SectionName, "/egress") {
		parent = clsactEgress
	}
	filters++
	const allProtocols = unix.ETH_P_ALL << 8 // in the order of the network
	head = trafficHead(0, parent, filters<<16|allProtocols)
	kind = name(tcaKind, "bpf")
	err = rtnetlink(message{unix.RTM_NEWTFILTER, unix.NLM_F_CREATE | unix.NLM_F_EXCL, head, []attribute{kind, nest(tcaOptions, filter(s, p)...)}})
	if err != nil {
		_ = done.Close()
		if errors.Is(err, unix.ENOENT) {
			return nil, lacks("cls_bpf and act_bpf")
		}
		return nil, err
	}
	return append(done, message{kind: unix.RTM_DELTFILTER, head: head, attributes: []attribute{kind}}), nil
}

// filter is a program as cls_bpf's options.
func filter(s *ebpf.ProgramSpec, p *ebpf.Program) []attribute {
	const direct = 1 // TCA_BPF_FLAG_ACT_DIRECT: the program's result is the verdict
	if p.Type() != ebpf.SchedACT {
		return []attribute{u32(bpfFD, uint32(p.FD())), name(bpfName, s.Name), u32(bpfFlag, direct)}
	}
	takesAll := []byte{0x06, 0, 0, 0, 0xff, 0xff, 0xff, 0xff} // ret #-1
	parameters := make([]byte, 20)                            // struct tc_act_bpf; its index is the kernel's to choose
	copy(parameters[8:], []byte{0xff, 0xff, 0xff, 0xff})      // TC_ACT_UNSPEC: an action that decides nothing leaves the packet to the next filter
	act := nest(1, name(actKind, "bpf"), nest(actOptions,
		attribute{actBPFParameters, parameters}, u32(actBPFFD, uint32(p.FD())), name(actBPFName, s.Name)))
	return []attribute{{bpfOpsLen, []byte{1, 0}}, {bpfOps, takesAll}, nest(bpfAct, act)}
}

// lacks says which module the guest does not have: what the kernel says then is of the guest, not of the program.
func lacks(module string) error {
	return fmt.Errorf("%w: the kernel has no %s, a module of its package", errNotAsked, module)
}
