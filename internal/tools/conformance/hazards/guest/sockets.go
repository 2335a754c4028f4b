//go:build linux && amd64

package main

import (
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockets is a pair of one kind that talks.
func sockets(domain, kind int, address, client unix.Sockaddr) func(calls, string) {
	return func(c calls, _ string) {
		s, err := unix.Socket(domain, kind, 0)
		c.err("socket", err)
		if err != nil {
			return
		}
		c.err("reuse", unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
		c.err("bind", unix.Bind(s, address))
		b := make([]byte, 100)
		talk := s
		if kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET {
			c.err("listen", unix.Listen(s, 5))
		}
		name, err := unix.Getsockname(s)
		c.err("getsockname", err)
		o, err := unix.Socket(domain, kind, 0)
		c.err("socket", err)
		if client != nil {
			c.err("bind", unix.Bind(o, client))
		}
		c.err("connect", unix.Connect(o, name))
		if kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET {
			talk, _, err = unix.Accept(s)
			c.err("accept", err)
		}
		n, err := unix.Write(o, b)
		c.n("write", n, err)
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(talk), Events: unix.POLLIN}}, 1000)
		c.err("poll", err)
		c.err("sendmsg", unix.Sendmsg(o, b, nil, nil, 0))
		n, _, err = unix.Recvfrom(talk, b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		c.n("peek", n, err)
		n, _, _, _, err = unix.Recvmsg(talk, b, nil, unix.MSG_DONTWAIT)
		c.n("recvmsg", n, err)
		for _, opt := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF, unix.SO_KEEPALIVE, unix.SO_TIMESTAMP, unix.SO_LINGER, unix.SO_PRIORITY} {
			_, err := unix.GetsockoptInt(talk, unix.SOL_SOCKET, opt)
			c.err("getsockopt", err)
			c.err("setsockopt", unix.SetsockoptInt(talk, unix.SOL_SOCKET, opt, 1))
		}
		c.err("level 6", unix.SetsockoptInt(o, 6, 1, 1))
		c.err("level 0", unix.SetsockoptInt(o, 0, 1, 1))
		_, err = unix.GetsockoptInt(o, 6, 1)
		c.err("get level 6", err)
		_, err = unix.GetsockoptInt(o, 0, 1)
		c.err("get level 0", err)
		_, err = unix.Getpeername(o)
		c.err("getpeername", err)
		c.raw("ioctl", unix.SYS_IOCTL, uintptr(o), 0x541B, uintptr(unsafe.Pointer(&b[0])))
		c.raw("ioctl if", unix.SYS_IOCTL, uintptr(o), unix.SIOCGIFCONF, uintptr(unsafe.Pointer(&b[16])))
		c.err("shutdown", unix.Shutdown(o, unix.SHUT_RDWR))
		c.err("close", unix.Close(o))
		if talk != s {
			c.err("close", unix.Close(talk))
		}
		c.err("close", unix.Close(s))
	}
}

func netlink(protocol int, requests ...int) func(calls, string) {
	return func(c calls, _ string) {
		for _, r := range requests {
			s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, protocol)
			c.err("socket", err)
			if err != nil {
				return
			}
			c.err("bind", unix.Bind(s, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
			m := make([]byte, 16+32)
			m[0], m[4], m[5], m[6], m[7] = byte(len(m)), byte(r), byte(r>>8), 1, 3 // a dump
			c.err("sendto", unix.Sendto(s, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
			b := make([]byte, 1<<16)
			for range 8 {
				n, _, err := unix.Recvfrom(s, b, unix.MSG_DONTWAIT)
				if n <= 0 || err != nil {
					break
				}
			}
			c.err("close", unix.Close(s))
		}
	}
}

// up brings the loopback interface up, once.
func up() {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return
	}
	defer unix.Close(s)
	ifr, _ := unix.NewIfreq("lo")
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	_ = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr)
}

func withNet(do func(calls, string)) func(calls, string) {
	return func(c calls, dir string) {
		up()
		do(c, dir)
	}
}

var loopback = [4]byte{127, 0, 0, 1}

// socketWorkloads send and receive by sockets.
var socketWorkloads = map[string]func(calls, string){
	"proc_net": withNet(reads("/proc/net/tcp", "/proc/net/udp", "/proc/net/unix", "/proc/net/dev", "/proc/net/route", "/proc/net/arp", "/proc/net/snmp", "/proc/net/netstat", "/proc/net/sockstat", "/proc/net/netlink", "/proc/net/packet", "/proc/net/protocols", "/proc/net/igmp", "/proc/net/raw", "/proc/net/ptype", "/proc/net/softnet_stat", "/proc/net/fib_trie")),
	"unix_stream": func(c calls, dir string) {
		sockets(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: dir + "s"}, nil)(c, dir)
	},
	"unix_datagram": func(c calls, dir string) {
		sockets(unix.AF_UNIX, unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: dir + "s"}, &unix.SockaddrUnix{Name: dir + "o"})(c, dir)
	},
	"unix_seqpacket": func(c calls, dir string) {
		sockets(unix.AF_UNIX, unix.SOCK_SEQPACKET, &unix.SockaddrUnix{Name: dir + "s"}, nil)(c, dir)
	},
	"tcp":  withNet(sockets(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: loopback}, nil)),
	"udp":  withNet(sockets(unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: loopback}, nil)),
	"tcp6": withNet(sockets(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}, nil)),
	"udp6": withNet(sockets(unix.AF_INET6, unix.SOCK_DGRAM, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}, nil)),
	"icmp": withNet(sockets(unix.AF_INET, unix.SOCK_RAW, &unix.SockaddrInet4{Addr: loopback}, nil)),
	"packet": withNet(func(c calls, _ string) {
		s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0x0300)
		c.err("socket", err)
		if err != nil {
			return
		}
		c.err("bind", unix.Bind(s, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: 1}))
		c.err("sendto", unix.Sendto(s, make([]byte, 60), 0, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: 1, Halen: 6}))
		n, _, err := unix.Recvfrom(s, make([]byte, 100), unix.MSG_DONTWAIT)
		c.err(fmt.Sprint("recvfrom ", n > 0), err)
		c.err("close", unix.Close(s))
	}),
	"connections": withNet(func(c calls, _ string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		c.err("listen", err)
		if err != nil {
			return
		}
		go func() {
			for {
				s, err := l.Accept()
				if err != nil {
					return
				}
				b := make([]byte, 1<<16)
				n, _ := s.Read(b)
				_, _ = s.Write(b[:n])
				_ = s.Close()
			}
		}()
		for range 5 {
			s, err := net.Dial("tcp", l.Addr().String())
			c.err("dial", err)
			if err != nil {
				return
			}
			_, err = s.Write(make([]byte, 5000))
			c.err("write", err)
			_, err = s.Read(make([]byte, 100))
			c.err("read", err)
			c.err("close", s.Close())
		}
		_, err = net.Dial("tcp", "127.0.0.1:9")
		c.err("refused", err)
		c.err("close", l.Close())
	}),
	"route_netlink":   withNet(netlink(unix.NETLINK_ROUTE, unix.RTM_GETLINK, unix.RTM_GETADDR, unix.RTM_GETROUTE, unix.RTM_GETNEIGH, unix.RTM_GETRULE, unix.RTM_GETQDISC, unix.RTM_GETTCLASS, unix.RTM_GETNEIGHTBL, 94, 90)),
	"diag_netlink":    netlink(unix.NETLINK_SOCK_DIAG, 18, 20),
	"generic_netlink": netlink(unix.NETLINK_GENERIC, 16),
	"audit_netlink":   netlink(unix.NETLINK_AUDIT, 1000, 1013),
	"filters": func(c calls, _ string) {
		netlink(unix.NETLINK_NETFILTER, 0x0100, 0x0a00)(c, "")
		netlink(unix.NETLINK_XFRM, 0x12, 0x15)(c, "")
		netlink(unix.NETLINK_KOBJECT_UEVENT, 1)(c, "")
	},
}
