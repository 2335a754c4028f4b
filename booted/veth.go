package booted

import (
	"encoding/binary"
	"errors"

	"kprobelab/errno"
)

// The module veth makes this pair of Ethernet devices.
var pair = [2]struct {
	name    string
	address [4]byte
}{
	{"veth0", [4]byte{10, 0, 0, 1}},
	{"veth1", [4]byte{10, 0, 0, 2}},
}

// Pair makes the devices veth0 with the address 10.0.0.1/24 and veth1 with 10.0.0.2/24, each the other's peer, and brings
// them up. Devices that are there stay as they are.
func (k *Kernel) Pair() error {
	if k.Has("/sys/class/net/" + pair[0].name) {
		return nil
	}
	if err := k.netlink(newPair()); err != nil {
		return err
	}
	fd, err := k.asks("socket", afINET, sockDatagram|closeExec, 0)
	if err != nil {
		return err
	}
	for _, end := range pair {
		address := append([]byte{afINET, 0, 0, 0}, end.address[:]...) // struct sockaddr_in
		for _, r := range []struct {
			request int
			value   []byte
		}{
			{setAddress, address},
			{setNetmask, []byte{afINET, 0, 0, 0, 255, 255, 255, 0}},
			{setFlags, []byte{deviceUp | deviceRunning, 0}},
		} {
			b := make([]byte, 40) // struct ifreq
			copy(b, end.name)
			copy(b[interfaceName:], r.value)
			if _, e := k.asks("ioctl", fd, r.request, b); err == nil {
				err = e
			}
		}
	}
	_, e := k.asks("close", fd)
	return errors.Join(err, e)
}

// netlink sends a request of rtnetlink(7), and returns the kernel's answer to it.
func (k *Kernel) netlink(request []byte) error {
	fd, err := k.asks("socket", afNETLINK, sockRaw|closeExec, 0)
	if err != nil {
		return err
	}
	defer func() { _, _ = k.asks("close", fd) }()
	if _, err := k.asks("sendto", fd, request, len(request), 0, 0, 0); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := k.asks("recvfrom", fd, answer, len(answer), 0, 0, 0)
	switch {
	case err != nil:
		return err
	case n < netlinkHeader+4 || binary.LittleEndian.Uint16(answer[4:]) != netlinkError:
		return errno.EPROTO
	}
	if e := int32(binary.LittleEndian.Uint32(answer[netlinkHeader:])); e != 0 {
		return errno.Errno(-e)
	}
	return nil
}

// newPair is the request for a new pair, RTM_NEWLINK with the kind veth and the second device's name in its data.
func newPair() []byte {
	link := func(name string, more ...[]byte) []byte {
		b := make([]byte, 16) // struct ifinfomsg
		b = append(b, attribute(ifName, append([]byte(name), 0))...)
		for _, m := range more {
			b = append(b, m...)
		}
		return b
	}
	peer := attribute(infoData, attribute(vethPeer, link(pair[1].name)))
	body := link(pair[0].name, attribute(linkInfo, append(attribute(infoKind, []byte("veth")), peer...)))
	b := make([]byte, netlinkHeader, netlinkHeader+len(body)) // struct nlmsghdr
	binary.LittleEndian.PutUint32(b, uint32(netlinkHeader+len(body)))
	binary.LittleEndian.PutUint16(b[4:], newLink)
	binary.LittleEndian.PutUint16(b[6:], isRequest|wantsAnswer|createNew|exclusive)
	return append(b, body...)
}

// attribute is a struct nlattr with its value.
func attribute(kind uint16, value []byte) []byte {
	b := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, uint16(4+len(value))), kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// Numbers of include/uapi/linux: netlink.h, rtnetlink.h, if_link.h, veth.h, sockios.h, if.h, socket.h.
const (
	afINET, afNETLINK     = 2, 16
	sockDatagram, sockRaw = 2, 3

	netlinkHeader                                  = 16
	netlinkError                                   = 2
	newLink                                        = 16
	isRequest, wantsAnswer, exclusive, createNew   = 0x1, 0x4, 0x200, 0x400
	ifName, linkInfo, infoKind, infoData, vethPeer = 3, 18, 1, 2, 1

	setFlags, setAddress, setNetmask = 0x8914, 0x8916, 0x891c
	deviceUp, deviceRunning          = 0x1, 0x40
	interfaceName                    = 16
)
