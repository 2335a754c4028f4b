//go:build linux && amd64

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kprobelab/internal/tools/conformance/hazards"
)

// workload runs one and writes what each of its calls returned.
func workload(name string) {
	do, ok := workloads[name]
	if !ok {
		fmt.Println("there is no such workload")
		os.Exit(2)
	}
	dir := "/tmp/" + name
	runtime.LockOSThread() // a tracer is a thread
	_ = os.RemoveAll(dir)
	_ = os.Mkdir(dir, 0o755)
	do(calls{}, dir+"/")
}

// calls writes what calls returned: the same each time, without the kernel's own numbers.
type calls struct{}

func (calls) err(what string, err error) { fmt.Println(what, err) }

func (c calls) n(what string, n int, err error) { fmt.Println(what, n, err) }

func (c calls) open(name string, flags int) int {
	fd, err := unix.Open(name, flags, 0o644)
	c.err("open "+name, err)
	return fd
}

// raw is a system call by number.
func (c calls) raw(what string, nr uintptr, args ...uintptr) uintptr {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	fmt.Println(what, int(e))
	return r
}

// files does with a file what files allow.
func files(c calls, name string) {
	fd := c.open(name, unix.O_RDWR|unix.O_CREAT)
	b := make([]byte, 4096)
	n, err := unix.Write(fd, b)
	c.n("write", n, err)
	n, err = unix.Pwrite(fd, b[:100], 50)
	c.n("pwrite", n, err)
	n, err = unix.Pread(fd, b, 0)
	c.n("pread", n, err)
	n, err = unix.Writev(fd, [][]byte{b[:10], b[:20]})
	c.n("writev", n, err)
	_, err = unix.Seek(fd, 0, 0)
	c.err("seek", err)
	n, err = unix.Readv(fd, [][]byte{b[:10], b[:20]})
	c.n("readv", n, err)
	c.err("fallocate", unix.Fallocate(fd, 0, 0, 1<<16))
	c.err("punch", unix.Fallocate(fd, 3, 0, 4096))
	c.err("fsync", unix.Fsync(fd))
	c.err("fdatasync", unix.Fdatasync(fd))
	c.err("sync_range", unix.SyncFileRange(fd, 0, 4096, 7))
	c.err("fadvise", unix.Fadvise(fd, 0, 4096, unix.FADV_WILLNEED))
	c.err("truncate", unix.Ftruncate(fd, 100))
	c.err("chmod", unix.Fchmod(fd, 0o600))
	c.err("chown", unix.Fchown(fd, 1, 1))
	c.err("setxattr", unix.Fsetxattr(fd, "user.a", []byte("b"), 0))
	c.err("trusted", unix.Fsetxattr(fd, "trusted.a", []byte("b"), 0))
	n, err = unix.Fgetxattr(fd, "trusted.a", b)
	c.n("getxattr", n, err)
	n, err = unix.Flistxattr(fd, b)
	c.n("listxattr", n, err)
	c.err("removexattr", unix.Fremovexattr(fd, "trusted.a"))
	c.err("flock", unix.Flock(fd, unix.LOCK_EX))
	c.err("lock", unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	c.err("lease", err)
	var attr [8]byte
	c.raw("ioctl getflags", unix.SYS_IOCTL, uintptr(fd), 0x80086601, uintptr(unsafe.Pointer(&attr)))
	c.raw("ioctl fiemap", unix.SYS_IOCTL, uintptr(fd), 0xC020660B, uintptr(unsafe.Pointer(&b[0])))
	c.raw("ioctl fionread", unix.SYS_IOCTL, uintptr(fd), 0x541B, uintptr(unsafe.Pointer(&b[0])))
	m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	c.err("mmap", err)
	if err == nil {
		m[0] = 1
		c.err("msync", unix.Msync(m, unix.MS_SYNC))
		c.err("madvise", unix.Madvise(m, unix.MADV_DONTNEED))
		c.err("munmap", unix.Munmap(m))
	}
	var st unix.Stat_t
	c.err("stat", unix.Fstat(fd, &st))
	var sx unix.Statx_t
	c.err("statx", unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_ALL, &sx))
	var fs unix.Statfs_t
	c.err("statfs", unix.Fstatfs(fd, &fs))
	c.err("syncfs", unix.Syncfs(fd))
	c.err("utimes", unix.UtimesNano(name, []unix.Timespec{{Sec: 1}, {Sec: 2}}))
	to := c.open(name+".copy", unix.O_RDWR|unix.O_CREAT)
	off := int64(0)
	n, err = unix.CopyFileRange(fd, &off, to, nil, 50, 0)
	c.n("copy_file_range", n, err)
	off = 0
	n, err = unix.Sendfile(to, fd, &off, 50)
	c.n("sendfile", n, err)
	c.raw("ficlone", unix.SYS_IOCTL, uintptr(to), 0x40049409, uintptr(fd))
	c.err("close", unix.Close(to))
	c.err("close", unix.Close(fd))
}

// reads reads a file of the kernel's whole, and seeks in it.
func reads(paths ...string) func(calls, string) {
	return func(c calls, _ string) {
		for _, p := range paths {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			c.err("open "+p, err)
			if err != nil {
				continue
			}
			b := make([]byte, 1<<16)
			for range 64 {
				n, err := unix.Read(fd, b)
				if n <= 0 || err != nil {
					c.err("read", err)
					break
				}
			}
			_, err = unix.Seek(fd, 0, 0)
			c.err("seek", err)
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			c.err("poll", err)
			c.err("close", unix.Close(fd))
		}
	}
}

func lists(paths ...string) func(calls, string) {
	return func(c calls, _ string) {
		for _, p := range paths {
			l, err := os.ReadDir(p)
			c.err(fmt.Sprint("readdir ", p, " ", len(l) > 0), err)
			for i, e := range l {
				if i == 20 {
					break
				}
				_, _ = os.Lstat(p + "/" + e.Name())
				_, _ = os.Readlink(p + "/" + e.Name())
			}
		}
	}
}

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

// mounts mounts a file system, uses it, and takes it away.
func mounts(kind, data string) func(calls, string) {
	return func(c calls, dir string) {
		c.err("mkdir", os.Mkdir(dir+"m", 0o755))
		err := unix.Mount("none", dir+"m", kind, 0, data)
		c.err("mount", err)
		if err != nil {
			return
		}
		c.err("remount", unix.Mount("none", dir+"m", kind, unix.MS_REMOUNT|unix.MS_NOATIME, data))
		files(c, dir+"m/f")
		names2(c, dir+"m/")
		l, err := os.ReadDir(dir + "m")
		c.err(fmt.Sprint("readdir ", len(l) > 0), err)
		_, err = os.ReadFile("/proc/self/mountinfo")
		c.err("mountinfo", err)
		c.err("umount", unix.Unmount(dir+"m", 0))
	}
}

// names2 does what is done with names.
func names2(c calls, dir string) {
	c.err("mkdir", unix.Mkdir(dir+"d", 0o755))
	c.err("mknod", unix.Mknod(dir+"null", unix.S_IFCHR|0o600, 0x103))
	c.err("mkfifo", unix.Mkfifo(dir+"fifo", 0o600))
	c.err("symlink", unix.Symlink("f", dir+"s"))
	c.err("link", unix.Link(dir+"s", dir+"l"))
	_, err := os.Readlink(dir + "s")
	c.err("readlink", err)
	c.err("rename", unix.Rename(dir+"l", dir+"d/l"))
	c.err("exchange", unix.Renameat2(unix.AT_FDCWD, dir+"s", unix.AT_FDCWD, dir+"d", unix.RENAME_EXCHANGE))
	c.err("access", unix.Access(dir+"s", unix.R_OK))
	c.err("unlink", unix.Unlink(dir+"fifo"))
	c.err("rmdir", unix.Rmdir(dir+"s"))
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	c.err("tmpfile", err)
	if err == nil {
		c.err("close", unix.Close(fd))
	}
	c.err("unlink", unix.Unlink(dir+"null"))
}

func dividesAndExits()

var workloads = map[string]func(calls, string){
	"tmpfs":  func(c calls, dir string) { files(c, dir+"f") },
	"rootfs": func(c calls, _ string) { files(c, "/file"); _ = os.Remove("/file"); _ = os.Remove("/file.copy") },
	"names":  func(c calls, dir string) { names2(c, dir) },
	"memfd": func(c calls, _ string) {
		fd, err := unix.MemfdCreate("m", unix.MFD_ALLOW_SEALING)
		c.err("memfd", err)
		const fixed = 100 // its name is written
		c.err("dup", unix.Dup2(fd, fixed))
		files(c, fmt.Sprintf("/proc/self/fd/%d", fixed))
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
		c.err("seal", err)
	},
	"proc": reads("/proc/self/status", "/proc/self/maps", "/proc/self/smaps", "/proc/self/stat", "/proc/self/io", "/proc/self/limits", "/proc/self/mounts", "/proc/self/cgroup",
		"/proc/self/environ", "/proc/self/cmdline", "/proc/self/auxv", "/proc/self/pagemap", "/proc/self/sched", "/proc/self/wchan", "/proc/self/stack", "/proc/self/numa_maps"),
	"proc_system": reads("/proc/stat", "/proc/meminfo", "/proc/interrupts", "/proc/vmstat", "/proc/slabinfo", "/proc/zoneinfo", "/proc/buddyinfo", "/proc/modules", "/proc/devices",
		"/proc/partitions", "/proc/diskstats", "/proc/filesystems", "/proc/uptime", "/proc/loadavg", "/proc/cpuinfo", "/proc/timer_list", "/proc/swaps", "/proc/locks", "/proc/iomem", "/proc/softirqs", "/proc/crypto", "/proc/key-users", "/proc/keys", "/proc/consoles", "/proc/vmallocinfo", "/proc/misc", "/proc/schedstat"),
	"proc_net": withNet(reads("/proc/net/tcp", "/proc/net/udp", "/proc/net/unix", "/proc/net/dev", "/proc/net/route", "/proc/net/arp", "/proc/net/snmp", "/proc/net/netstat", "/proc/net/sockstat", "/proc/net/netlink", "/proc/net/packet", "/proc/net/protocols", "/proc/net/igmp", "/proc/net/raw", "/proc/net/ptype", "/proc/net/softnet_stat", "/proc/net/fib_trie")),
	"proc_sys": func(c calls, _ string) {
		for _, p := range []string{"kernel/hostname", "kernel/pid_max", "vm/swappiness", "vm/dirty_ratio", "net/ipv4/ip_forward", "net/core/somaxconn", "fs/file-nr", "kernel/random/uuid", "kernel/sched_rt_period_us", "vm/overcommit_memory", "net/ipv4/tcp_congestion_control", "net/ipv4/tcp_available_congestion_control"} {
			b, err := os.ReadFile("/proc/sys/" + p)
			c.err(p, err)
			if !strings.Contains(p, "uuid") && !strings.Contains(p, "file-nr") {
				err = os.WriteFile("/proc/sys/"+p, b, 0)
				c.err("write "+p, err)
			}
		}
	},
	"sysfs": reads("/sys/kernel/mm/transparent_hugepage/enabled", "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/vulnerabilities/spectre_v2", "/sys/class/net/lo/mtu", "/sys/class/net/lo/address", "/sys/class/net/lo/statistics/rx_bytes",
		"/sys/kernel/uevent_seqnum", "/sys/class/mem/null/dev", "/sys/class/mem/null/uevent", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "/sys/devices/system/node/node0/meminfo", "/sys/power/state", "/sys/kernel/slab/kmalloc-64/objects", "/sys/module/kernel/parameters/panic", "/sys/bus/pci/devices/0000:00:00.0/config", "/sys/class/tty/ttyS0/type", "/sys/firmware/memmap/0/start", "/sys/fs/cgroup/cgroup.controllers"),
	"sysfs_write": func(c calls, _ string) {
		for _, p := range [][2]string{{"/sys/kernel/mm/transparent_hugepage/enabled", "madvise"}, {"/sys/class/mem/null/uevent", "add"}, {"/sys/class/net/lo/mtu", "65536"}, {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "x"}, {"/sys/module/kernel/parameters/panic", "-1"}} {
			c.err(p[0], os.WriteFile(p[0], []byte(p[1]), 0))
		}
	},
	"tracefs": reads("/sys/kernel/tracing/available_events", "/sys/kernel/tracing/trace", "/sys/kernel/tracing/available_tracers", "/sys/kernel/tracing/events/sched/sched_switch/format", "/sys/kernel/tracing/printk_formats", "/sys/kernel/tracing/saved_cmdlines", "/sys/kernel/tracing/trace_clock", "/sys/kernel/tracing/trace_options", "/sys/kernel/tracing/set_event"),
	"lists":   lists("/proc", "/proc/self/fd", "/proc/self/task", "/proc/self/ns", "/proc/net", "/proc/sys/kernel", "/sys/class", "/sys/kernel", "/sys/bus", "/sys/class/mem", "/dev", "/", "/tmp", "/sys/kernel/debug", "/sys/kernel/tracing"),
	"devices": func(c calls, _ string) {
		for _, p := range []string{"null", "zero", "full", "random", "urandom", "kmsg", "mem", "port", "tty", "console", "ttyS0", "ptmx", "cpu_dma_latency", "rtc0", "hpet", "loop-control", "loop0", "net/tun", "fuse", "vga_arbiter", "autofs", "snapshot", "hwrng", "nvram", "input/event0", "input/mice", "vcs", "tty1"} {
			fd, err := unix.Open("/dev/"+p, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
			c.err(p, err)
			if err != nil {
				continue
			}
			b := make([]byte, 64)
			n, err := unix.Pread(fd, b, 0)
			c.err(fmt.Sprint("read ", n >= 0), err)
			if p == "null" || p == "zero" || p == "full" || p == "random" || p == "urandom" {
				n, err = unix.Write(fd, b)
				c.n("write", n, err)
			}
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}, 0)
			c.err("poll", err)
			c.raw("ioctl", unix.SYS_IOCTL, uintptr(fd), 0x5401, uintptr(unsafe.Pointer(&b[0])))
			_, err = unix.Seek(fd, 0, 0)
			c.err("seek", err)
			m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
			c.err("mmap", err)
			if err == nil {
				c.err("munmap", unix.Munmap(m))
			}
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK)
			c.err("async", err)
			c.err("close", unix.Close(fd))
		}
	},
	"pty": func(c calls, _ string) {
		fd := c.open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY)
		c.err("unlock", unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		c.err("number", err)
		c.err("mkdir", os.MkdirAll("/dev/pts", 0o755))
		c.err("devpts", unix.Mount("devpts", "/dev/pts", "devpts", 0, ""))
		s, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY, 0)
		c.err("open", err)
		if t, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			c.err("tcsets", unix.IoctlSetTermios(fd, unix.TCSETS, t))
		}
		c.err("winsize", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: 80}))
		b := make([]byte, 100)
		k, err := unix.Write(fd, []byte("hello\n"))
		c.n("write", k, err)
		k, err = unix.Read(s, b)
		c.n("read", k, err)
		k, err = unix.Write(s, []byte("back\n"))
		c.n("write", k, err)
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		c.err("poll", err)
		k, err = unix.Read(fd, b)
		c.err(fmt.Sprint("read ", k > 0), err)
		c.raw("tcflsh", unix.SYS_IOCTL, uintptr(s), unix.TCFLSH, 2)
		c.raw("tcxonc", unix.SYS_IOCTL, uintptr(s), unix.TCXONC, 1)
		c.raw("tcsbrk", unix.SYS_IOCTL, uintptr(s), 0x5409, 1)
		c.raw("fionread", unix.SYS_IOCTL, uintptr(s), 0x541B, uintptr(unsafe.Pointer(&b[0])))
		c.raw("tiocsetd", unix.SYS_IOCTL, uintptr(s), unix.TIOCSETD, uintptr(unsafe.Pointer(new(int32))))
		c.err("close", unix.Close(s))
		c.err("close", unix.Close(fd))
	},
	"pipe": func(c calls, dir string) {
		var p, q [2]int
		c.err("pipe", unix.Pipe(p[:]))
		c.err("pipe", unix.Pipe(q[:]))
		b := make([]byte, 5000)
		n, err := unix.Write(p[1], b)
		c.n("write", n, err)
		k, err := unix.Tee(p[0], q[1], 100, 0)
		c.n("tee", int(k), err)
		fd := c.open(dir+"f", unix.O_RDWR|unix.O_CREAT)
		k, err = unix.Splice(p[0], nil, fd, nil, 1000, 0)
		c.n("splice", int(k), err)
		off := int64(0)
		k, err = unix.Splice(fd, &off, p[1], nil, 100, 0)
		c.n("splice", int(k), err)
		_, err = unix.Vmsplice(p[1], []unix.Iovec{{Base: &b[0], Len: 10}}, 0)
		c.err("vmsplice", err)
		_, err = unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, 1<<16)
		c.err("size", err)
		n, err = unix.Read(p[0], b)
		c.n("read", n, err)
		for _, f := range append(p[:], q[:]...) {
			c.err("close", unix.Close(f))
		}
	},
	"waiting": func(c calls, dir string) {
		e, err := unix.EpollCreate1(0)
		c.err("epoll", err)
		ev, err := unix.Eventfd(1, unix.EFD_NONBLOCK)
		c.err("eventfd", err)
		tm, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0)
		c.err("timerfd", err)
		c.err("settime", unix.TimerfdSettime(tm, 0, &unix.ItimerSpec{Value: unix.Timespec{Nsec: 1000000}}, nil))
		sg, err := unix.Signalfd(-1, &unix.Sigset_t{}, 0)
		c.err("signalfd", err)
		in, err := unix.InotifyInit()
		c.err("inotify", err)
		_, err = unix.InotifyAddWatch(in, dir, unix.IN_ALL_EVENTS)
		c.err("watch", err)
		var p [2]int
		c.err("pipe", unix.Pipe(p[:]))
		for _, fd := range []int{ev, tm, sg, in, p[0]} {
			c.err("add", unix.EpollCtl(e, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
		}
		files(c, dir+"f")
		time.Sleep(2 * time.Millisecond)
		list := make([]unix.EpollEvent, 10)
		n, err := unix.EpollWait(e, list, 100)
		c.err(fmt.Sprint("wait ", n > 0), err)
		b := make([]byte, 8192)
		for _, fd := range []int{ev, tm, in} {
			n, err := unix.Read(fd, b)
			c.err(fmt.Sprint("read ", n > 0), err)
		}
		var set unix.FdSet
		set.Set(ev)
		_, err = unix.Select(ev+1, &set, nil, nil, &unix.Timeval{Usec: 1000})
		c.err("select", err)
		for _, fd := range []int{ev, tm, sg, in, p[0], p[1], e} {
			_, _ = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
			c.err("close", unix.Close(fd))
		}
	},
	"fanotify": func(c calls, dir string) {
		fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, unix.O_RDONLY)
		c.err("init", err)
		c.err("mark", unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN|unix.FAN_CLOSE|unix.FAN_MODIFY, unix.AT_FDCWD, dir))
		c.err("mark mount", unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, unix.FAN_OPEN, unix.AT_FDCWD, dir))
		f := c.open(dir+"f", unix.O_RDWR|unix.O_CREAT)
		c.err("close", unix.Close(f))
		n, err := unix.Read(fd, make([]byte, 4096))
		c.err(fmt.Sprint("read ", n > 0), err)
		c.err("close", unix.Close(fd))
	},
	"processes": func(c calls, _ string) {
		out, err := exec.Command("/proc/self/exe", "workload", "none").Output()
		c.err(string(out), err)
		p, err := os.StartProcess("/proc/self/exe", []string{"x", "workload", "none"}, &os.ProcAttr{Sys: &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP}})
		c.err("namespaces", err)
		if err == nil {
			st, err := p.Wait()
			c.err(st.String(), err)
		}
		c.err("priority", unix.Setpriority(unix.PRIO_PROCESS, 0, 1))
		c.err("prctl", unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&[]byte("name\x00")[0])), 0, 0, 0))
		var cpus unix.CPUSet
		c.err("affinity", unix.SchedGetaffinity(0, &cpus))
		c.err("setaffinity", unix.SchedSetaffinity(0, &cpus))
		var u unix.Rusage
		c.err("rusage", unix.Getrusage(0, &u))
		var lim unix.Rlimit
		c.err("rlimit", unix.Getrlimit(unix.RLIMIT_NOFILE, &lim))
		c.err("kill", unix.Kill(unix.Getpid(), 0))
		attr, err := unix.SchedGetAttr(0, 0)
		c.err("getattr", err)
		if err == nil {
			c.err("setattr", unix.SchedSetAttr(0, attr, 0))
		}
		for _, policy := range []uintptr{3, 1, 2, 5, 0} {
			param := [1]int32{}
			if policy == 1 || policy == 2 {
				param[0] = 1
			}
			c.raw("scheduler", unix.SYS_SCHED_SETSCHEDULER, 0, policy, uintptr(unsafe.Pointer(&param)))
			c.raw("yield", unix.SYS_SCHED_YIELD)
			time.Sleep(time.Millisecond)
		}
		c.raw("interval", unix.SYS_SCHED_RR_GET_INTERVAL, 0, uintptr(unsafe.Pointer(&unix.Timespec{})))
	},
	// A task that ends with an exception of the x87 pending.
	hazards.Faulty: func(calls, string) { dividesAndExits() },
	"none":         func(c calls, _ string) { c.err("none", nil) },
	"ptrace": func(c calls, _ string) {
		cmd := exec.Command("/proc/self/exe", "workload", "none")
		cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true}
		err := cmd.Start()
		c.err("start", err)
		if err != nil {
			return
		}
		var ws unix.WaitStatus
		_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
		c.err("wait", err)
		var regs unix.PtraceRegs
		c.err("getregs", unix.PtraceGetRegs(cmd.Process.Pid, &regs))
		c.err("setregs", unix.PtraceSetRegs(cmd.Process.Pid, &regs))
		b := make([]byte, 8)
		_, err = unix.PtracePeekData(cmd.Process.Pid, uintptr(regs.Rsp), b)
		c.err("peek", err)
		c.err("step", unix.PtraceSingleStep(cmd.Process.Pid))
		_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
		c.err("wait", err)
		for _, note := range []uintptr{1, 2, 0x202} {
			buf := make([]byte, 4096)
			iov := unix.Iovec{Base: &buf[0], Len: 4096}
			c.raw("getregset", unix.SYS_PTRACE, 0x4204, uintptr(cmd.Process.Pid), note, uintptr(unsafe.Pointer(&iov)))
			c.raw("setregset", unix.SYS_PTRACE, 0x4205, uintptr(cmd.Process.Pid), note, uintptr(unsafe.Pointer(&iov)))
		}
		c.raw("peekuser", unix.SYS_PTRACE, 3, uintptr(cmd.Process.Pid), 848, uintptr(unsafe.Pointer(&b[0])))
		c.err("detach", unix.PtraceDetach(cmd.Process.Pid))
		_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
		c.err("wait", err)
	},
	"signals": func(c calls, _ string) {
		t := unix.Itimerval{Value: unix.Timeval{Usec: 1000}}
		c.raw("setitimer", unix.SYS_SETITIMER, 1, uintptr(unsafe.Pointer(&t)), 0)
		var id int32
		for _, clock := range []uintptr{0, 1, 2, 3, 7, 11} {
			ev := [8]uint64{0, 1 << 32} // SIGEV_NONE
			c.raw("timer_create", unix.SYS_TIMER_CREATE, clock, uintptr(unsafe.Pointer(&ev)), uintptr(unsafe.Pointer(&id)))
			it := unix.ItimerSpec{Value: unix.Timespec{Sec: 5}}
			c.raw("timer_settime", unix.SYS_TIMER_SETTIME, uintptr(id), 0, uintptr(unsafe.Pointer(&it)), 0)
			c.raw("timer_gettime", unix.SYS_TIMER_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&it)))
			c.raw("timer_getoverrun", unix.SYS_TIMER_GETOVERRUN, uintptr(id))
			c.raw("timer_delete", unix.SYS_TIMER_DELETE, uintptr(id))
			var ts unix.Timespec
			c.raw("clock_getres", unix.SYS_CLOCK_GETRES, clock, uintptr(unsafe.Pointer(&ts)))
			c.raw("clock_gettime", unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)))
			ns := unix.Timespec{Nsec: 100000}
			if clock != 2 && clock != 3 {
				c.raw("clock_nanosleep", unix.SYS_CLOCK_NANOSLEEP, clock, 0, uintptr(unsafe.Pointer(&ns)), 0)
			}
		}
		var tx unix.Timex
		c.raw("clock_adjtime", unix.SYS_CLOCK_ADJTIME, 0, uintptr(unsafe.Pointer(&tx)))
	},
	"ipc": func(c calls, _ string) {
		id := c.raw("shmget", unix.SYS_SHMGET, 0x1234, 4096, 0o1600)
		at := c.raw("shmat", unix.SYS_SHMAT, id, 0, 0)
		c.raw("shmdt", unix.SYS_SHMDT, at)
		var b [512]byte
		c.raw("shmctl", unix.SYS_SHMCTL, id, 2, uintptr(unsafe.Pointer(&b)))
		c.raw("shmrm", unix.SYS_SHMCTL, id, 0, 0)
		id = c.raw("semget", unix.SYS_SEMGET, 0x1234, 2, 0o1600)
		ops := [3]int16{0, 1, 0}
		c.raw("semop", unix.SYS_SEMOP, id, uintptr(unsafe.Pointer(&ops)), 1)
		c.raw("semrm", unix.SYS_SEMCTL, id, 0, 0)
		id = c.raw("msgget", unix.SYS_MSGGET, 0x1234, 0o1600)
		msg := [4]uint64{1, 2, 3, 4}
		c.raw("msgsnd", unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&msg)), 24, 0)
		c.raw("msgrcv", unix.SYS_MSGRCV, id, uintptr(unsafe.Pointer(&msg)), 24, 0, 0)
		c.raw("msgrm", unix.SYS_MSGCTL, id, 0, 0)
		name := []byte("queue\x00")
		fd := c.raw("mq_open", unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0)
		c.raw("mq_timedsend", unix.SYS_MQ_TIMEDSEND, fd, uintptr(unsafe.Pointer(&msg)), 8, 0, 0)
		buf := make([]byte, 8192)
		c.raw("mq_timedreceive", unix.SYS_MQ_TIMEDRECEIVE, fd, uintptr(unsafe.Pointer(&buf[0])), 8192, 0, 0)
		c.raw("mq_unlink", unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])))
		c.err("close", unix.Close(int(fd)))
	},
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
	"memory": func(c calls, _ string) {
		m, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		c.err("mmap", err)
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
		c.err("mprotect", unix.Mprotect(m[:8192], unix.PROT_READ))
		c.err("mlock", unix.Mlock(m[:8192]))
		c.err("munlock", unix.Munlock(m[:8192]))
		for _, a := range []int{unix.MADV_HUGEPAGE, unix.MADV_COLD, unix.MADV_PAGEOUT, unix.MADV_FREE, unix.MADV_MERGEABLE, unix.MADV_DONTNEED, unix.MADV_POPULATE_WRITE} {
			c.err("madvise", unix.Madvise(m[8192:], a))
		}
		b := make([]byte, len(m)/4096)
		c.raw("mincore", unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&b[0])))
		c.raw("mbind", unix.SYS_MBIND, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), 1, uintptr(unsafe.Pointer(new(uint64))), 64, 0)
		c.raw("get_mempolicy", unix.SYS_GET_MEMPOLICY, 0, 0, 0, 0, 0)
		c.raw("migrate", unix.SYS_MIGRATE_PAGES, 0, 64, uintptr(unsafe.Pointer(new(uint64))), uintptr(unsafe.Pointer(new(uint64))))
		c.err("munmap", unix.Munmap(m))
		c.err("drop", os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
		c.err("compact", os.WriteFile("/proc/sys/vm/compact_memory", []byte("1"), 0))
		h, err := unix.Mmap(-1, 0, 2<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_HUGETLB)
		c.err("hugetlb", err)
		if err == nil {
			c.err("munmap", unix.Munmap(h))
		}
	},
	"uffd": func(c calls, _ string) {
		fd := c.raw("userfaultfd", unix.SYS_USERFAULTFD, unix.O_NONBLOCK)
		api := [3]uint64{0xAA}
		c.raw("api", unix.SYS_IOCTL, fd, 0xC018AA3F, uintptr(unsafe.Pointer(&api)))
		c.err("close", unix.Close(int(fd)))
		b := make([]byte, 8)
		local, remote := unix.Iovec{Base: &b[0], Len: 8}, unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}
		_, err := unix.ProcessVMReadv(unix.Getpid(), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
		c.err("readv", err)
	},
	"uring": func(c calls, _ string) {
		var p [120]byte
		fd := c.raw("setup", unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&p)))
		c.raw("enter", unix.SYS_IO_URING_ENTER, fd, 0, 0, 0, 0)
		c.err("close", unix.Close(int(fd)))
		var ctx uint64
		c.raw("io_setup", unix.SYS_IO_SETUP, 4, uintptr(unsafe.Pointer(&ctx)))
		c.raw("io_destroy", unix.SYS_IO_DESTROY, uintptr(ctx))
	},
	"keys": func(c calls, _ string) {
		id, err := unix.AddKey("user", "k", []byte("payload"), unix.KEY_SPEC_PROCESS_KEYRING)
		c.err("add", err)
		b := make([]byte, 100)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, b, 0)
		c.n("read", n, err)
		_, err = unix.KeyctlString(unix.KEYCTL_DESCRIBE, id)
		c.err("describe", err)
		_, err = unix.KeyctlInt(unix.KEYCTL_UPDATE, id, 0, 0, 0)
		c.err("update", err)
		_, err = unix.KeyctlInt(unix.KEYCTL_REVOKE, id, 0, 0, 0)
		c.err("revoke", err)
		_, err = unix.AddKey("keyring", "r", nil, unix.KEY_SPEC_PROCESS_KEYRING)
		c.err("keyring", err)
		_, err = unix.AddKey("logon", "a:b", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		c.err("logon", err)
	},
	"bpf": func(c calls, _ string) {
		type create struct{ kind, key, value, entries, flags uint32 }
		for kind := uint32(1); kind <= 30; kind++ {
			a := create{kind, 4, 8, 16, 0}
			fd, _, e := unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&a)), 72)
			c.n("map", int(kind), nil)
			fmt.Println(int(e))
			if e != 0 {
				continue
			}
			key, value := uint32(1), [8]byte{}
			u := [4]uint64{uint64(fd), uint64(uintptr(unsafe.Pointer(&key))), uint64(uintptr(unsafe.Pointer(&value))), 0}
			for _, cmd := range []uintptr{2, 1, 4, 3} {
				c.raw("op", unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(&u)), 72)
			}
			_, _ = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
			c.err("close", unix.Close(int(fd)))
		}
		prog := [2]uint64{0x00000000000000b7, 0x95}
		license := []byte("GPL\x00")
		for kind := uint32(1); kind <= 31; kind++ {
			a := [16]uint64{uint64(kind) | 2<<32, uint64(uintptr(unsafe.Pointer(&prog))), uint64(uintptr(unsafe.Pointer(&license[0])))}
			fd, _, e := unix.Syscall(unix.SYS_BPF, 5, uintptr(unsafe.Pointer(&a)), 72)
			fmt.Println("prog", kind, int(e))
			if e == 0 {
				data := make([]byte, 64)
				t := [8]uint64{uint64(fd), 64 << 0, uint64(uintptr(unsafe.Pointer(&data[0])))}
				t[0] = uint64(fd)
				c.raw("test", unix.SYS_BPF, 10, uintptr(unsafe.Pointer(&t)), 72)
				c.err("close", unix.Close(int(fd)))
			}
		}
	},
	"perf": func(c calls, _ string) {
		for _, a := range [][2]uint64{{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 9}, {2, 300}, {0, 0}, {5, 0}} {
			attr := unix.PerfEventAttr{Type: uint32(a[0]), Config: a[1], Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
			fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
			c.err(fmt.Sprint("open ", a), err)
			if err != nil {
				continue
			}
			for _, io := range []uint{unix.PERF_EVENT_IOC_ENABLE, unix.PERF_EVENT_IOC_RESET, unix.PERF_EVENT_IOC_DISABLE} {
				c.err("ioctl", unix.IoctlSetInt(fd, io, 0))
			}
			n, err := unix.Read(fd, make([]byte, 8))
			c.n("read", n, err)
			m, err := unix.Mmap(fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			c.err("mmap", err)
			if err == nil {
				c.err("munmap", unix.Munmap(m))
			}
			c.err("close", unix.Close(fd))
		}
	},
	"algorithms": func(c calls, _ string) {
		for _, a := range [][2]string{{"hash", "sha256"}, {"hash", "crc32c"}, {"hash", "md5"}, {"skcipher", "cbc(aes)"}, {"rng", "stdrng"}, {"hash", "hmac(sha1)"}} {
			s, err := unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
			c.err("socket", err)
			if err != nil {
				return
			}
			c.err(a[1], unix.Bind(s, &unix.SockaddrALG{Type: a[0], Name: a[1]}))
			o, _, e := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(s), 0, 0, 0, 0, 0)
			fmt.Println("accept", int(e))
			n, err := unix.Write(int(o), []byte("hello"))
			c.n("write", n, err)
			n, err = unix.Read(int(o), make([]byte, 32))
			c.n("read", n, err)
			_ = unix.Close(int(o))
			_ = unix.Close(s)
		}
	},
	"mount_tmpfs":   mounts("tmpfs", "size=1m"),
	"mount_ramfs":   mounts("ramfs", ""),
	"mount_proc":    mounts("proc", "hidepid=2"),
	"mount_sysfs":   mounts("sysfs", ""),
	"mount_mqueue":  mounts("mqueue", ""),
	"mount_devpts":  mounts("devpts", "newinstance"),
	"mount_huge":    mounts("hugetlbfs", ""),
	"mount_bpf":     mounts("bpf", ""),
	"mount_cgroup2": mounts("cgroup2", ""),
	"mount_debugfs": mounts("debugfs", ""),
	"mount_pstore":  mounts("pstore", ""),
	"mount_configs": mounts("configfs", ""),
	"cgroups": func(c calls, dir string) {
		root := dir + "cg"
		c.err("mkdir", os.Mkdir(root, 0o755))
		c.err("mount", unix.Mount("none", root, "cgroup2", 0, ""))
		b, err := os.ReadFile(root + "/cgroup.controllers")
		c.err("controllers", err)
		for _, k := range strings.Fields(string(b)) {
			c.err("+"+k, os.WriteFile(root+"/cgroup.subtree_control", []byte("+"+k), 0))
		}
		c.err("mkdir", os.Mkdir(root+"/a", 0o755))
		l, err := os.ReadDir(root + "/a")
		c.err("readdir", err)
		for _, e := range l {
			text, err := os.ReadFile(root + "/a/" + e.Name())
			if err == nil && strings.Contains(e.Name(), "max") {
				_ = os.WriteFile(root+"/a/"+e.Name(), text, 0)
			}
		}
		c.err("attach", os.WriteFile(root+"/a/cgroup.procs", []byte("0"), 0))
		files(c, dir+"f")
		m, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		c.err("mmap", err)
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
		c.err("back", os.WriteFile(root+"/cgroup.procs", []byte("0"), 0))
		c.err("freeze", os.WriteFile(root+"/a/cgroup.freeze", []byte("1"), 0))
		c.err("rmdir", os.Remove(root+"/a"))
		c.err("umount", unix.Unmount(root, unix.MNT_DETACH))
	},
	"new_mounts": func(c calls, dir string) {
		c.err("unshare", unix.Unshare(unix.CLONE_NEWNS))
		fd, err := unix.Fsopen("tmpfs", 0)
		c.err("fsopen", err)
		name := []byte("size\x00")
		value := []byte("1m\x00")
		c.raw("fsconfig", unix.SYS_FSCONFIG, uintptr(fd), 1, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&value[0])), 0)
		c.raw("create", unix.SYS_FSCONFIG, uintptr(fd), 6, 0, 0, 0)
		m, err := unix.Fsmount(fd, 0, 0)
		c.err("fsmount", err)
		c.err("mkdir", os.Mkdir(dir+"x", 0o755))
		c.err("move", unix.MoveMount(m, "", unix.AT_FDCWD, dir+"x", unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.err("bind", unix.Mount(dir+"x", dir+"x", "", unix.MS_BIND|unix.MS_REC, ""))
		c.err("private", unix.Mount("", dir+"x", "", unix.MS_PRIVATE|unix.MS_REC, ""))
		t, err := unix.OpenTree(unix.AT_FDCWD, dir+"x", unix.OPEN_TREE_CLONE)
		c.err("open_tree", err)
		_ = unix.Close(t)
		c.err("umount", unix.Unmount(dir+"x", unix.MNT_DETACH))
	},
	"events": func(c calls, _ string) {
		for _, e := range []string{"sched/sched_switch", "syscalls/sys_enter_getpid", "kmem/kmalloc", "irq/irq_handler_entry"} {
			c.err(e, os.WriteFile(tracing+"events/"+e+"/enable", []byte("1"), 0))
			_ = unix.Getpid()
			c.err("filter", os.WriteFile(tracing+"events/"+e+"/filter", []byte("common_pid == 1"), 0))
			c.err("trigger", os.WriteFile(tracing+"events/"+e+"/trigger", []byte("traceoff if common_pid == 1"), 0))
			c.err("trigger", os.WriteFile(tracing+"events/"+e+"/trigger", []byte("!traceoff"), 0))
			c.err("filter", os.WriteFile(tracing+"events/"+e+"/filter", []byte("0"), 0))
			c.err("off", os.WriteFile(tracing+"events/"+e+"/enable", []byte("0"), 0))
		}
		c.err("clock", os.WriteFile(tracing+"trace_clock", []byte("local"), 0))
		c.err("instance", os.Mkdir(tracing+"instances/x", 0o755))
		c.err("instance", os.Remove(tracing+"instances/x"))
	},
	"random": func(c calls, _ string) {
		b := make([]byte, 300)
		n, err := unix.Getrandom(b, 0)
		c.n("getrandom", n, err)
		var u unix.Utsname
		c.err("uname", unix.Uname(&u))
		c.err("hostname", unix.Sethostname([]byte("x")))
		var i unix.Sysinfo_t
		c.err("sysinfo", unix.Sysinfo(&i))
		_, err = unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
		c.err("syslog", err)
	},
	"modules": func(c calls, dir string) {
		f := c.open(dir+"m", unix.O_RDWR|unix.O_CREAT)
		c.err("finit", unix.FinitModule(f, "", 0))
		c.err("delete", unix.DeleteModule("nothing", 0))
		c.err("script", os.WriteFile(dir+"s", []byte("#!/nothing\n"), 0o755))
		c.err("exec", exec.Command(dir+"s").Run())
		c.err("elf", os.WriteFile(dir+"e", []byte("\x7fELF"), 0o755))
		c.err("exec", exec.Command(dir+"e").Run())
		c.err("swapon", func() error {
			_, _, e := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(&[]byte(dir + "m\x00")[0])), 0, 0)
			return e
		}())
	},
	"cpu": func(c calls, _ string) {
		c.err("off", os.WriteFile("/sys/devices/system/cpu/cpu1/online", []byte("0"), 0))
		c.err("on", os.WriteFile("/sys/devices/system/cpu/cpu1/online", []byte("1"), 0))
	},
	"threads": func(c calls, _ string) {
		done := make(chan bool)
		for range 8 {
			go func() {
				for range 50 {
					time.Sleep(100 * time.Microsecond)
				}
				done <- true
			}()
		}
		for range 8 {
			<-done
		}
		c.raw("membarrier", unix.SYS_MEMBARRIER, 1, 0)
		c.raw("futex wake", unix.SYS_FUTEX, uintptr(unsafe.Pointer(new(uint32))), 1, 1, 0, 0, 0)
		c.raw("rseq", unix.SYS_RSEQ, 0, 0, 0, 0)
	},
}
