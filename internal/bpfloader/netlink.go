//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// attribute is an attribute of a netlink message: its type, and the value as netlink has it.
type attribute struct {
	kind  uint16
	value []byte
}

func u32(kind uint16, n uint32) attribute {
	return attribute{kind, binary.NativeEndian.AppendUint32(nil, n)}
}

func name(kind uint16, value string) attribute { return attribute{kind, append([]byte(value), 0)} }

// nest is an attribute that has others.
func nest(kind uint16, list ...attribute) attribute {
	return attribute{kind | unix.NLA_F_NESTED, pack(list)}
}

// pack writes attributes one after another, each at a multiple of 4.
func pack(list []attribute) (b []byte) {
	for _, a := range list {
		b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofNlAttr+len(a.value)))
		b = binary.NativeEndian.AppendUint16(b, a.kind)
		b = append(b, a.value...)
		b = append(b, make([]byte, -len(b)&(unix.NLA_ALIGNTO-1))...)
	}
	return b
}

// message is a message of rtnetlink. head is its fixed part.
type message struct {
	kind, flags uint16
	head        []byte
	attributes  []attribute
}

// errNetlink: the kernel's answer to a message is none.
var errNetlink = errors.New("rtnetlink did not answer")

// rtnetlink sends a message, and returns the kernel's error. Sockets of their own keep answers apart.
func rtnetlink(m message) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	body := slices.Concat(m.head, pack(m.attributes))
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, m.kind)
	b = binary.NativeEndian.AppendUint16(b, m.flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = append(b, make([]byte, 8)...) // the number of the message, and of the sender: the kernel chooses it
	if err := unix.Sendto(fd, append(b, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 1<<16)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	switch {
	case err != nil:
		return err
	case n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR:
		return fmt.Errorf("%w: %d bytes", errNetlink, n)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// undo sends messages when it is closed, the last first.
type undo []message

func (u undo) Close() (err error) {
	for _, m := range slices.Backward(u) {
		err = errors.Join(err, rtnetlink(m))
	}
	return err
}
